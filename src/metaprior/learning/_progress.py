"""What `learn` reports while it works, and how it is told to stop."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple


class LearnProgress(NamedTuple):
    """How far `learn` is.

    - `stage`: what is being done, in words; `trying`: which configurations, in words.
    - `fraction`: of the whole, from 0 to 1.
    - `best`: the best held-out score so far; `None` before the first, and if nothing is held out.
    """

    stage: str
    fraction: float
    trying: str
    best: float | None


OnLearnProgress = Callable[[LearnProgress], None]


# Of a limited time, what is kept for judging the prior: this share, and at most so many seconds.
JUDGING_SHARE, MOST_JUDGING_SECONDS = 0.25, 10.0


class Watch:
    """Whether there is time left, and whether the user pressed Ctrl-C.

    Training ends early enough for the prior to be judged in what is left of the time.
    """

    def __init__(self, seconds: float | None):
        self._start = time.monotonic()
        self._seconds = seconds
        self._training_seconds = None if seconds is None else seconds - _judging_seconds(seconds)
        self.interrupted = False

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def share(self, fraction: float) -> bool:
        """Whether training that may take this fraction of its time must end now."""
        return self._is_after(self._training_seconds, fraction)

    @property
    def over(self) -> bool:
        """Whether all time is up."""
        return self._is_after(self._seconds, 1.0)

    def _is_after(self, seconds: float | None, fraction: float) -> bool:
        late = seconds is not None and self.elapsed > fraction * seconds
        return late or self.interrupted


def _judging_seconds(seconds: float) -> float:
    return min(JUDGING_SHARE * seconds, MOST_JUDGING_SECONDS)


@contextmanager
def listening(watch: Watch) -> Iterator[None]:
    """Inside, Ctrl-C asks the work to end with the best result so far; a second one raises.

    An exception would not do: raised while compiled code calls back, it may be swallowed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def note(signum: int, frame: FrameType | None) -> None:
        watch.interrupted = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
