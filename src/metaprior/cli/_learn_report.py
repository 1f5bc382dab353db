"""What `metaprior learn` prints: the runs it read, and the findings on held-out runs."""

from pathlib import Path
from shlex import quote

from rich import box
from rich.console import Console
from rich.table import Table

from metaprior.cli._past_runs import PastRuns
from metaprior.cli._studies_table import studies_table
from metaprior.data.csv import space_as_toml
from metaprior.findings import Findings, HeldOutScores, Replay
from metaprior.words import listed, visible


def print_read(past: PastRuns, console: Console) -> None:
    """Runs, points, notes, and the space if it was inferred."""
    lengths = past.tasks.lengths
    each = f"{lengths.min()} to {lengths.max()}" if lengths.min() < lengths.max() else lengths[0]
    _say(
        console,
        f"Read {len(lengths)} runs from {past.origin}: {lengths.sum()} points, {each} per run; "
        f"{past.value} is {past.tasks.direction}d.",
    )
    if past.studies is not None:
        console.print(studies_table(past.studies))
    for note in past.notes:
        _say(console, f"Note: {note}")
    if past.inferred:
        _say(
            console,
            "\nThe space, inferred from the data (to change it, save it as space.toml, edit it, "
            f"and give it with --space):\n\n{space_as_toml(past.tasks.space).rstrip()}",
        )


def print_learned(findings: Findings, out: Path, console: Console) -> None:
    """The verdict, the held-out scores where there are any, and where the prior was saved."""
    if findings.interrupted:
        _say(console, "\nStopped early: this is the best prior so far.")
    _say(console, f"\n{findings.verdict}", style="bold")
    if findings.held_out is not None:
        console.print(_held_out_table(findings.held_out, findings.baseline))
    if findings.replay is not None:
        _say(
            console,
            f"Evaluations saved per run, relative to an {findings.baseline}, in replays of "
            f"recorded points: {_saved(findings.replay)}.",
        )
    for note in findings.notes:
        _say(console, f"Note: {note}")
    outliers = [past.label for past in findings.tasks if past.outlier]
    if outliers:
        _say(console, f"Note: unlike the other runs, so check them: {listed(outliers, 5)}.")
    if findings.seconds is not None:
        _say(console, f"\nLearning took {findings.seconds:.0f} s.")
    _say(console, f"\nSaved in {out}. Next, a report to read: metaprior report {quote(str(out))}")


def _held_out_table(held_out: HeldOutScores, baseline: str) -> Table:
    title = "Predictions of held-out runs" + (f" ({held_out.tasks} runs)" if held_out.tasks else "")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("")
    for heading in ("log-likelihood", "calibration error"):
        table.add_column(heading, justify="right")
    table.caption = "A higher log-likelihood is better; a calibration error of 0 is perfect."
    table.caption_justify = "left"
    for name, scores in (("learned prior", held_out.learned), (baseline, held_out.baseline)):
        table.add_row(name, _number(scores.log_likelihood), _number(scores.calibration_error))
    return table


def _saved(replay: Replay) -> str:
    interval = replay.saved_interval
    spread = f" (95 % interval {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
    return _number(replay.saved_evaluations, 1) + spread


def _number(value: float | None, decimals: int = 3) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def _say(console: Console, text: str, style: str | None = None) -> None:
    console.print(visible(text), style=style, markup=False, highlight=False, soft_wrap=True)
