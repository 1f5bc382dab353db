"""One method on one new task, and what is written down of it."""

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from benchmarks.field._pools import Pool
from metaprior.belief import AbstractBelief
from metaprior.bo import AbstractAcquisition

NUM_QUERIES = 50
# After so many queries, predictions of the same points drawn from the pool are written down.
PREDICTED_AFTER = (1, 4, 8, 16, 32)
NUM_PREDICTED = 64
Record = dict[str, Any]


class Searcher(Protocol):
    """Runs one method on one task."""

    def __call__(self, pool: Pool, num: int, seed: int) -> Record: ...


def by_belief(belief: AbstractBelief, acquisition: AbstractAcquisition) -> Searcher:
    """A belief and an acquisition, over the rows of the pool that are left."""

    def search(pool: Pool, num: int, seed: int) -> Record:
        drawn = np.random.default_rng(seed).choice(len(pool.y), NUM_PREDICTED)
        taken = np.zeros(len(pool.y), bool)
        order: list[int] = []
        cdf, predicted, trust = [], {}, {}
        seconds = 0.0
        for step in range(min(num, len(pool.y))):
            began = time.process_time()
            now = belief.condition(pool.x[order], pool.y[order])
            rng = np.random.default_rng([seed, step])
            values = acquisition.score(now, pool.x, rng).values
            row = int(np.argmax(np.where(taken, -np.inf, values)))
            seconds += time.process_time() - began
            asked = pool.x[[row]], pool.y[[row]]
            cdf.append(float(now.cdf(*asked)[0]))
            if step in PREDICTED_AFTER:
                at = pool.x[drawn], pool.y[drawn]
                predicted[str(step)] = [now.cdf(*at).tolist(), float(now.log_density(*at).mean())]
                trust[str(step)] = belief.trust(pool.x[order], pool.y[order])
            order.append(row)
            taken[row] = True
        values = pool.y[order].tolist()
        return {
            "values": values,
            "rows": order,
            "cdf": cdf,
            "predicted": predicted,
            "trust": trust,
            "seconds": seconds / len(order),
        }

    return search


def in_order(choose: Callable[[Pool, int, int], list[int]]) -> Searcher:
    """A method that only names rows."""

    def search(pool: Pool, num: int, seed: int) -> Record:
        began = time.process_time()
        order = choose(pool, num, seed)
        seconds = (time.process_time() - began) / len(order)
        return {"values": pool.y[order].tolist(), "rows": order, "seconds": seconds}

    return search
