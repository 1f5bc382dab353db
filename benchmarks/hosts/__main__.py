"""Learned priors in the hosts they plug into, beside what the hosts have of their own.

    python -m benchmarks.hosts run --out hosts/                  # all of it: days on one core
    python -m benchmarks.hosts run --out hosts/ --families zdt --methods TPESampler GPSampler
    python -m benchmarks.hosts fits --out hosts/                 # fit time as the past grows
    python -m benchmarks.hosts show --out hosts/ > docs/hosts-results.md
    python -m benchmarks.hosts unpack --out hosts/               # the records behind that page

Families: `lcbench`, accuracy and a cost proxy; `lcbench-accuracy`, the first alone; `zdt`, random
problems like ZDT1 and ZDT2. A prior per objective is learned from the past runs of a cell (a
family, a number of past tasks, a seed), and every method gets so many trials on unseen tasks. A
file of records is written for each cell and method, task by task, and what is there is not made
again: a run that was ended goes on, and so does the one whose records `unpack` brings back. A
method that knows nothing of the past is run once per seed.
"""

import argparse
import os
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from benchmarks._processes import ONE_THREAD
from benchmarks.hosts._cells import records_of_cells
from benchmarks.hosts._fits import record_of_fits, record_of_trees
from benchmarks.hosts._methods import METHODS
from benchmarks.hosts._past import FAMILIES, Cell
from benchmarks.hosts._records import PACKED, note_command, pack, read, unpack
from benchmarks.hosts._show import page


def main() -> None:
    arguments = _arguments()
    if arguments.command == "show":
        records = read(arguments.out)
        if arguments.pack is not None:
            pack(records, arguments.pack)
        print(page(records), end="")
        return
    if arguments.command == "unpack":
        unpack(PACKED, arguments.out)
        return
    note_command(arguments.out, shlex.join(["python", "-m", "benchmarks.hosts", *sys.argv[1:]]))
    os.environ.update(ONE_THREAD)
    cells = [
        Cell(family, past, seed, arguments.tasks, arguments.budget)
        for seed in range(arguments.first_prior, arguments.first_prior + arguments.priors)
        for past in arguments.past
        for family in arguments.families
    ]
    if arguments.command == "fits":
        record_of_trees(arguments.out)
        for cell in cells:
            record_of_fits(cell, arguments.told, arguments.out)
        return
    settings = (arguments.methods, arguments.trials, arguments.out)
    # Processes that share a seed share files: one process per seed and family of past runs, started
    # afresh, since JAX does not survive a fork.
    groups: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((FAMILIES[cell.family], cell.seed), []).append(cell)
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(records_of_cells, own, *settings): own for own in groups.values()}
        for count, job in enumerate(as_completed(jobs), start=1):
            job.result()
            print(f"[{count}/{len(jobs)}] {jobs[job][0].name}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hosts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="learn, ask and write records")
    run.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    run.add_argument("--trials", type=int, default=30)
    run.add_argument("--workers", type=int, default=1)
    fits = commands.add_parser("fits", help="time a fit as the past grows")
    fits.add_argument("--told", type=int, default=2, help="results of the run (2)")
    show = commands.add_parser("show", help="print the tables as Markdown")
    again = commands.add_parser("unpack", help="write the packed records to a folder")
    for command in (run, fits):
        command.add_argument("--past", nargs="+", type=int, default=[2, 10, 24])
        command.add_argument("--first-prior", type=int, default=0)
        command.add_argument("--tasks", type=int, default=11, help="unseen ones per prior (11)")
        command.add_argument("--budget", choices=("fast", "normal"), default="normal")
    run.add_argument("--families", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    run.add_argument("--priors", type=int, default=9, help="per cell (9)")
    fits.add_argument("--families", nargs="+", choices=list(FAMILIES), default=["lcbench-accuracy"])
    fits.add_argument("--priors", type=int, default=1, help="per cell (1)")
    for command in (run, fits, show, again):
        command.add_argument("--out", type=Path, required=True, help="folder of priors and records")
    show.add_argument("--pack", type=Path, help="write all records to this file, compressed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
