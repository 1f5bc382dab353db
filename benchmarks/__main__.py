"""The speed benchmark: our times beside those of GPyTorch and BoTorch, measured in one go.

    python -m benchmarks [--quick] [--only ROW,...] [--json FILE] [--figure FILE]

All processes have one thread on one core. Nothing is asserted: the table says what was met here and
now. docs/benchmarks.md says how each row is measured.
"""

import argparse
import importlib.util
import json
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._cost_curve import draw
from benchmarks._processes import stay_on_one_core
from benchmarks._row import Effort, Row, skipped
from benchmarks._rows import MEASUREMENTS


def main() -> None:
    arguments = _arguments()
    stay_on_one_core()
    console = Console()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        rows = _measure(arguments.only, Effort(arguments.quick, cache), console)
    console.print(_table(rows))
    met, known = sum(row.met is True for row in rows), sum(row.met is not None for row in rows)
    console.print(f"{met} of {known} targets met, in {time.perf_counter() - began:.0f} s.")
    if arguments.json is not None:
        records = [row._asdict() for row in rows]
        arguments.json.write_text(json.dumps(records, indent=2, ensure_ascii=False) + "\n")
    curves = [row.curve for row in rows if row.curve is not None]
    if curves and arguments.figure is not None:
        draw(curves, arguments.figure)
        console.print(f"The cost of a step is drawn in {arguments.figure}.")


def _measure(names: list[str], effort: Effort, console: Console) -> list[Row]:
    """The rows of every measurement in `names`, told one by one."""
    has_torch = importlib.util.find_spec("torch") is not None
    rows: list[Row] = []
    for number, name in enumerate(names, start=1):
        measurement = MEASUREMENTS[name]
        # A line, not a spinner: the measured processes have this core to themselves.
        console.print(f"[{number}/{len(names)}] {name} ...", end=" ", markup=False)
        start = time.perf_counter()
        if measurement.needs_torch and not has_torch:
            rows.append(skipped(name, "skipped: needs torch, which `make bench` installs"))
        else:
            try:
                rows += measurement.rows(effort)
            except RuntimeError as error:  # the other rows are still worth having
                console.print(str(error), markup=False)
                rows.append(skipped(name, "failed: see above"))
        console.print(f"{time.perf_counter() - start:.0f} s")
    return rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument(
        "--only",
        type=_names,
        default=list(MEASUREMENTS),
        metavar="ROW,...",
        help=f"only these of {', '.join(MEASUREMENTS)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here too")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the cost of a step here")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in MEASUREMENTS:
            raise argparse.ArgumentTypeError(
                f"there is no row {name!r}; choose from {', '.join(MEASUREMENTS)}."
            )
    return names


def _table(rows: list[Row]) -> Table:
    table = Table("what")
    for heading in ("ours", "reference", "ratio", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("met?")
    for row in rows:
        met = {True: "[green]yes[/]", False: "[red]no[/]", None: "–"}[row.met]
        table.add_row(row.what, row.ours, row.reference, row.ratio, row.target, met)
    return table


if __name__ == "__main__":
    main()
