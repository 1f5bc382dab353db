"""A progress bar that is shown while it is used as a context."""

from types import TracebackType
from typing import TypeVar

from rich.progress import Progress

Own = TypeVar("Own", bound="ProgressBar")


class ProgressBar:
    """What every display of progress is: its `_bar` runs from entering to leaving."""

    _bar: Progress

    def __enter__(self: Own) -> Own:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
