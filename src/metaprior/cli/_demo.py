"""`metaprior demo`: checks where to write, computes, writes, and prints."""

import json
import os
from pathlib import Path

import jax
import numpy as np
from rich.console import Console

from metaprior.cli._demo_report import MADE_BY, numbers, print_report
from metaprior.cli._demo_study import (
    CONTEXT_SIZES,
    FPACOH,
    NUM_STAGES,
    QUICK,
    RANDOM,
    VANILLA,
    BraninPart,
    MixturePart,
    Sizes,
    branin_part,
    mixture_part,
)
from metaprior.cli._stages import Stages
from metaprior.lab.plots import demo_figure
from metaprior.metrics import coverage
from metaprior.plots import CoverageCurve, RegretCurves

PICTURE, NUMBERS, PRIOR = "metaprior-demo.png", "results.json", "prior"


def run_demo(out: Path, *, seed: int, quick: bool, as_json: bool) -> None:
    """Collect, learn, race and predict; then write to `out` and print the numbers.

    What could stop the writing is checked first, before a minute is spent on computing.
    """
    prepare_folder(out)
    sizes = QUICK if quick else Sizes()
    key_branin, key_mixture = jax.random.split(jax.random.key(seed))
    with Stages(NUM_STAGES + 1, Console(stderr=True)) as stages:
        branin = branin_part(sizes, seed, stages, key=key_branin)
        mixture = mixture_part(sizes, seed, stages, key=key_mixture)
        found = numbers(sizes, seed, branin, mixture)
        with stages.stage(f"Writing {out}"):
            # The numbers come first: they mark the folder as ours if the rest is interrupted.
            (out / NUMBERS).write_text(json.dumps(found, indent=2) + "\n")
            branin.prior.save(out / PRIOR)
            _figure(branin, mixture).savefig(out / PICTURE)
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


def _figure(branin: BraninPart, mixture: MixturePart):
    levels = np.linspace(0.0, 1.0, 41)
    curves = [
        CoverageCurve(name, size, levels, coverage(predictions.cdf[:, i], levels))
        for name, predictions in mixture.predictions.items()
        for i, size in enumerate(CONTEXT_SIZES)
    ]
    return demo_figure(
        (FPACOH, VANILLA, RANDOM),
        mixture.past,
        mixture.beliefs,
        curves,
        [RegretCurves(name, regret) for name, regret in branin.regret.items()],
        branin.landscape,
    )
