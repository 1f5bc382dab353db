"""The paper's studies, whole: run them in pieces, keep their records, write the results page.

    python -m benchmarks.results pieces                    # all pieces and their commands
    python -m benchmarks.results run search-gp offline     # run, or resume, these pieces
    python -m benchmarks.results keep                      # what the page needs, compressed
    python -m benchmarks.results page --out docs/results.md

A piece is one `metaprior study`; its folder is `build/studies/<piece>`. `run` stops after
`--seconds` (570) with exit code 3 and what has finished on disk; the same call goes on, and leaves
out pieces that are finished. Pieces with `learn` run on CPU cores and need no GPU. `keep` writes
small Parquet files to `benchmarks/results/records`, from which anybody can write the page again,
without a GPU.
"""

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

from benchmarks.results._figures import draw_figures
from benchmarks.results._kept import RECORDS, keep
from benchmarks.results._page import page
from benchmarks.results._pieces import CPU, PIECES, pieces_named
from benchmarks.results._run import FINISHED, UNFINISHED, run_piece

# Ignored by git: whole studies are large, and what is kept of them is not.
STUDIES = Path("build/studies")
IMAGES = "images/results"
SECONDS, GPU_JOBS = 570, 14
BAD_INPUT = 2


def main() -> int:
    arguments = _arguments()
    try:
        return _COMMANDS[arguments.command](arguments)
    except (FileNotFoundError, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return BAD_INPUT


def _pieces(arguments: argparse.Namespace) -> int:
    for piece in PIECES.values():
        jobs = _jobs(arguments, piece.device)
        command = shlex.join(piece.command(arguments.studies, jobs, arguments.smoke))
        print(f"{piece.name} ({piece.device})\n    {command}")
    return FINISHED


def _run(arguments: argparse.Namespace) -> int:
    worst, deadline = FINISHED, time.monotonic() + arguments.seconds
    for piece in pieces_named(arguments.names):
        code = run_piece(
            piece,
            arguments.studies,
            jobs=_jobs(arguments, piece.device),
            seconds=max(0.0, deadline - time.monotonic()),
            smoke=arguments.smoke,
            machine=arguments.machine,
        )
        if code == UNFINISHED:
            return code
        # A piece whose jobs failed does not keep the others from running.
        worst = max(worst, code)
    return worst


def _keep(arguments: argparse.Namespace) -> int:
    for path in keep(arguments.studies, arguments.records):
        print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")
    return FINISHED


def _page(arguments: argparse.Namespace) -> int:
    text = page(arguments.records, IMAGES)
    for path in draw_figures(arguments.records, arguments.out.parent / IMAGES):
        print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")
    arguments.out.write_text(text)
    print(arguments.out)
    return FINISHED


def _jobs(arguments: argparse.Namespace, device: str) -> int:
    return arguments.jobs or ((os.cpu_count() or 1) if device == CPU else GPU_JOBS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in _HELP.items():
        command = commands.add_parser(name, help=words, description=words)
        command.add_argument(
            "--studies", type=Path, default=STUDIES, help="the folder of the studies"
        )
        if name in ("pieces", "run"):
            command.add_argument("--jobs", type=int, help="processes (14 on a GPU, or all cores)")
            command.add_argument("--smoke", action="store_true", help="tiny, to see that it runs")
        else:
            command.add_argument(
                "--records", type=Path, default=RECORDS, help="the folder of the kept records"
            )
        if name == "run":
            command.add_argument("names", nargs="*", help="pieces; all of them by default")
            command.add_argument("--seconds", type=float, default=SECONDS, help="limit of the call")
            command.add_argument("--machine", default="", help="what it runs on, for the page")
        if name == "page":
            command.add_argument("--out", type=Path, default=Path("docs/results.md"), help="page")
    return parser.parse_args()


_HELP = {
    "pieces": "List the pieces of the full study and their commands.",
    "run": "Run or resume pieces.",
    "keep": "Write small files of what the page needs.",
    "page": "Write the results page and its figures from the kept records.",
}
_COMMANDS = {"pieces": _pieces, "run": _run, "keep": _keep, "page": _page}

if __name__ == "__main__":
    sys.exit(main())
