"""Replacing a file while others may read it.

A reader sees what was there before or what is there after; an error leaves what was there before.
"""

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from metaprior.files._claim import claim, open_plainly

# The end of the name of a file that is still being written.
PARTIAL = ".partial"
# How often a half-written file may be taken for that of a killed process, and written again.
_TRIES = 5
_BINARY = getattr(os, "O_BINARY", 0)


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`, all or nothing, even through a power cut."""
    path = Path(os.path.realpath(path))  # a link stays a link
    try:
        remove_partial(path.parent, _start(path))
        for remaining in reversed(range(_TRIES)):
            try:
                _write_beside(path, data)
                break
            except FileNotFoundError:
                if not remaining or not path.parent.is_dir():
                    raise
        sync_folder(path.parent)
    except OSError as error:
        raise unwriteable(path, error) from None


def remove_partial(folder: Path, start: str = "") -> None:
    """Remove from `folder` what processes that were killed while writing have left.

    - `start`: how the names of what is removed begin.
    """
    with os.scandir(folder) as entries:
        left = [e.name for e in entries if e.name.startswith(start) and e.name.endswith(PARTIAL)]
    for name in left:
        with suppress(OSError), open_plainly(folder / name) as file:
            if claim(file):  # else its writer is alive
                (folder / name).unlink()


def unwriteable(path: Path, error: OSError) -> ValueError:
    """What to say of a file that could not be written."""
    reason = (error.strerror or str(error)).lower()
    return ValueError(
        f"{path} cannot be written ({reason}); nothing was changed: repair that and try again."
    )


def sync_folder(folder: Path) -> None:
    """Make a change of names inside `folder` survive a power cut."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _write_beside(path: Path, data: bytes) -> None:
    """Write `data` to a new file, which then takes the place of `path`."""
    beside = path.with_name(f"{_start(path)}{secrets.token_hex(8)}{PARTIAL}")
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if path.exists() and not path.is_file():  # a device, a pipe: what reads from it would lose it
        raise OSError(22, "Not a plain file", str(path))
    # With the rights that a new file gets, but never more than those of the one that is replaced.
    # To ask for the umask would be to change it, for a moment and for all threads.
    rights = path.stat().st_mode & 0o777 if path.exists() else 0o666
    number = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, rights)
    try:
        with os.fdopen(number, "wb") as file:
            claim(file)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            # Replacing a file needs the right to write to its folder only: respect its own.
            if not os.access(path, os.W_OK):
                raise PermissionError(13, "Permission denied")
            shutil.copymode(path, beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _start(path: Path) -> str:
    return f".{path.name}-"
