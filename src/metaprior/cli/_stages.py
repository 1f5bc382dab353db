"""Progress through the stages of a long command: a bar on a terminal, lines of text elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from metaprior.cli._progress_bar import ProgressBar

Advance = Callable[[float], None]


class Stages(ProgressBar):
    """Shows which of `count` stages is at work, on `console`, while used as a context."""

    def __init__(self, count: int, console: Console):
        self._count = count
        self._done = 0
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f} %"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            # Without a terminal the bar would be written once, at the very end.
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=count)

    @contextmanager
    def stage(self, title: str) -> Iterator[Advance]:
        """One stage; call what it gives with the fraction of the stage that is done."""
        started = time.monotonic()
        self._bar.update(self._task, description=title, completed=self._done)

        def advance(fraction: float) -> None:
            self._bar.update(self._task, completed=self._done + fraction)

        yield advance
        self._done += 1
        self._bar.update(self._task, completed=self._done)
        seconds = time.monotonic() - started
        self._console.print(
            f"[{self._done}/{self._count}] {title} ({seconds:.1f} s)", markup=False, highlight=False
        )
