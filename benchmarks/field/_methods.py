"""The methods that are compared: what they learn, what they believe, and how they ask."""

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.field._learners import prior_of, runs_of
from benchmarks.field._past import DENSE, REGIMES, Cell, order_by_sampler
from benchmarks.field._pools import Family, Pool
from benchmarks.field._runs import Searcher, by_belief, by_scores, in_order
from metaprior.belief import AbstractBelief, Prior, belief_of
from metaprior.bo import LogExpectedImprovement, RestlessConfidenceBound
from metaprior.data import Tasks
from metaprior.methods import AbstractMethod, Guarded, TrainedContents, Weighed

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

LEARN = "learn"
BOUND = RestlessConfidenceBound()
# How many of the past's best configurations are asked before a run is left to a GP.
NUM_BEST = 3
# How many random rows a GP that uses no past begins with.
NUM_RANDOM = 3


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


def _averaged(setting: Setting) -> Searcher:
    return by_belief(setting.prior("averaged").belief, LogExpectedImprovement())


def _with_guard(setting: Setting) -> Searcher:
    """What `learn` chose, alone behind the guard instead of in the mixture."""
    prior = setting.prior(setting.budget)
    belief = belief_around(Guarded(chosen(prior)), setting)
    return by_belief(belief, BOUND)


def _mixture(**changes: float) -> Method:
    """What `learn` returns, with other settings of the mixture."""

    def search(setting: Setting) -> Searcher:
        around = Weighed(chosen(setting.prior(setting.budget)), **changes)
        return by_belief(belief_around(around, setting), BOUND)

    return Method(search, LEARN)


def chosen(prior: Prior) -> AbstractMethod:
    """What `learn` chose, without what is around it."""
    return getattr(prior.method, "base", prior.method)


def belief_around(around: Guarded | Weighed, setting: Setting) -> AbstractBelief:
    """What `learn` learned, with something else around it."""
    learned = setting.prior(setting.budget).surrogate.unguarded
    contents = TrainedContents(around, around.around(learned, setting.past))
    belief = belief_of(contents.settings, contents.arrays, setting.family.space.num_inputs)
    assert belief is not None
    return belief


def _past_best(setting: Setting) -> Searcher:
    """First the configurations that would have served the past runs best, one after another, then
    the averaged GP with expected improvement."""
    averaged, acquisition = setting.prior("averaged").belief, LogExpectedImprovement()

    def think(x: np.ndarray, y: np.ndarray, pool: Pool, rng: np.random.Generator):
        now = averaged.condition(x, y)
        return now, acquisition.score(now, pool.x, rng).values

    return by_scores(think, _portfolio(setting.past))


def _portfolio(tasks: Tasks) -> Callable[[Pool, int], list[int]]:
    return lambda pool, seed: greedy_portfolio(tasks, pool, NUM_BEST)


def _random_rows(pool: Pool, seed: int) -> list[int]:
    return np.random.default_rng(seed).permutation(len(pool.y))[:NUM_RANDOM].tolist()


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
    def choose(pool: Pool, num: int, seed: int, first: Sequence[int]) -> list[int]:
        drawn = np.random.default_rng(seed).permutation(len(pool.y)).tolist()
        return list(dict.fromkeys([*first, *drawn]))[:num]

    return in_order(choose)


def _by_optuna(sampler: Callable[[int], "BaseSampler"]) -> Method:
    """A sampler on the unit cube: each proposal is answered by the nearest row that is left, and
    the sampler learns where that row is."""

    def choose(pool: Pool, num: int, seed: int, first: Sequence[int]) -> list[int]:
        return order_by_sampler(pool, num, sampler(seed), first)

    return Method(lambda setting: in_order(choose), uses_past=False)


def _tpe(seed: int) -> "BaseSampler":
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed)


def _gp_sampler(seed: int) -> "BaseSampler":
    from optuna.exceptions import ExperimentalWarning
    from optuna.samplers import GPSampler

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)  # of `deterministic_objective`
        return GPSampler(seed=seed, deterministic_objective=True, warn_independent_sampling=False)


def _single_task_gp(setting: Setting) -> Searcher:
    from benchmarks.field._botorch_reference import single_task_gp

    return by_scores(lambda x, y, pool, rng: single_task_gp(x, y, pool), _random_rows)


def _past_best_single_task_gp(setting: Setting) -> Searcher:
    from benchmarks.field._botorch_reference import single_task_gp

    begin = _portfolio(setting.past)
    return by_scores(lambda x, y, pool, rng: single_task_gp(x, y, pool), begin)


def _rank_weighted(setting: Setting) -> Searcher:
    from benchmarks.field._botorch_reference import rank_weighted

    return by_scores(rank_weighted(setting.past))


def _hyperbo(setting: Setting) -> Searcher:
    from benchmarks.field._hyperbo_reference import by_prior, trained

    return by_scores(by_prior(trained(setting.past, setting.cell.seed)))


def _empirical(setting: Setting) -> Searcher:
    from benchmarks.field._empirical_reference import empirical

    return by_scores(empirical(setting.past))


def _is_installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


METHODS: dict[str, Method] = {
    "learn": Method(_learn, LEARN),
    "learn, guard only": Method(_with_guard, LEARN),
    "learn, no past tasks": _mixture(past_weight=0.0),
    "learn, all evidence": _mixture(temper=1.0),
    "ABLR": _by("ablr"),
    "PACOH-MAP": _by("pacoh"),
    "Learned GP": _by("learned"),
    "neural process": _by("process"),
    "RankWeightedGP": _by("rank"),
    "averaged GP": Method(_averaged, "averaged", uses_past=False),
    "past's best, averaged GP": Method(_past_best, "averaged"),
    "TPE": _by_optuna(_tpe),
    "random": Method(_random, uses_past=False),
}
# What needs PyTorch comes last, since it is the slowest.
if _is_installed("botorch"):
    METHODS["HyperBO"] = Method(_hyperbo)
    METHODS["empirical GP"] = Method(_empirical, regimes=DENSE)
    METHODS["past's best, SingleTaskGP"] = Method(_past_best_single_task_gp)
    METHODS["SingleTaskGP"] = Method(_single_task_gp, uses_past=False)
    METHODS["RGPE"] = Method(_rank_weighted)
if _is_installed("optuna", "torch"):
    METHODS["GPSampler"] = _by_optuna(_gp_sampler)
