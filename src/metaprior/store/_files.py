"""The files of a saved prior, replaced in one step and read as one.

prior.json                          the description: names the arrays, and has the SHA-256 of both
prior-0123456789abcdef.safetensors  the arrays, called by the beginning of their SHA-256
README.md                           the model card
report.html                         written by `metaprior report`

Arrays never change under their name. A save writes new ones beside the old ones and then replaces
the description, which is the one step; a process that is killed leaves the prior before or the
prior after. What it has left is removed by the next save.
"""

import hashlib
import json
import os
import re
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.files import (
    PARTIAL,
    digest_of_json,
    locked,
    parse_json,
    read_file,
    remove_partial,
    replace_file,
    sync_folder,
    unwriteable,
)
from metaprior.words import cut, shortened

FORMAT = "metaprior-prior"
FORMAT_VERSION = 3
DESCRIPTION, CARD = "prior.json", "README.md"
# Written beside them by `metaprior report`; removed when another prior is saved in the folder.
REPORT = "report.html"
# The arrays of formats 1 and 2, which had no checksums.
EARLIER_ARRAYS = "prior.safetensors"
_ARRAYS = re.compile(r"prior-[0-9a-f]{16}\.safetensors")
_LEFT = re.compile(rf"\..*({re.escape(PARTIAL)}|\.lock)")
_ADVICE = "restore it from a copy or learn the prior again"
# A save may remove the arrays that a description named a moment ago; then it is read again.
_TRIES, _PAUSE = 20, 0.005


class PriorFileError(ValueError):
    """A folder that cannot be read as a prior, with the reason and what to do."""


class PriorFiles(NamedTuple):
    """What the files of one prior hold; `arrays_name` is that of the file of arrays."""

    description: dict[str, Any]
    arrays_name: str
    arrays: bytes


def read_files(folder: Path) -> PriorFiles:
    """The files of the prior in `folder`, which belong together: both checksums are right."""
    for remaining in reversed(range(_TRIES)):
        description = _read_description(folder / DESCRIPTION)
        name, digest = _arrays_of(folder, description)
        try:
            arrays = read_file(folder / name)
        except FileNotFoundError:
            if not remaining:
                raise PriorFileError(f"{folder / name} is missing; {_ADVICE}.") from None
            time.sleep(_PAUSE)
            continue
        except OSError as error:
            raise _unreadable(folder / name, error) from None
        if digest is not None and _digest(arrays) != digest:
            raise PriorFileError(
                f"{folder / name} is damaged (its SHA-256 is not the one in {DESCRIPTION}); "
                f"{_ADVICE}."
            )
        return PriorFiles(description, name, arrays)
    raise AssertionError("the last try returns or raises")


def write_files(
    folder: Path, description: dict[str, Any], arrays: bytes, card: str, *, replace: bool | str
) -> None:
    """Save a prior in `folder`, all or nothing.

    - `replace`: whether in place of one that is there; or only of the one with this checksum.
    """
    digest = _digest(arrays)
    name = f"prior-{digest[:16]}.safetensors"
    head = {"format": FORMAT, "format_version": FORMAT_VERSION}
    content = head | description | {"arrays": {"file": name, "sha256": digest}}
    text = json.dumps(content | {"sha256": digest_of_json(content)}, indent=2) + "\n"
    require_place(folder)
    is_new = not folder.exists()
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwriteable(folder, error) from None
        with locked(folder / DESCRIPTION):
            before = {path.name for path in folder.iterdir()}
            allowed = checksum_of(folder) == replace if isinstance(replace, str) else replace
            if DESCRIPTION in before and not allowed:
                raise PriorFileError(f"Another prior has been saved in {folder} already.")
            try:
                replace_file(folder / name, arrays)
                replace_file(folder / DESCRIPTION, text.encode())
            except ValueError:
                if name not in before:
                    _remove(folder / name)
                raise
            replace_file(folder / CARD, card.encode())
            _remove(folder / REPORT)
            for other in before - {name}:
                if _is_arrays(other):
                    _remove(folder / other)
            remove_partial(folder)
        if is_new:
            sync_folder(folder.parent)
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()  # which only an empty one allows
        raise


def checksum_of(folder: Path) -> str:
    """The SHA-256 of the description in `folder`; empty if there is none to read."""
    try:
        return _digest(read_file(folder / DESCRIPTION))
    except OSError:
        return ""


def require_place(folder: Path) -> bool:
    """Make sure that a prior can be saved in `folder`; whether there is one now."""
    problem = None
    if folder.is_symlink() and not folder.exists():
        problem = "it is a link to a folder that does not exist; make that, or remove the link"
    elif folder.exists() and not folder.is_dir():
        problem = "it is a file; name a folder"
    if problem is not None:
        raise PriorFileError(f"Cannot save a prior to {folder}: {problem}.")
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    left = {name for name in held if _LEFT.fullmatch(name) or _is_arrays(name)}
    foreign = sorted(held - left - {DESCRIPTION, CARD, REPORT})
    if DESCRIPTION not in held:
        foreign += sorted(held & {CARD, REPORT, EARLIER_ARRAYS})
    if foreign:
        raise PriorFileError(
            f"Cannot save a prior to {folder}: it holds {foreign[0]!r}, which is not part of a "
            "prior; name a new or an empty folder."
        )
    return DESCRIPTION in held


def require_writeable(folder: Path) -> None:
    """Make sure that files can be made in `folder`, or that it can be made."""
    where = folder
    while not where.exists() and where != where.parent:
        where = where.parent
    try:
        # Rights say too little: of mounts, of quotas, of users who may do everything.
        with tempfile.TemporaryFile(prefix=".prior-", suffix=PARTIAL, dir=where) as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PriorFileError(
            f"Cannot save a prior to {folder}: {where} cannot be written to ({reason}); name "
            "another folder."
        ) from None


def is_prior_file(name: str) -> bool:
    """Whether a file of that name is needed to load a prior, or is its card."""
    return name in (DESCRIPTION, CARD) or _is_arrays(name)


def _is_arrays(name: str) -> bool:
    return name == EARLIER_ARRAYS or _ARRAYS.fullmatch(name) is not None


def _read_description(path: Path) -> dict[str, Any]:
    try:
        data = read_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise PriorFileError(
            f"There is no prior in {path.parent}: {path.name} is missing; give the folder that "
            "`prior.save` wrote."
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        description = parse_json(data)
    except ValueError as error:
        problem = cut(str(error), 300).removesuffix(".")
        raise PriorFileError(
            f"{path} is not valid JSON ({problem}); it is damaged or truncated: {_ADVICE}."
        ) from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise PriorFileError(f"{path} was not written by metaprior; give a folder that was.")
    version = description.get("format_version")
    known = range(1, FORMAT_VERSION + 1)
    if isinstance(version, bool) or not isinstance(version, int) or version not in known:
        raise PriorFileError(
            f"{path} has format version {shortened(version)}, and this metaprior reads versions up "
            f"to {FORMAT_VERSION}; upgrade metaprior, or learn the prior again with this one."
        )
    if version == FORMAT_VERSION:
        content = {name: value for name, value in description.items() if name != "sha256"}
        if description.get("sha256") != digest_of_json(content):
            raise PriorFileError(
                f"{path} is damaged (its SHA-256 is not the one it was saved with); {_ADVICE}."
            )
    return description


def _arrays_of(folder: Path, description: dict[str, Any]) -> tuple[str, str | None]:
    """Name of the file of arrays, and its SHA-256."""
    if description["format_version"] < FORMAT_VERSION:
        return EARLIER_ARRAYS, None
    told = description.get("arrays")
    if isinstance(told, dict):
        name, digest = told.get("file"), told.get("sha256")
        if isinstance(name, str) and isinstance(digest, str) and _ARRAYS.fullmatch(name):
            return name, digest
    raise PriorFileError(f"{folder / DESCRIPTION} is damaged (it names no arrays); {_ADVICE}.")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _unreadable(path: Path, error: OSError) -> PriorFileError:
    reason = (error.strerror or str(error)).lower()
    return PriorFileError(f"{path} cannot be read ({reason}); {_ADVICE}.")


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
