"""Locks between processes: the operating system's, on a file that says who holds it.

A lock ends with its process, however that ends. The lock file stays: between removing and locking a
file, two processes could each hold a lock, on different files of one name.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TextIO

from metaprior.files._replace import unwriteable

# A process that suggests holds the lock while it computes; with a method that has no form in NumPy,
# it also compiles.
LONGEST_WAIT = 300.0
_BETWEEN_TRIES = 0.05


@contextmanager
def hold(
    lock: Path, *, longest_wait: float = 0.0, if_held: Callable[[str], ValueError]
) -> Iterator[None]:
    """Hold the lock on the file `lock` while inside.

    - `longest_wait`: how long to wait for another process to release it, in seconds.
    - `if_held`: the error to raise after that, given what the file says of its holder.
    """
    with lock.open("a+", encoding="utf-8") as file:
        deadline = time.monotonic() + longest_wait
        while not _take(file):
            if time.monotonic() >= deadline:
                file.seek(0)
                raise if_held(file.read().strip() or "another process")
            time.sleep(_BETWEEN_TRIES)
        file.truncate(0)
        started = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {started}\n")
        file.flush()
        yield


@contextmanager
def locked(path: Path, *, longest_wait: float = LONGEST_WAIT) -> Iterator[None]:
    """Keep other processes from changing `path` while inside; wait for one that does.

    - `longest_wait`: in seconds; after that, a ValueError.
    """
    path = Path(os.path.realpath(path))

    def if_held(holder: str) -> ValueError:
        return ValueError(
            f"{path} has been locked by another process for {longest_wait:g} seconds ({holder}); "
            "wait for it, or stop it, and try again."
        )

    lock = path.with_name(f".{path.name}.lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(hold(lock, longest_wait=longest_wait, if_held=if_held))
        except OSError as error:
            raise unwriteable(path, error) from None
        yield


if sys.platform == "win32":
    import msvcrt

    def _take(file: TextIO) -> bool:
        """Lock `file` until it is closed; False if another process holds it."""
        file.seek(1 << 20)  # a locked byte cannot be read by others, and they read the text
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _take(file: TextIO) -> bool:
        """Lock `file` until it is closed; False if another process holds it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
