"""What methods learn from the past runs of a cell, kept on disk so that it is learned once."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

import metaprior as mp
from benchmarks.field._past import Cell, past_runs
from benchmarks.field._pools import Family
from metaprior.belief import Prior
from metaprior.data import Tasks

LEARNERS: dict[str, Callable[[Tasks, int], Prior]] = {
    "fast": lambda tasks, seed: mp.learn(tasks, budget="fast", seed=seed),
    "normal": lambda tasks, seed: mp.learn(tasks, budget="normal", seed=seed),
    "averaged": lambda tasks, seed: mp.learn(tasks, method=mp.methods.AveragedGP(), seed=seed),
    "rank": lambda tasks, seed: mp.learn(tasks, method=mp.methods.RankWeightedGP(), seed=seed),
    "ablr": lambda tasks, seed: mp.learn(tasks, method=mp.methods.ABLR(), seed=seed),
    "pacoh": lambda tasks, seed: mp.learn(tasks, method=mp.methods.PacohMap(), seed=seed),
}


def prior_of(name: str, cell: Cell, family: Family, folder: Path) -> Prior:
    """What a learner learned from the past runs of a cell: read if it is there, else made."""
    saved = folder / cell.name / name
    if not (saved / "prior.json").is_file():
        LEARNERS[name](runs_of(cell, family, folder), cell.seed).save(saved)
    return mp.load(saved)


def runs_of(cell: Cell, family: Family, folder: Path) -> Tasks:
    """The past runs of a cell: read if they are there, else collected."""
    file = folder / cell.name / "past.npz"
    if not file.is_file():
        tasks = past_runs(cell, family)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, x=tasks.x, y=tasks.y, mask=tasks.mask)
    with np.load(file) as arrays:
        return Tasks(family.space, arrays["x"], arrays["y"], arrays["mask"], "maximize")
