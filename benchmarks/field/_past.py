"""Past runs: how the tasks of the past were explored before anybody learned from them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from benchmarks.field._pools import Family, Pool
from metaprior.belief import FittedBelief
from metaprior.bo import LogExpectedImprovement
from metaprior.data import Tasks

FOLDS = 3
NUM_RANDOM = 3


@dataclass(frozen=True)
class Cell:
    """What one prior is learned from and judged on.

    - `regime`: `"gp"` or `"tpe"`: sparse runs of 25 points each, and who collected them; `"grid"`:
      the same 200 configurations on every past task.
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

    def tasks(self, family: Family) -> tuple[list[Pool], list[Pool]]:
        """Past tasks and new ones."""
        if self.phase == "test":
            return list(family.development), list(family.test)
        fold = self.seed % FOLDS
        past = [p for i, p in enumerate(family.development) if i % FOLDS != fold]
        return past, [p for i, p in enumerate(family.development) if i % FOLDS == fold]


def past_runs(cell: Cell, family: Family) -> Tasks:
    """The runs of the past tasks of a cell."""
    past, _ = cell.tasks(family)
    rng = np.random.default_rng([cell.seed, len(cell.regime), len(past)])
    if cell.regime == "grid":
        same = rng.choice(min(len(p.y) for p in past), 200, replace=False)
        chosen = [same for _ in past]
    else:
        collect = {"gp": _by_gp, "tpe": _by_tpe}[cell.regime]
        chosen = [collect(pool, 25, rng) for pool in past]
    runs = [
        (family.space.decode(p.x[rows]), p.y[rows]) for p, rows in zip(past, chosen, strict=True)
    ]
    return Tasks.from_runs(runs, space=family.space)


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
    ask, tell = tpe(pool, int(rng.integers(2**31)))
    chosen: list[int] = []
    while len(chosen) < num:
        row = ask(chosen)
        tell(pool.y[row])
        chosen.append(row)
    return np.array(chosen)


def tpe(pool: Pool, seed: int):
    """TPE as a pair of functions: the next row, given those already taken; and its value."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    under_way = []

    def ask(taken: list[int]) -> int:
        trial = study.ask()
        names = [f"x{j}" for j in range(pool.x.shape[1])]
        u: Float[np.ndarray, " d"] = np.array([trial.suggest_float(n, 0.0, 1.0) for n in names])
        squares = np.sum((pool.x - u) ** 2, axis=1)
        squares[taken] = np.inf
        under_way.append(trial)
        return int(np.argmin(squares))

    def tell(value: float) -> None:
        study.tell(under_way.pop(), float(value))

    return ask, tell
