"""A folder of priors: one folder for each value, and `priors.json`, which names them in order."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from metaprior.belief import Prior, Priors
from metaprior.files import replace_file
from metaprior.store._format import PriorFileError, load, save_prior

FORMAT = "metaprior-priors"
FORMAT_VERSION = 1
INDEX = "priors.json"
OBJECTIVE, CONSTRAINT = "objective", "constraint"


def save_priors(priors: Priors, folder: str | Path) -> Path:
    """Write `priors` to `folder`; earlier ones there are replaced."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise PriorFileError(f"Cannot save priors to {folder}: it is a file; name a folder.")
    earlier = {e["folder"] for e in _entries(folder)} if (folder / INDEX).is_file() else set()
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    foreign = sorted(held - earlier - {INDEX})
    if foreign:
        raise PriorFileError(
            f"Cannot save priors to {folder}: it holds {foreign[0]!r}, which is not part of them; "
            "name an empty or a new folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    named = [(OBJECTIVE, *item) for item in priors.objectives.items()]
    named += [(CONSTRAINT, *item) for item in priors.constraints.items()]
    entries: list[dict[str, Any]] = []
    for i, (kind, name, prior) in enumerate(named):
        own = None if prior is None else _folder_name(i, name)
        if prior is not None and own is not None:
            save_prior(prior, folder / own)
        entries.append({"name": name, "kind": kind, "folder": own})
    index = {"format": FORMAT, "format_version": FORMAT_VERSION, "priors": entries}
    replace_file(folder / INDEX, (json.dumps(index, indent=2) + "\n").encode())
    for stale in earlier - {entry["folder"] for entry in entries} - {None}:
        shutil.rmtree(folder / stale, ignore_errors=True)
    return folder


def load_priors(folder: str | Path) -> Priors:
    """The priors saved in `folder`."""
    folder = Path(folder)
    if not (folder / INDEX).is_file():
        raise PriorFileError(
            f"There is no {INDEX} in {folder}; name a folder that `metaprior learn --output` or "
            "`Priors.save` made, or load a single prior with `metaprior.load`."
        )
    found: dict[str, dict[str, Prior | None]] = {OBJECTIVE: {}, CONSTRAINT: {}}
    for entry in _entries(folder):
        own = entry["folder"]
        found[entry["kind"]][entry["name"]] = None if own is None else load(folder / own)
    objectives = {name: prior for name, prior in found[OBJECTIVE].items() if prior is not None}
    try:
        return Priors(objectives, found[CONSTRAINT])
    except ValueError as error:
        raise PriorFileError(f"The priors in {folder} do not fit: {error}") from error


def is_folder_of_priors(folder: str | Path) -> bool:
    """Whether `folder` holds several priors, rather than one."""
    return (Path(folder) / INDEX).is_file()


def _entries(folder: Path) -> list[dict[str, Any]]:
    """What the index lists, checked."""
    path = folder / INDEX
    try:
        index = json.loads(path.read_bytes())
        if index["format"] != FORMAT:
            raise ValueError(f"its format is {index['format']!r}")
        if index["format_version"] > FORMAT_VERSION:
            raise PriorFileError(
                f"{path} was written by a newer metaprior (format {index['format_version']}); "
                "upgrade metaprior to read it."
            )
        entries = [
            {"name": str(e["name"]), "kind": e["kind"], "folder": e["folder"]}
            for e in index["priors"]
        ]
        for entry in entries:
            own, kind = entry["folder"], entry["kind"]
            is_inside = own is None or (isinstance(own, str) and re.fullmatch(r"[\w.-]+", own))
            if kind not in (OBJECTIVE, CONSTRAINT) or not is_inside or own in (".", ".."):
                raise ValueError(f"it lists {entry}")
            if own is None and kind == OBJECTIVE:
                raise ValueError(f"the objective {entry['name']!r} has no folder")
    except PriorFileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise PriorFileError(
            f"{path} is damaged or not a list of priors ({error}); restore the folder from a copy."
        ) from error
    return entries


def _folder_name(i: int, name: str) -> str:
    """A name for the file system that begins with the number, so that no two are the same."""
    return f"{i}-{re.sub(r'[^A-Za-z0-9_-]+', '_', name)[:40]}"
