"""The operating system's lock on an open file: it ends with the process that holds it."""

import sys
from typing import TextIO

if sys.platform == "win32":
    import msvcrt

    def take(file: TextIO) -> bool:
        """Lock `file` until it is closed; whether nobody else has it."""
        file.seek(1 << 20)  # a locked byte cannot be read by others, and they read the text
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def take(file: TextIO) -> bool:
        """Lock `file` until it is closed; whether nobody else has it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
