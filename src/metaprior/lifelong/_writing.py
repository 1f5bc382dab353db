"""Changing a file that others may read, or change, at the same moment.

A reader sees the file before or after a change and nothing in between; of two programs of ours that
change it, one waits. The lock ends with its process, however that ends.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from metaprior._file_lock import take

# Whoever suggests holds the lock while it computes, and the first time it also compiles.
LONGEST_WAIT = 300.0
_BETWEEN_TRIES = 0.05


@contextmanager
def locked(path: Path, *, longest_wait: float = LONGEST_WAIT) -> Iterator[None]:
    """Keep other processes from changing `path` while inside; wait for one that does.

    - `longest_wait`: in seconds; when they are over, a ValueError.
    """
    path = Path(os.path.realpath(path))
    # The file stays when the lock ends: between removing and locking it two processes could each
    # hold a lock, on different files of one name.
    lock = path.with_name(f".{path.name}.lock")
    try:
        file = lock.open("a+", encoding="utf-8")
    except OSError as error:
        raise unwriteable(path, error) from None
    with file:
        deadline = time.monotonic() + longest_wait
        while not take(file):
            if time.monotonic() >= deadline:
                raise ValueError(
                    f"{path} has been kept by another process for {longest_wait:g} seconds; wait "
                    "for it, or stop it, and try again."
                )
            time.sleep(_BETWEEN_TRIES)
        yield


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`, all or nothing: after an error the file is what it was."""
    path = Path(os.path.realpath(path))  # a link stays a link
    beside = None
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        beside = Path(name)
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            # Replacing a file needs the right to write to its folder only: respect the file's own.
            if not os.access(path, os.W_OK):
                raise PermissionError(13, "Permission denied")
            shutil.copymode(path, beside)
        else:
            beside.chmod(0o666 & ~_umask())
        os.replace(beside, path)
    except OSError as error:
        if beside is not None:
            with suppress(OSError):
                beside.unlink()
        raise unwriteable(path, error) from None


def unwriteable(path: Path, error: OSError) -> ValueError:
    """What to say of a file that could not be written."""
    reason = (error.strerror or str(error)).lower()
    return ValueError(
        f"{path} cannot be written ({reason}); nothing was changed: repair that and try again."
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
