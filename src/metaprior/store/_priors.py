"""A folder of priors: one folder for each value, and `priors.json`, which names them in order.

The folders are called by what they hold, so that a save never writes into one that another list
names. Replacing the list is the one step: a process that is killed leaves the priors before or the
priors after, and what it has left is removed by the next save.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from metaprior.belief import Prior, Priors
from metaprior.files import (
    PARTIAL,
    as_path,
    locked,
    parse_json,
    read_file,
    remove_partial,
    replace_file,
    require_seal,
    sealed,
    unwriteable,
)
from metaprior.store._files import is_prior_file
from metaprior.store._format import UNSUITABLE, PriorFileError, digest_of, load, save_prior
from metaprior.words import cut, shortened

FORMAT = "metaprior-priors"
# Version 1 had no checksum.
FORMAT_VERSION = 2
INDEX = "priors.json"
OBJECTIVE, CONSTRAINT = "objective", "constraint"
_OURS = re.compile(r"[0-9]+-[A-Za-z0-9_-]*-[0-9a-f]{8}")
_LEFT = re.compile(rf"\..*({re.escape(PARTIAL)}|\.lock)")
# A save may remove the folders that a list named a moment ago; then the list is read again.
_TRIES = 20


def save_priors(priors: Priors, folder: str | Path) -> Path:
    """Write `priors` to `folder`, all or nothing; earlier ones there are replaced."""
    folder = as_path(folder, "folder")
    if folder.exists() and not folder.is_dir():
        raise PriorFileError(f"Cannot save priors to {folder}: it is a file; name a folder.")
    _require_ours(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwriteable(folder, error) from None
    named = [(OBJECTIVE, *item) for item in priors.objectives.items()]
    named += [(CONSTRAINT, *item) for item in priors.constraints.items()]
    with locked(folder / INDEX):
        before = _require_ours(folder)
        entries: list[dict[str, Any]] = []
        for i, (kind, name, prior) in enumerate(named):
            own = None if prior is None else _folder_name(i, name, prior)
            if prior is not None and own is not None:
                save_prior(prior, folder / own)
            entries.append({"name": name, "kind": kind, "folder": own})
        index = {"format": FORMAT, "format_version": FORMAT_VERSION, "priors": entries}
        replace_file(folder / INDEX, (json.dumps(sealed(index), indent=2) + "\n").encode())
        for stale in before - {entry["folder"] for entry in entries}:
            shutil.rmtree(folder / stale, ignore_errors=True)
        remove_partial(folder)
    return folder


def load_priors(folder: str | Path) -> Priors:
    """The priors saved in `folder`."""
    folder = as_path(folder, "folder")
    if not (folder / INDEX).is_file():
        raise PriorFileError(
            f"There is no {INDEX} in {folder}; name a folder that `Priors.save` made, or load a "
            "single prior with `metaprior.load`."
        )
    entries = _entries(folder)
    for remaining in reversed(range(_TRIES)):
        try:
            return _loaded(folder, entries)
        except PriorFileError:
            before, entries = entries, _entries(folder)
            if entries == before or not remaining:
                raise
    raise AssertionError("the last try returns or raises")


def _loaded(folder: Path, entries: list[dict[str, Any]]) -> Priors:
    found: dict[str, dict[str, Prior | None]] = {OBJECTIVE: {}, CONSTRAINT: {}}
    for entry in entries:
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


def _require_ours(folder: Path) -> set[str]:
    """The folders in `folder`, all of which a save made; an error if there is anything else."""
    if not folder.is_dir():
        return set()
    listed = {e["folder"] for e in _entries(folder)} if (folder / INDEX).is_file() else set()
    held = {path.name for path in folder.iterdir() if not _LEFT.fullmatch(path.name)} - {INDEX}
    ours = {name for name in held if name in listed or _was_left(folder / name)}
    foreign = sorted(held - ours)
    if foreign:
        raise PriorFileError(
            f"Cannot save priors to {folder}: it holds {foreign[0]!r}, which is not part of them; "
            "name an empty or a new folder."
        )
    return ours


def _was_left(path: Path) -> bool:
    """Whether a save that was killed made the folder."""
    if not _OURS.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
        return False
    return all(is_prior_file(p.name) or _LEFT.fullmatch(p.name) for p in path.iterdir())


def _entries(folder: Path) -> list[dict[str, Any]]:
    """What the index lists, checked."""
    path = folder / INDEX
    try:
        index = parse_json(read_file(path))
        if index["format"] != FORMAT:
            raise ValueError(f"its format is {index['format']!r}")
        version = index["format_version"]
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise ValueError(f"its format version is {version!r}")
        if version > FORMAT_VERSION:
            raise PriorFileError(
                f"{path} was written by a newer metaprior (format {version}); "
                "upgrade metaprior to read it."
            )
        if version != 1:
            require_seal(index)
        entries = [_checked(entry) for entry in index["priors"]]
        if len({entry["name"] for entry in entries}) < len(entries):
            raise ValueError("it names a value twice")
    except PriorFileError:
        raise
    except (*UNSUITABLE, OSError) as error:
        problem = cut(f"{type(error).__name__}: {error}", 300).removesuffix(".")
        raise PriorFileError(
            f"{path} is damaged or not a list of priors ({problem}); restore the folder from a "
            "copy."
        ) from error
    return entries


def _checked(entry: Any) -> dict[str, Any]:
    name, kind, own = entry["name"], entry["kind"], entry["folder"]
    is_inside = own is None or (isinstance(own, str) and re.fullmatch(r"[\w.-]{1,100}", own))
    is_known = isinstance(name, str) and kind in (OBJECTIVE, CONSTRAINT)
    if not is_known or not is_inside or own in (".", ".."):
        raise ValueError(f"it lists {shortened(entry)}")
    if own is None and kind == OBJECTIVE:
        raise ValueError(f"the objective {name!r} has no folder")
    return {"name": name, "kind": kind, "folder": own}


def _folder_name(i: int, name: str, prior: Prior) -> str:
    """A name for the file system that begins with the number, and ends with what is inside."""
    return f"{i}-{re.sub(r'[^A-Za-z0-9_-]+', '_', name)[:40]}-{digest_of(prior)[:8]}"
