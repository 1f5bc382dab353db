"""What methods learn from the past runs of a cell, kept on disk so that it is learned once."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import metaprior as mp
from benchmarks.field._past import Cell
from benchmarks.field._pools import Family
from metaprior.belief import Prior
from metaprior.data import Tasks

SECONDS = "learning-seconds.txt"
LEARNERS: dict[str, Callable[[Tasks, int], Prior]] = {
    "fast": lambda tasks, seed: mp.learn(tasks, budget="fast", seed=seed),
    "normal": lambda tasks, seed: mp.learn(tasks, budget="normal", seed=seed),
    "averaged": lambda tasks, seed: mp.learn(tasks, method=mp.methods.AveragedGP(), seed=seed),
    "rank": lambda tasks, seed: mp.learn(tasks, method=mp.methods.RankWeightedGP(), seed=seed),
    "ablr": lambda tasks, seed: mp.learn(tasks, method=mp.methods.ABLR(), seed=seed),
    "learned": lambda tasks, seed: mp.learn(tasks, method=mp.methods.LearnedGP(), seed=seed),
    "process": lambda tasks, seed: mp.learn(tasks, method=mp.methods.NeuralProcess(), seed=seed),
    "pacoh": lambda tasks, seed: mp.learn(tasks, method=mp.methods.PacohMap(), seed=seed),
}


def prior_of(name: str, cell: Cell, family: Family, folder: Path) -> Prior:
    """What a learner learned from the past runs of a cell: read if it is there, else made."""
    saved = folder / cell.name / name
    if not is_learned(name, cell, folder):
        tasks = runs_of(cell, family, folder)
        began = time.process_time()
        prior = LEARNERS[name](tasks, cell.seed)
        seconds = time.process_time() - began
        prior.save(saved)
        (saved / SECONDS).write_text(f"{seconds:.2f}")
    return mp.load(saved)


def is_learned(name: str, cell: Cell, folder: Path) -> bool:
    """Whether it is there: the time that learning took is written last."""
    return (folder / cell.name / name / SECONDS).is_file()


def learning_seconds(name: str, cell: Cell, folder: Path) -> float:
    """CPU time that learning took."""
    return float((folder / cell.name / name / SECONDS).read_text())


def runs_of(cell: Cell, family: Family, folder: Path) -> Tasks:
    """The past runs of a cell: read if they are there, else collected."""
    file = folder / cell.name / "past.npz"
    if not file.is_file():
        keep_runs(cell.past_runs(family), cell, folder)
    with np.load(file) as arrays:
        return Tasks(family.space, arrays["x"], arrays["y"], arrays["mask"], "maximize")


def keep_runs(tasks: Tasks, cell: Cell, folder: Path) -> None:
    """Write the past runs of a cell, where `runs_of` finds them."""
    file = folder / cell.name / "past.npz"
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"past-{os.getpid()}.npz")
    np.savez(part, x=tasks.x, y=tasks.y, mask=tasks.mask)
    part.replace(file)
