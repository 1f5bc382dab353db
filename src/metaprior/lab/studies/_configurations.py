"""Configurations that a search chose, one file for each method on each environment.

    configurations/<environment>/<method>.json

A file holds the settings, the scores that they were chosen by, and what was searched.
"""

import json
from pathlib import Path
from typing import Any

FORMAT = "metaprior-configuration"
FORMAT_VERSION = 1


def configuration_path(folder: Path, environment: str, method: str) -> Path:
    return folder / environment / f"{method}.json"


def write_configuration(folder: Path, environment: str, method: str, found: dict[str, Any]) -> Path:
    """Keep what a search found: `settings`, `scores` and `searched`."""
    path = configuration_path(folder, environment, method)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "environment": environment,
        "method": method,
        **found,
    }
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def read_configuration(folder: Path, environment: str, method: str) -> dict[str, Any] | None:
    """The settings chosen for the method on the environment; `None` if none were.

    - `folder`: that of the configurations, or of the search they were made by.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder} to read configurations from; name another.")
    if (folder / "configurations").is_dir():
        folder = folder / "configurations"
    path = configuration_path(folder, environment, method)
    if not path.exists():
        return None
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not valid JSON ({error}); run the search again.") from error
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by a search; name another folder.")
    if whole.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {whole.get('format_version')!r}, and this metaprior reads "
            f"version {FORMAT_VERSION}; run the search again."
        )
    if (whole.get("environment"), whole.get("method")) != (environment, method):
        raise ValueError(
            f"{path} is for {whole.get('method')} on {whole.get('environment')}; put it back in "
            "its place."
        )
    return whole["settings"]
