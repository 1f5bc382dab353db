"""One method on one new task, and what is written down of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float

from benchmarks.field._pools import Pool
from benchmarks.field._records import PREDICTED_AFTER, Record
from metaprior.belief import AbstractBelief
from metaprior.bo import AbstractAcquisition
from metaprior.metrics import gaussian_cdf, gaussian_log_density

NUM_QUERIES = 50
# The same points, drawn from the pool, are predicted after several numbers of queries.
NUM_PREDICTED = 64


class Searcher(Protocol):
    """Runs one method on one task.

    - `first`: rows that are given, in the place of the method's own beginning.
    """

    def __call__(self, pool: Pool, num: int, seed: int, first: Sequence[int] = ()) -> Record: ...


class AbstractPredictions(Protocol):
    """A belief given a run, as much as is written down of it."""

    def cdf(
        self, x: Float[np.ndarray, "m d"], y: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, " m"]:
        """Probability of a value at most `y`."""
        ...

    def log_density(
        self, x: Float[np.ndarray, "m d"], y: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, " m"]:
        """Log density of the value `y`."""
        ...


@dataclass(frozen=True)
class GaussianPredictions:
    """Predictions of single values.

    - `moments`: from inputs to means and standard deviations of observations.
    """

    moments: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

    def cdf(self, x, y):
        return gaussian_cdf(y, *self.moments(x))

    def log_density(self, x, y):
        return gaussian_log_density(y, *self.moments(x))


class Think(Protocol):
    """From a run to what is predicted now, if anything, and a score for every row of the pool."""

    def __call__(
        self, x: np.ndarray, y: np.ndarray, pool: Pool, rng: np.random.Generator
    ) -> tuple[AbstractPredictions | None, np.ndarray]: ...


def by_belief(belief: AbstractBelief, acquisition: AbstractAcquisition) -> Searcher:
    """A belief and an acquisition, over the rows of the pool that are left."""

    def think(x: np.ndarray, y: np.ndarray, pool: Pool, rng: np.random.Generator):
        now = belief.condition(x, y)
        return now, acquisition.score(now, pool.x, rng).values

    return by_scores(think, trust=belief.trust)


def by_scores(
    think: Think,
    begin: Callable[[Pool, int], list[int]] = lambda pool, seed: [],
    trust: Callable[[np.ndarray, np.ndarray], float | None] | None = None,
) -> Searcher:
    """The row of the highest score, again and again, and how well each was predicted.

    - `begin`: the first rows, from a pool and a seed; nothing is predicted there.
    - `trust`: weight of what was learned, given a run.
    """

    def search(pool: Pool, num: int, seed: int, first: Sequence[int] = ()) -> Record:
        drawn = np.random.default_rng(seed).choice(len(pool.y), NUM_PREDICTED)
        at = pool.x[drawn], pool.y[drawn]
        taken = np.zeros(len(pool.y), bool)
        num = min(num, len(pool.y))
        record: Record = {"cdf": []}
        began = time.process_time()
        order = (list(first) or begin(pool, seed))[:num]
        taken[order] = True
        seconds = time.process_time() - began
        for step in range(len(order), num):
            began = time.process_time()
            x, y = pool.x[order], pool.y[order]
            now, scores = think(x, y, pool, np.random.default_rng([seed, step]))
            row = int(np.argmax(np.where(taken, -np.inf, scores)))
            seconds += time.process_time() - began
            if now is not None:
                record["cdf"].append(float(now.cdf(pool.x[[row]], pool.y[[row]])[0]))
            if now is not None and step in PREDICTED_AFTER:
                record[f"cdf@{step}"] = now.cdf(*at)
                record[f"density@{step}"] = float(now.log_density(*at).mean())
                record[f"trust@{step}"] = None if trust is None else trust(x, y)
            order.append(row)
            taken[row] = True
        return record | {"rows": order, "seconds": seconds / len(order)}

    return search


def in_order(choose: Callable[[Pool, int, int, Sequence[int]], list[int]]) -> Searcher:
    """A method that only names rows."""

    def search(pool: Pool, num: int, seed: int, first: Sequence[int] = ()) -> Record:
        began = time.process_time()
        order = choose(pool, min(num, len(pool.y)), seed, first)
        return {"rows": order, "seconds": (time.process_time() - began) / len(order)}

    return search
