"""`metaprior demo`: checks where to write, computes, writes, and prints."""

import json
import os
from pathlib import Path

from rich.console import Console

from metaprior import __version__
from metaprior.cli._demo_report import print_report
from metaprior.cli._stages import Stages
from metaprior.lab.demo import (
    NUM_STAGES,
    QUICK,
    DemoSizes,
    compute_demo,
    demo_figure,
    demo_numbers,
)

PICTURE, NUMBERS, PRIOR = "metaprior-demo.png", "results.json", "prior"
MADE_BY = "metaprior demo"


def run_demo(out: Path, *, seed: int, quick: bool, as_json: bool) -> None:
    """Collect, learn, race and predict; then write to `out` and print the numbers.

    Whether `out` can be written is checked before computing for a minute.
    """
    prepare_folder(out)
    sizes = QUICK if quick else DemoSizes()
    with Stages(NUM_STAGES + 1, Console(stderr=True)) as stages:
        results = compute_demo(sizes, seed, stages.stage)
        numbers = demo_numbers(sizes, seed, results)
        found = {"made_by": MADE_BY, "version": __version__, **numbers}
        with stages.stage(f"Writing {out}"):
            # The numbers come first: they mark the folder as ours if the rest is interrupted.
            (out / NUMBERS).write_text(json.dumps(found, indent=2) + "\n")
            results.branin.prior.save(out / PRIOR)
            demo_figure(results).savefig(out / PICTURE)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        console = Console()
        print_report(found, console)
        written = f"\nPicture: {out / PICTURE}\nNumbers: {out / NUMBERS}\nPrior:   {out / PRIOR}"
        console.print(written, highlight=False, markup=False, soft_wrap=True)


def prepare_folder(out: Path) -> None:
    """Make `out`, or make sure that all it holds is the output of an earlier demo."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"Cannot write the demo to {out}: it is a file; name a folder.")
    out.mkdir(parents=True, exist_ok=True)
    # Names with a dot belong to the system, or are what an interrupted saving left.
    names = {path.name for path in out.iterdir() if not path.name.startswith(".")}
    foreign = sorted(names - {PICTURE, NUMBERS, PRIOR})
    if not foreign and names and not _is_ours(out / NUMBERS):
        foreign = sorted(names)
    if foreign:
        raise ValueError(
            f"Cannot write the demo to {out}: it holds {foreign[0]!r}, which no demo wrote; name "
            "a new or an empty folder with --out."
        )
    if not os.access(out, os.W_OK | os.X_OK):
        raise ValueError(f"Cannot write the demo to {out}: permission denied; name another folder.")


def _is_ours(numbers_file: Path) -> bool:
    """Whether the file holds the numbers of a demo."""
    try:
        found = json.loads(numbers_file.read_text())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("made_by") == MADE_BY
