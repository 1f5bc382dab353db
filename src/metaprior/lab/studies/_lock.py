"""One engine in a folder at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metaprior.files import hold

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep `folder` for this process while in the context; refuse if another one has it."""

    def if_held(holder: str) -> ValueError:
        return ValueError(
            f"A study is already running in {folder} ({holder}); wait for it, stop it, or name "
            "another folder."
        )

    folder.mkdir(parents=True, exist_ok=True)
    with hold(folder / LOCK, if_held=if_held):
        yield
