"""Locks between processes: the operating system's, on a file that says who holds it.

A lock ends with its process, however that ends, and its file goes when the lock is released. The
file of a killed process stays until the next one takes the lock.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO

from metaprior.files._claim import claim, is_at, open_plainly
from metaprior.files._replace import unwriteable

# A process that suggests holds the lock while it computes; with a method that has no form in NumPy,
# it also compiles.
LONGEST_WAIT = 300.0
_BETWEEN_TRIES = 0.05
_LONGEST_NOTE = 1000


@contextmanager
def hold(
    lock: Path, *, longest_wait: float = 0.0, if_held: Callable[[str], ValueError]
) -> Iterator[None]:
    """Hold the lock on the file `lock` while inside.

    - `longest_wait`: how long to wait for another process to release it, in seconds.
    - `if_held`: the error to raise after that, given what the file says of its holder.
    """
    deadline = time.monotonic() + longest_wait
    while True:
        file = open_plainly(lock)
        with file:
            if claim(file):
                # Between opening and claiming, the holder before may have removed the file: then
                # the claim is on a file that no other process will find.
                if is_at(file, lock):
                    try:
                        _sign(file)
                        yield
                    finally:
                        _remove(lock)
                    break
            elif time.monotonic() >= deadline:
                file.seek(0)
                note = file.read(_LONGEST_NOTE).decode(errors="replace").strip()
                raise if_held(note or "another process")
            else:
                time.sleep(_BETWEEN_TRIES)
    if os.name != "posix":  # where an open file cannot be removed
        _remove(lock)


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


def _sign(file: IO[bytes]) -> None:
    """Say who holds the lock."""
    file.truncate(0)
    file.seek(0)
    started = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    file.write(f"process {os.getpid()} on {socket.gethostname()}, since {started}\n".encode())
    file.flush()


def _remove(lock: Path) -> None:
    with suppress(OSError):
        lock.unlink()
