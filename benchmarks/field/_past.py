"""Past runs: how the tasks of the past were explored before anybody learned from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from benchmarks.field._pools import SHARED_ROWS, Family, Pool
from metaprior.belief import FittedBelief
from metaprior.bo import LogExpectedImprovement
from metaprior.data import Tasks

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

FOLDS = 3
NUM_RANDOM = 3
RUN_LENGTH = 25
GRID_SIZE = 200
SPARSE, DENSE = ("gp", "tpe"), ("grid", "off-grid")
REGIMES = (*SPARSE, *DENSE)
# Of the generator of past runs: `grid` and `off-grid` have the same past.
REGIME_SEEDS = {"gp": 2, "tpe": 3, "grid": 4, "off-grid": 4}


@dataclass(frozen=True)
class Cell:
    """What one prior is learned from and judged on.

    - `regime`: `"gp"` or `"tpe"`: sparse runs of 25 points each, and who collected them; `"grid"`:
      the same 200 configurations on every past task; `"off-grid"`: the same, and new tasks have
      only the other configurations. Both need tasks that share their configurations: LCBench.
    - `phase`: `"validation"`: a third of the development tasks are new and the others are the past;
      `"test"`: all development tasks are the past.
    """

    family: str
    regime: str
    phase: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.family}-{self.regime}-{self.phase}-{self.seed}"

    def past_tasks(self, family: Family) -> list[Pool]:
        """The tasks that are learned from."""
        if self.phase == "test":
            return list(family.development)
        fold = self.seed % FOLDS
        return [pool for i, pool in enumerate(family.development) if i % FOLDS != fold]

    def new_tasks(self, family: Family) -> list[Pool]:
        """The tasks that are asked on, with the configurations that may be asked."""
        fold = self.seed % FOLDS
        pools = [pool for i, pool in enumerate(family.development) if i % FOLDS == fold]
        pools = list(family.test) if self.phase == "test" else pools
        if self.regime != "off-grid":
            return pools
        kept = np.ones(len(pools[0].y), bool)
        kept[_shared_rows(self.past_tasks(family), self._generator(family))] = False
        return [pool.kept(kept) for pool in pools]

    def past_runs(self, family: Family) -> Tasks:
        """The runs of the past tasks."""
        past, rng = self.past_tasks(family), self._generator(family)
        if self.regime in DENSE:
            chosen = [_shared_rows(past, rng)] * len(past)
        else:
            collect = {"gp": _by_gp, "tpe": _by_tpe}[self.regime]
            chosen = [collect(pool, RUN_LENGTH, rng) for pool in past]
        points = [family.space.decode(p.x[rows]) for p, rows in zip(past, chosen, strict=True)]
        values = [p.y[rows] for p, rows in zip(past, chosen, strict=True)]
        return Tasks.from_runs(list(zip(points, values, strict=True)), space=family.space)

    def _generator(self, family: Family) -> np.random.Generator:
        past = len(self.past_tasks(family))
        return np.random.default_rng([self.seed, REGIME_SEEDS[self.regime], past])


def cells_of(
    families: Sequence[str], regimes: Sequence[str], phase: str, seeds: Iterable[int]
) -> list[Cell]:
    """All cells that exist, one seed after another, so that a run that is ended is balanced."""
    return [
        Cell(family, regime, phase, seed)
        for seed in seeds
        for regime in regimes
        for family in families
        if regime in SPARSE or family in SHARED_ROWS
    ]


def _shared_rows(past: list[Pool], rng: np.random.Generator) -> Int[np.ndarray, " num"]:
    """The rows that every past task has tried."""
    if not all(np.array_equal(pool.x, past[0].x) for pool in past):
        raise ValueError("The tasks have different configurations; leave the regime grid out.")
    return rng.choice(len(past[0].y), GRID_SIZE, replace=False)


def _by_gp(pool: Pool, num: int, rng: np.random.Generator) -> Int[np.ndarray, " num"]:
    """A Gaussian process fitted to the run, and expected improvement."""
    chosen = list(rng.choice(len(pool.y), NUM_RANDOM, replace=False))
    while len(chosen) < num:
        belief = FittedBelief(25).condition(pool.x[chosen], pool.y[chosen])
        scores = LogExpectedImprovement().score(belief, pool.x, rng).values
        scores[chosen] = -np.inf
        chosen.append(int(np.argmax(scores)))
    return np.array(chosen)


def _by_tpe(pool: Pool, num: int, rng: np.random.Generator) -> Int[np.ndarray, " num"]:
    """Optuna's TPE on the unit cube, each query answered by the nearest row that is left."""
    from optuna.samplers import TPESampler

    return np.array(order_by_sampler(pool, num, TPESampler(seed=int(rng.integers(2**31)))))


def order_by_sampler(
    pool: Pool, num: int, sampler: "BaseSampler", first: Sequence[int] = ()
) -> list[int]:
    """Rows in the order of a sampler's proposals on the unit cube: each is answered by the nearest
    row that is left, and what the sampler is told is where that row is, and its value.

    - `first`: rows that are given.
    """
    import optuna
    from optuna.distributions import BaseDistribution, FloatDistribution

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    names = [f"x{j}" for j in range(pool.x.shape[1])]
    domains: dict[str, BaseDistribution] = {name: FloatDistribution(0.0, 1.0) for name in names}
    order: list[int] = []
    while len(order) < min(num, len(pool.y)):
        if len(order) < len(first):
            row = first[len(order)]
        else:
            proposal = study.ask(domains)
            u: Float[np.ndarray, " d"] = np.array([proposal.params[name] for name in names])
            squares = np.sum((pool.x - u) ** 2, axis=1)
            squares[order] = np.inf
            row = int(np.argmin(squares))
            study.tell(proposal, state=optuna.trial.TrialState.FAIL)
        found = dict(zip(names, np.clip(pool.x[row], 0.0, 1.0).tolist(), strict=True))
        value = float(pool.y[row])
        study.add_trial(optuna.create_trial(params=found, distributions=domains, value=value))
        order.append(row)
    return order
