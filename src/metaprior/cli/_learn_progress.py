"""Live progress of learning: a bar on a terminal, a line for each stage elsewhere."""

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from metaprior.cli._progress_bar import ProgressBar
from metaprior.words import visible


class LearnBar(ProgressBar):
    """Shows the progress of `learn` on `console`, while used as a context."""

    def __init__(self, console: Console):
        self._console = console
        self._started = time.monotonic()
        self._stage = ""
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[standing]}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("Reading", total=1.0, standing="")

    def __call__(self, progress: Any) -> None:
        """What `learn` calls now and then."""
        standing = standing_of(progress.trying, progress.best)
        self._bar.update(
            self._task,
            description=progress.stage,
            completed=progress.fraction,
            standing=standing,
        )
        if progress.stage != self._stage:
            self._stage = progress.stage
            seconds = time.monotonic() - self._started
            words = f"{progress.stage} ({seconds:.0f} s{', ' + standing if standing else ''})"
            self._console.print(visible(words), markup=False, highlight=False, soft_wrap=True)


def standing_of(trying: str, best: float | None) -> str:
    """The configurations being tried and the best held-out score so far."""
    parts = [trying] if trying else []
    parts += [f"best held-out score {best:.3f}"] if best is not None else []
    return ", ".join(parts)
