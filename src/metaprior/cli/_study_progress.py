"""Live progress of a study: a bar on a terminal, a line for each finished job elsewhere."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from metaprior.cli._progress_bar import ProgressBar
from metaprior.lab.studies import Job, JobsProgress


class StudyProgress(ProgressBar):
    """Shows where a study stands, on `console`, while used as a context."""

    def __init__(self, console: Console):
        self._console = console
        self._ended = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f} jobs"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, left="")

    def __call__(self, standing: JobsProgress) -> None:
        """What the engine calls when a job begins or ends."""
        completed = standing.skipped + standing.done + standing.failed
        at_work = standing.current is not None and completed < standing.total
        self._bar.update(
            self._task,
            total=standing.total,
            completed=completed,
            description=title(standing.current) if at_work else "",
            left=left(standing.seconds_left),
        )
        ended = standing.done + standing.failed
        if standing.current is None and standing.skipped:
            self._say(f"{standing.skipped} of {standing.total} jobs had finished before.")
        if standing.current is not None and ended > self._ended:
            self._ended = ended
            line = f"[{completed}/{standing.total}] {title(standing.current)}"
            remaining = left(standing.seconds_left) if completed < standing.total else ""
            self._say(f"{line} ({remaining})" if remaining else line)

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def title(job: Job | None) -> str:
    """A job in a few words: who, where, and which repetitions."""
    if job is None:
        return ""
    told = job.specification
    words = f"{told['method']} on {told['environment']}"
    if "reading" in told:
        words = f"{words}, {told['reading']} points"
    for name in ("configurations", "pairs", "seeds"):
        if name in told:
            several = told[name]
            one = several[0] if len(several) == 1 else f"{several[0]} to {several[-1]}"
            return f"{words}, {name} {one}".replace(" [", " (").replace("]", ")")
    return words


def left(seconds: float | None) -> str:
    """A time to wait, in words."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"
