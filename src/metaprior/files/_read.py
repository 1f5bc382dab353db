"""Reading files that may be anything: one sentence instead of a hang, and strict JSON."""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

# What no whole number in a file of ours comes near; more digits than this fit into no float.
_MOST_DIGITS = 300
# Files are read whole: beyond this one is not ours.
LARGEST = 1 << 31
# Code that walks through what was read may call itself on every level.
DEEPEST = 60


def as_path(given: Any, called: str = "path") -> Path:
    """The path that a caller gave; an error of one sentence for anything else.

    - `called`: the name of the argument.
    """
    try:
        path = Path(given)
        if "\0" not in str(path):
            return path
    except TypeError:
        pass
    raise TypeError(f"`{called}` is {repr(given)[:60]}, which is no path; give a text or a Path.")


def read_file(path: Path, *, first: int | None = None) -> bytes:
    """The content of the plain file at `path`; an OSError for anything else, pipes included.

    - `first`: so many bytes of its start only.
    """
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(number, "rb") as file:
        found = os.fstat(number)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(21, "Is a folder", str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(22, "Not a plain file", str(path))
        if first is None and found.st_size > LARGEST:
            raise OSError(27, "Larger than 2 billion bytes", str(path))
        return file.read(first)


def parse_json(data: bytes) -> Any:
    """What the JSON text `data` says; a ValueError for what a careful writer does not write."""
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_without_repetition, parse_int=_whole
        )
    except RecursionError:
        value = None
    if value is None and data.strip() != b"null" or _is_deep(value):
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    return value


def digest_of_json(content: dict[str, Any]) -> str:
    """The SHA-256 of what JSON says, however it is laid out."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with its checksum, for `require_seal`."""
    return content | {"sha256": digest_of_json(content)}


def require_seal(content: dict[str, Any]) -> None:
    """Raise a ValueError unless the content is what was sealed."""
    plain = {name: value for name, value in content.items() if name != "sha256"}
    if content.get("sha256") != digest_of_json(plain):
        raise ValueError("its SHA-256 is not the one it was saved with")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"it names {twice[:40]!r} twice")
    return named


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        inside = [each.values() if isinstance(each, dict) else each for each in level]
        level = [v for each in inside for v in each if isinstance(v, (dict, list))]
        if not level:
            return False
    return True


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it has a whole number of {len(digits)} digits")
    return int(digits)
