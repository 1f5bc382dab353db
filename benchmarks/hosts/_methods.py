"""The methods that are compared: each asks for a point of one task and is told its values."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna
from optuna.samplers import BaseSampler

from benchmarks.hosts._past import Cell, new_study, past_runs, priors_of, suggested
from benchmarks.hosts._tasks import Point, Task
from metaprior.adapters.optuna import MetaPriorSampler
from metaprior.belief import Priors
from metaprior.bo import MultiOptimizer, Optimizer
from metaprior.data import Outputs


class Searcher(Protocol):
    """One method on one task."""

    def ask(self) -> Point: ...

    def tell(self, point: Point, values: dict[str, float]) -> None: ...


@dataclass(frozen=True)
class Setting:
    """What methods may know of a cell: its past runs and what was learned from them."""

    cell: Cell
    folder: Path

    @cached_property
    def priors(self) -> Priors:
        return priors_of(self.cell, self.folder)

    @cached_property
    def past(self) -> Outputs:
        return past_runs(self.cell)


class ByOptimizer:
    """Our own optimiser: expected improvement of the bound for one objective, of the hypervolume
    for several."""

    def __init__(self, priors: Priors, seed: int):
        self._names = list(priors.objectives)
        self._single = len(self._names) == 1
        self._optimizer: Any = (
            Optimizer(priors[self._names[0]], seed=seed)
            if self._single
            else MultiOptimizer(priors, seed=seed)
        )

    def ask(self) -> Point:
        return self._optimizer.ask()

    def tell(self, point: Point, values: dict[str, float]) -> None:
        self._optimizer.tell(point, values[self._names[0]] if self._single else values)


class ByStudy:
    """A sampler of Optuna."""

    def __init__(self, sampler: BaseSampler, task: Task):
        self._study = new_study(sampler, list(task.directions.values()))
        self._space = task.space
        self._trial: Any = None

    def ask(self) -> Point:
        self._trial = self._study.ask()
        return suggested(self._trial, self._space)

    def tell(self, point: Point, values: dict[str, float]) -> None:
        self._study.tell(self._trial, list(values.values()))


class AtRandom:
    """Uniform points."""

    def __init__(self, task: Task, seed: int):
        self._space, self._rng = task.space, np.random.default_rng(seed)

    def ask(self) -> Point:
        return self._space.decode(self._rng.uniform(size=(1, self._space.num_columns)))[0]

    def tell(self, point: Point, values: dict[str, float]) -> None:
        pass


@dataclass(frozen=True)
class Method:
    """How a searcher is made.

    - `uses_past`: what it does depends on the past runs; if not, it is run once for all sizes of
      the past.
    """

    searcher: Callable[[Setting, Task, int], Searcher]
    uses_past: bool


def _gp_sampler(setting: Setting, task: Task, seed: int) -> Searcher:
    return ByStudy(optuna.samplers.GPSampler(seed=seed), task)


def _ax(function: str) -> Callable[[Setting, Task, int], Searcher]:
    """A searcher of a module that needs Ax."""

    def searcher(setting: Setting, task: Task, seed: int) -> Searcher:
        from benchmarks.hosts import _ax_reference

        return getattr(_ax_reference, function)(setting, task, seed)

    return searcher


OURS, SAMPLER, TPE, GP, RANDOM = (
    "Optimizer",
    "MetaPriorSampler",
    "TPESampler",
    "GPSampler",
    "random",
)
AX_PRIORS, AX_DEFAULT, AX_TRANSFER = "Ax, our priors", "Ax, default", "Ax, BOTL"
METHODS: dict[str, Method] = {
    OURS: Method(lambda setting, task, seed: ByOptimizer(setting.priors, seed), True),
    SAMPLER: Method(
        lambda setting, task, seed: ByStudy(MetaPriorSampler(setting.priors, seed=seed), task), True
    ),
    TPE: Method(
        lambda setting, task, seed: ByStudy(optuna.samplers.TPESampler(seed=seed), task), False
    ),
    RANDOM: Method(lambda setting, task, seed: AtRandom(task, seed), False),
}
if importlib.util.find_spec("torch") is not None:
    METHODS[GP] = Method(_gp_sampler, False)
if importlib.util.find_spec("ax") is not None:
    METHODS[AX_PRIORS] = Method(_ax("by_priors"), True)
    METHODS[AX_DEFAULT] = Method(_ax("by_default"), False)
    METHODS[AX_TRANSFER] = Method(_ax("by_transfer"), True)
