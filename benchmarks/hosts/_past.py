"""Cells: which past tasks a prior is learned from, how they were explored, what is new to it."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import Trial

import metaprior as mp
from benchmarks.hosts import _lcbench, _zdt
from benchmarks.hosts._tasks import Point, Task
from metaprior.belief import Priors
from metaprior.data import Integer, Outputs, Space

RUN_LENGTH = 25
# Families, and whose past runs and priors they use.
FAMILIES = {"lcbench": "lcbench", "lcbench-accuracy": "lcbench", "zdt": "zdt"}


@dataclass(frozen=True)
class Cell:
    """What one prior is learned from and judged on.

    - `past`: how many past tasks; fewer are the first of more.
    - `tasks`: how many unseen tasks.
    - `budget`: of `learn`.
    """

    family: str
    past: int
    seed: int
    tasks: int
    budget: str

    @property
    def name(self) -> str:
        return f"{self.family}-{self.past}-{self.seed}"

    @property
    def prior_name(self) -> str:
        return f"{FAMILIES[self.family]}-{self.past}-{self.seed}"

    def unseen(self) -> list[Task]:
        """New tasks."""
        if self.family == "zdt":
            return [_zdt.task(self.seed, 1, i) for i in range(self.tasks)]
        names = _lcbench.names("test")
        order = np.random.default_rng([self.seed, 1]).permutation(len(names))
        count = 2 if self.family == "lcbench" else 1
        return [_lcbench.task(names[i], count) for i in order[: self.tasks]]


def past_runs(cell: Cell) -> Outputs:
    """The runs of the past tasks: two objectives by Optuna's TPE, of which ten trials are random.

    On LCBench, a query is answered by the nearest recorded configuration that is left.
    """
    if FAMILIES[cell.family] == "zdt":
        drawn = [_zdt.task(cell.seed, 0, i) for i in range(cell.past)]
        runs = [_explored(task, [cell.seed, i]) for i, task in enumerate(drawn)]
        return Outputs.from_runs(runs, space=_zdt.SPACE, outputs=_zdt.OBJECTIVES)
    names = _lcbench.names("development")
    order = np.random.default_rng([cell.seed, 0]).permutation(len(names))[: cell.past]
    runs = [_explored_table(names[i], [cell.seed, int(i)]) for i in order]
    return Outputs.from_runs(runs, space=_lcbench.SPACE, outputs=_lcbench.OBJECTIVES)


def priors_of(cell: Cell, folder: Path) -> Priors:
    """The priors of a cell: read if they are there, else learned and saved, with the time."""
    saved = folder / cell.prior_name
    if not (saved / "seconds.json").is_file():
        outputs, start = past_runs(cell), time.process_time()
        mp.learn_outputs(outputs, budget=cell.budget, seed=cell.seed).save(saved)
        taken = {"seconds": time.process_time() - start, "budget": cell.budget}
        (saved / "seconds.json").write_text(json.dumps(taken))
    found = mp.load_priors(saved)
    if cell.family == "lcbench-accuracy":
        return Priors({"accuracy": found["accuracy"]})
    return found


def suggested(trial: Trial, space: Space) -> Point:
    """A value for every dimension, asked of Optuna."""
    point: Point = {}
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        ask = trial.suggest_int if isinstance(dimension, Integer) else trial.suggest_float
        point[name] = ask(name, dimension.low, dimension.high, log=dimension.log)  # pyright: ignore
    return point


def new_study(sampler: BaseSampler, directions: list[Any]) -> optuna.Study:
    """An empty study."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(sampler=sampler, directions=directions)


def _explored(task: Task, seed: list[int]) -> tuple[list[Point], np.ndarray]:
    study = new_study(_sampler(seed), list(task.directions.values()))
    points = []
    for _ in range(RUN_LENGTH):
        trial = study.ask()
        points.append(suggested(trial, task.space))
        study.tell(trial, list(task.values(points[-1]).values()))
    return points, task.evaluate(points)


def _explored_table(name: str, seed: list[int]) -> tuple[list[Point], np.ndarray]:
    study = new_study(_sampler(seed), list(_lcbench.OBJECTIVES.values()))
    x, values = _lcbench.encoded(), _lcbench.recorded(name)
    chosen: list[int] = []
    for _ in range(RUN_LENGTH):
        trial = study.ask()
        squares = np.sum((x - _lcbench.SPACE.encode([suggested(trial, _lcbench.SPACE)])) ** 2, 1)
        squares[chosen] = np.inf
        chosen.append(int(np.argmin(squares)))
        study.tell(trial, values[chosen[-1]].tolist())
    return [_lcbench.rows()[i] for i in chosen], values[chosen]


def _sampler(seed: list[int]) -> BaseSampler:
    drawn = int(np.random.SeedSequence(seed).generate_state(1)[0])
    return TPESampler(seed=drawn)
