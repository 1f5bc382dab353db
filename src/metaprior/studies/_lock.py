"""One engine in a folder at a time.

The lock is the operating system's, on a file that says whose it is. It ends with its process
however that ends, so that a lock file left by a dead process holds nobody up, even if another
process has its number by now.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from metaprior._file_lock import take

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep `folder` for this process while in the context; refuse if another one has it."""
    folder.mkdir(parents=True, exist_ok=True)
    # The file stays when the lock ends: between removing and locking a file two engines could
    # each hold a lock, on different files of one name.
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        if not take(file):
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise ValueError(
                f"A study is already running in {folder} ({holder}); wait for it, stop it, or "
                "name another folder."
            )
        file.truncate(0)
        started = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {started}\n")
        file.flush()
        yield
