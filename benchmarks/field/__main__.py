"""The field benchmark: real evaluations, new tasks, all methods under one protocol.

    python -m benchmarks.field run --lcbench lcbench.parquet --out field/ --workers 16
    python -m benchmarks.field show --out field/ > docs/field.md

A prior is learned from the past runs of a cell (a family, what collected the past, a seed) and
asked on unseen tasks; every task is a finite pool of rows. One file of records is written for
each prior and method, and what is there is not made again: a run that was ended goes on.
`--phase validation`, the default, judges on development tasks only, and is for choosing; `test` is
for reporting. The split is in `split.json`.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from benchmarks.field._cells import records_of_cell
from benchmarks.field._methods import METHODS
from benchmarks.field._past import Cell
from benchmarks.field._pools import TABLES
from benchmarks.field._show import page

FAMILIES = ("lcbench", *TABLES)
REGIMES = ("gp", "tpe", "grid")


def main() -> None:
    arguments = _arguments()
    if arguments.command == "show":
        print(page(arguments.out), end="")
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    families = [f for f in arguments.families if f in TABLES or arguments.lcbench is not None]
    cells = [
        Cell(family, regime, arguments.phase, seed)
        for seed in range(arguments.priors)
        for regime in arguments.regimes
        for family in families
    ]
    settings = (arguments.methods, arguments.budget, arguments.lcbench, arguments.out)
    # One process per prior: started afresh, since JAX does not survive a fork.
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(records_of_cell, cell, *settings): cell for cell in cells}
        for count, job in enumerate(as_completed(jobs), start=1):
            job.result()
            print(f"[{count}/{len(jobs)}] {jobs[job].name}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.field",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="learn, ask and write records")
    run.add_argument(
        "--lcbench", type=Path, help="the Parquet file; without it, LCBench is left out"
    )
    run.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    run.add_argument("--regimes", nargs="+", choices=REGIMES, default=["gp", "tpe"])
    run.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    run.add_argument("--phase", choices=("validation", "test"), default="validation")
    run.add_argument("--priors", type=int, default=9, help="per cell (9)")
    run.add_argument("--budget", choices=("fast", "normal"), default="normal", help="of `learn`")
    run.add_argument("--workers", type=int, default=1)
    show = commands.add_parser("show", help="print the tables as Markdown")
    for command in (run, show):
        command.add_argument("--out", type=Path, required=True, help="folder of priors and records")
    return parser.parse_args()


if __name__ == "__main__":
    main()
