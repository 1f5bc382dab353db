"""Configurations that a search chose, one file for each method on each environment.

    configurations/<environment>/<method>.json

A file holds the settings, the scores that they were chosen by, and what was searched.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.files import replace_file

# The folder of the files, in the folder of a search.
CONFIGURATIONS = "configurations"
FORMAT = "metaprior-configuration"
FORMAT_VERSION = 1


class ChosenConfiguration(NamedTuple):
    """The settings that a search chose for one method on one environment.

    - `scores`: what they were chosen by, on validation tasks.
    - `searched`: what was searched: `ranges`, `configurations` (how many), `diverged`, and more.

    Both are empty where the file was written by hand.
    """

    environment: str
    method: str
    settings: dict[str, Any]
    scores: dict[str, Any]
    searched: dict[str, Any]


def write_configuration(folder: Path, chosen: ChosenConfiguration) -> Path:
    """Write what a search chose to the folder of the configurations."""
    path = _path(folder, chosen.environment, chosen.method)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"format": FORMAT, "format_version": FORMAT_VERSION, **chosen._asdict()}
    replace_file(path, (json.dumps(whole, indent=2) + "\n").encode())
    return path


def read_configuration(folder: Path, environment: str, method: str) -> dict[str, Any] | None:
    """The settings chosen for the method on the environment; `None` if none were.

    - `folder`: that of the configurations, or of the search they were made by.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder} to read configurations from; name another.")
    if (folder / CONFIGURATIONS).is_dir():
        folder = folder / CONFIGURATIONS
    path = _path(folder, environment, method)
    return _read(path).settings if path.exists() else None


def read_configurations(folder: Path) -> list[ChosenConfiguration]:
    """All configurations in the folder of that name, by environment and method; none if there is
    no such folder."""
    return [_read(path) for path in sorted(folder.glob("*/*.json"))]


def _path(folder: Path, environment: str, method: str) -> Path:
    return folder / environment / f"{method}.json"


def _read(path: Path) -> ChosenConfiguration:
    try:
        whole = json.loads(path.read_bytes())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not valid JSON ({error}); run the search again.") from error
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by a search; name another folder.")
    if whole.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {whole.get('format_version')!r}, and this metaprior reads "
            f"version {FORMAT_VERSION}; run the search again."
        )
    if not isinstance(whole.get("settings"), dict):
        raise ValueError(f"{path} has no settings; run the search again.")
    chosen = ChosenConfiguration(
        str(whole.get("environment")),
        str(whole.get("method")),
        whole["settings"],
        whole.get("scores", {}),
        whole.get("searched", {}),
    )
    if (chosen.environment, chosen.method) != (path.parent.name, path.stem):
        raise ValueError(
            f"{path} is for {chosen.method} on {chosen.environment}; put it back in its place."
        )
    return chosen
