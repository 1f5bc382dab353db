"""Files that a process claims for itself: the claim ends with the process, however that ends."""

import os
import stat
import sys
from pathlib import Path
from typing import IO

# A link in the place of a file is not followed, and nothing that blocks is waited for.
_PLAINLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def open_plainly(path: Path) -> IO[bytes]:
    """The file at `path`, to read and write; an empty new one if there is none.

    A link, a pipe or whatever else is no plain file raises an OSError.
    """
    number = os.open(path, os.O_RDWR | os.O_CREAT | _PLAINLY, 0o666)
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(number)
        raise OSError(22, "not a plain file of its own", str(path))
    return os.fdopen(number, "r+b")


def is_at(file: IO[bytes], path: Path) -> bool:
    """Whether `path` still names the open `file`: it may have been removed or replaced."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def claim(file: IO[bytes]) -> bool:
        """Claim `file` until it is closed; False if another process has."""
        file.seek(1 << 20)  # a claimed byte cannot be read by others, and they read the text
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def claim(file: IO[bytes]) -> bool:
        """Claim `file` until it is closed; False if another process has."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
