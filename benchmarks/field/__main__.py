"""The field benchmark: real evaluations, new tasks, all methods under one protocol.

    python -m benchmarks.field run --out field/ --workers 16 --phase test
    python -m benchmarks.field gather --out field/ --to field.parquet
    python -m benchmarks.field show --out field/ --page docs/field.md
    python -m benchmarks.field hpob --data hpob-data/ --out hpob/ --workers 16
    python -m benchmarks.field hpob-show hpob/*.json published/*.json

A prior is learned from the past runs of a cell (a family, a regime, which is how the past was
collected, and a seed) and asked on new tasks; every task is a finite pool of configurations. There
is one file of records for each prior and method, and what is there is not made again: a run that
was ended goes on. Jobs are ordered by seed, so that the records of a run that was ended early are
balanced; `--seconds` ends one. A job that fails stops no other; the exit code is 1 then.

`--phase validation`, the default, judges on development tasks only, and is for choosing; `test` is
for reporting. The split is in `split.json`.
"""

import argparse
import os
import shlex
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks._processes import ONE_THREAD
from benchmarks.field._cells import jobs_of
from benchmarks.field._hpob import read_results, table
from benchmarks.field._hpob_jobs import combine, hpob_jobs
from benchmarks.field._methods import METHODS
from benchmarks.field._past import REGIMES, cells_of
from benchmarks.field._pools import FAMILIES
from benchmarks.field._records import gather, note_run
from benchmarks.field._schedule import Job, run_jobs
from benchmarks.field._show import show

SOFTWARE = ("metaprior", "jax", "numpy", "torch", "botorch", "optuna")


def main() -> int:
    arguments = _arguments()
    try:
        return COMMANDS[arguments.command](arguments)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(arguments: argparse.Namespace) -> int:
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.priors)
    cells = cells_of(arguments.families, arguments.regimes, arguments.phase, seeds)
    jobs = jobs_of(cells, arguments.methods, arguments.budget, arguments.out)
    entry = {"date": f"{date.today():%d %B %Y}", "workers": arguments.workers}
    entry |= {"software": {name: _version(name) for name in SOFTWARE}}
    command = shlex.join(["python", "-m", "benchmarks.field", *sys.argv[1:]])
    note_run(arguments.out, entry, [command])
    return _carry_out(jobs, arguments)


def _show(arguments: argparse.Namespace) -> int:
    show(arguments.out, arguments.page, arguments.baseline)
    return 0


def _gather(arguments: argparse.Namespace) -> int:
    gather(arguments.out, arguments.to)
    return 0


def _hpob(arguments: argparse.Namespace) -> int:
    jobs = hpob_jobs(arguments.data, arguments.out, arguments.methods, arguments.budget)
    status = _carry_out(jobs, arguments)
    combine(arguments.out)
    return status


def _hpob_show(arguments: argparse.Namespace) -> int:
    print(table({file.stem: read_results(file) for file in arguments.results}), end="")
    return 0


COMMANDS = {"run": _run, "show": _show, "gather": _gather, "hpob": _hpob, "hpob-show": _hpob_show}


def _carry_out(jobs: list[Job], arguments: argparse.Namespace) -> int:
    """Run the jobs; what failed is written to a file each, and the exit code is 1 then."""
    for name, value in ONE_THREAD.items():  # inherited by the processes
        os.environ.setdefault(name, value)
    print(f"{len(jobs)} jobs to do", flush=True)
    outcome = run_jobs(
        jobs, arguments.workers, arguments.seconds, lambda line: print(line, flush=True)
    )
    folder = arguments.out / "failed"
    for name, reason in outcome.failed.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name.replace('/', '_')}.txt").write_text(reason)
    done, failed = len(outcome.done), len(outcome.failed)
    print(f"{done} jobs done, {failed} failed, {outcome.left} not started")
    if outcome.failed:
        print(f"The reasons are in {folder}.", file=sys.stderr)
    return 1 if outcome.failed else 0


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.field",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="learn, ask and write records")
    run.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    run.add_argument("--regimes", nargs="+", choices=REGIMES, default=list(REGIMES))
    run.add_argument("--phase", choices=("validation", "test"), default="validation")
    run.add_argument("--priors", type=int, default=9, help="per cell (9)")
    run.add_argument("--first-seed", type=int, default=0, help="of the priors (0)")
    hpob = commands.add_parser("hpob", help="the same methods on HPO-B, in its results' format")
    hpob.add_argument("--data", type=Path, required=True, help="folder of HPO-B's JSON files")
    for command in (run, hpob):
        command.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
        command.add_argument(
            "--budget", choices=("fast", "normal"), default="normal", help="of `learn` (normal)"
        )
        command.add_argument("--workers", type=int, default=1, help="processes (1)")
        command.add_argument("--seconds", type=float, help="start no job after so many")
        command.add_argument("--out", type=Path, required=True, help="folder of priors and records")
    show = commands.add_parser("show", help="print the tables as Markdown, or write the page")
    show.add_argument("--page", type=Path, help="write the page here, and figures beside it")
    show.add_argument("--baseline", help="what the others are compared with (learn)")
    gather = commands.add_parser("gather", help="put all records into one small file")
    gather.add_argument("--to", type=Path, required=True, help="the file")
    for command in (show, gather):
        command.add_argument(
            "--out", type=Path, required=True, help="folder of records, or a file made by gather"
        )
    results = commands.add_parser("hpob-show", help="compare files of results, ours or published")
    results.add_argument("results", type=Path, nargs="+", help="files named after their methods")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
