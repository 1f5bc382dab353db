"""What `metaprior learn` says: what it read, and what it found on held-out runs."""

from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from metaprior.cli._past_runs import PastRuns
from metaprior.cli._studies_table import studies_table
from metaprior.data.csv import space_as_toml
from metaprior.words import listed

NAMES = {"learned": "learned prior", "vanilla": "vanilla GP"}


def print_read(past: PastRuns, console: Console) -> None:
    """Runs, points, notes, and the space if nobody had given one."""
    lengths = past.tasks.lengths
    each = f"{lengths.min()} to {lengths.max()}" if lengths.min() < lengths.max() else lengths[0]
    _say(
        console,
        f"Read {len(lengths)} runs from {past.origin}: {lengths.sum()} points, {each} a run; "
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


def print_learned(
    findings: dict[str, Any], names_of_runs: list[str], out: Path, console: Console
) -> None:
    """The verdict and the held-out numbers, as far as there are any, and where the prior is."""
    if findings.get("interrupted"):
        _say(console, "\nStopped early: this is the best prior so far.")
    if findings.get("verdict"):
        _say(console, f"\n{findings['verdict']}", style="bold")
    held_out = findings.get("held_out", {})
    measured = {name: held_out[key] for key, name in NAMES.items() if held_out.get(key)}
    if measured:
        console.print(_held_out_table(measured, held_out))
    saved = _saved_evaluations(findings.get("replay", {}))
    if saved:
        _say(console, saved)
    for note in findings.get("notes", []):
        _say(console, f"Note: {note}")
    odd = [names_of_runs[t["task"]] for t in findings.get("tasks", []) if t.get("outlier")]
    if odd:
        _say(console, f"Note: unlike the other runs: {listed(odd, 5)}.")
    _say(console, f"\nSaved in {out}. Next, a report to read: metaprior report {_quoted(out)}")


def _held_out_table(measured: dict[str, dict[str, Any]], held_out: dict[str, Any]) -> Table:
    tasks = held_out.get("tasks")
    title = "Predictions of held-out runs" + (f" ({tasks} runs)" if tasks else "")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("")
    for heading in ("log-likelihood", "calibration error"):
        table.add_column(heading, justify="right")
    table.caption = "A higher log-likelihood is better; a calibration error of 0 is perfect."
    table.caption_justify = "left"
    for name, numbers in measured.items():
        keys = ("log_likelihood", "calibration_error")
        table.add_row(name, *(_number(numbers.get(key)) for key in keys))
    return table


def _saved_evaluations(replay: dict[str, Any]) -> str:
    saved = replay.get("saved_evaluations")
    if saved is None:
        return ""
    interval = replay.get("saved_interval")
    spread = f" (95 % interval {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
    return f"Evaluations saved in replays of held-out runs: {saved:.1f}{spread}."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _quoted(path: Path) -> str:
    text = str(path)
    return f"'{text}'" if " " in text else text


def _say(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
