"""The methods that are compared: what they learn, what they believe, and how they ask."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.field._learners import prior_of, runs_of
from benchmarks.field._past import REGIMES, Cell, tpe
from benchmarks.field._pools import Family, Pool
from benchmarks.field._runs import Searcher, by_belief, in_order
from metaprior.belief import AbstractBelief, Prior, belief_of
from metaprior.bo import LogExpectedImprovement, RestlessConfidenceBound
from metaprior.data import Tasks
from metaprior.methods import AbstractMethod, TrainedContents, Weighed

LEARN = "learn"
BOUND = RestlessConfidenceBound()
# How many of the past's best configurations are asked before a run is left to a GP.
NUM_BEST = 3


class Setting(NamedTuple):
    """Everything a method may know of a cell.

    - `budget`: of `learn`, where a method starts from what it chose.
    """

    cell: Cell
    family: Family
    folder: Path
    budget: str

    def prior(self, learner: str) -> Prior:
        """What a learner learned from the past runs."""
        return prior_of(learner, self.cell, self.family, self.folder)

    @property
    def past(self) -> Tasks:
        """The past runs."""
        return runs_of(self.cell, self.family, self.folder)


@dataclass(frozen=True)
class Method:
    """A way to search a new task.

    - `learner`: what has to be learned before, if anything; `LEARN` is `learn` with its budget.
    - `regimes`: where it can be used.
    - `uses_past`: without, a search is the same in all regimes with the same configurations.
    """

    search: Callable[[Setting], Searcher]
    learner: str | None = None
    regimes: tuple[str, ...] = REGIMES
    uses_past: bool = True

    def learner_of(self, budget: str) -> str | None:
        """The learner, by the name under which its prior is kept."""
        return budget if self.learner == LEARN else self.learner


def label(name: str, budget: str) -> str:
    """The name under which records are kept: what comes from `learn` depends on its budget."""
    if METHODS[name].learner == LEARN and budget != "normal":
        return f"{name} ({budget})"
    return name


def _by(learner: str) -> Method:
    return Method(lambda setting: by_belief(setting.prior(learner).belief, BOUND), learner)


def _learn(setting: Setting) -> Searcher:
    return by_belief(setting.prior(setting.budget).belief, BOUND)


def _without_guard(setting: Setting) -> Searcher:
    return by_belief(setting.prior(setting.budget).belief.unguarded, BOUND)


def _averaged(setting: Setting) -> Searcher:
    return by_belief(setting.prior("averaged").belief, LogExpectedImprovement())


def weighed(setting: Setting, method: Callable[[AbstractMethod], Weighed]) -> AbstractBelief:
    """What `learn` chose, in a mixture weighted by evidence.

    - `method`: the mixture, from the method that `learn` chose, without guard or mixture of its
      own.
    """
    prior = setting.prior(setting.budget)
    base = method(getattr(prior.method, "base", prior.method))
    contents = TrainedContents(base, base.beside_past(prior.surrogate.unguarded, setting.past))
    belief = belief_of(contents.settings, contents.arrays, setting.family.space.num_inputs)
    assert belief is not None
    return belief


def _weighed(past_weight: float) -> Method:
    def search(setting: Setting) -> Searcher:
        belief = weighed(setting, lambda base: Weighed(base, past_weight=past_weight))
        return by_belief(belief, BOUND)

    return Method(search, LEARN)


def _past_best(setting: Setting) -> Searcher:
    """First the configurations that would have served the past runs best, one after another, then
    the averaged GP with expected improvement."""
    tasks = setting.past
    averaged = setting.prior("averaged").belief
    acquisition = LogExpectedImprovement()

    def choose(pool: Pool, num: int, seed: int) -> list[int]:
        order = greedy_portfolio(tasks, pool, NUM_BEST)
        while len(order) < num:
            belief = averaged.condition(pool.x[order], pool.y[order])
            values = acquisition.score(belief, pool.x, np.random.default_rng(seed)).values
            values[order] = -np.inf
            order.append(int(np.argmax(values)))
        return order

    return in_order(choose)


def greedy_portfolio(tasks: Tasks, pool: Pool, num: int) -> list[int]:
    """Rows of the pool, each the nearest to a past configuration that adds most: the mean over
    past runs of the best value so far, as a share of the run's range, is what is raised.

    The value of a configuration in a run that has not tried it is that of the run's nearest one.
    """
    candidates = np.concatenate([x[m] for x, m in zip(tasks.x, tasks.mask, strict=True)])
    shares = []
    for x, y, mask in zip(tasks.x, tasks.y, tasks.mask, strict=True):
        own = y[mask]
        squares = np.sum((candidates[:, None] - x[mask][None]) ** 2, axis=2)
        shares.append((own[np.argmin(squares, axis=1)] - own.min()) / max(np.ptp(own), 1e-12))
    shares, order = np.stack(shares), []
    best = np.zeros(len(shares))
    while len(order) < num:
        gain = np.maximum(shares, best[:, None]).mean(axis=0)
        chosen = int(np.argmax(gain))
        best = np.maximum(best, shares[:, chosen])
        squares = np.sum((pool.x - candidates[chosen]) ** 2, axis=1)
        squares[order] = np.inf
        order.append(int(np.argmin(squares)))
    return order


def _random(setting: Setting) -> Searcher:
    def choose(pool: Pool, num: int, seed: int) -> list[int]:
        return np.random.default_rng(seed).permutation(len(pool.y))[:num].tolist()

    return in_order(choose)


def _tpe(setting: Setting) -> Searcher:
    def choose(pool: Pool, num: int, seed: int) -> list[int]:
        ask, tell = tpe(pool, seed)
        order: list[int] = []
        for _ in range(min(num, len(pool.y))):
            order.append(ask(order))
            tell(pool.y[order[-1]])
        return order

    return in_order(choose)


def _single_task_gp(setting: Setting) -> Searcher:
    """BoTorch's default GP and LogEI, from three random rows."""
    from benchmarks.field._botorch_reference import order_by_log_improvement

    return in_order(lambda pool, num, seed: order_by_log_improvement(pool.x, pool.y, num, seed))


METHODS: dict[str, Method] = {
    "learn": Method(_learn, LEARN),
    "learn, no guard": Method(_without_guard, LEARN),
    "weighed": _weighed(Weighed().past_weight),
    "weighed, no past tasks": _weighed(0.0),
    "ABLR": _by("ablr"),
    "PACOH-MAP": _by("pacoh"),
    "RankWeightedGP": _by("rank"),
    "averaged GP": Method(_averaged, "averaged", uses_past=False),
    "past's best, averaged GP": Method(_past_best, "averaged"),
    "TPE": Method(_tpe, uses_past=False),
    "random": Method(_random, uses_past=False),
}
if importlib.util.find_spec("botorch") is not None:
    METHODS["SingleTaskGP"] = Method(_single_task_gp, uses_past=False)
