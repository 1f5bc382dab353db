"""The next query of a run, with queries under way and failures respected."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief import AbstractBelief, ConditionedBelief
from metaprior.bo._acquisition import AbstractAcquisition
from metaprior.bo._moves import Moves
from metaprior.bo._search import Search, maximum

# Two points of the unit cube closer than this are the same query.
SAME_POINT = 1e-9


class RunSoFar(NamedTuple):
    """What is known of a run: observations, queries under way, and queries that failed."""

    x: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    pending: Float[np.ndarray, "p d"]
    failed: Float[np.ndarray, "f d"]

    def believed(self, belief: AbstractBelief) -> ConditionedBelief:
        """`belief` as if every query had returned: pending ones what is expected of them, failed
        ones no more than the worst observation."""
        ghosts = np.vstack([self.pending, self.failed])
        observed = belief.condition(self.x, self.y)
        if len(ghosts) == 0:
            return observed
        expected = observed.moments(ghosts).mean
        worst = np.min(self.y, initial=np.inf)
        is_failed = np.arange(len(ghosts)) >= len(self.pending)
        values = np.where(is_failed, np.minimum(expected, worst), expected)
        # What was made up is no evidence for or against any part of the belief.
        weighed = belief.fixed(self.x, self.y)
        return weighed.condition(np.vstack([self.x, ghosts]), np.append(self.y, values))


def propose(
    belief: AbstractBelief,
    acquisition: AbstractAcquisition,
    moves: Moves,
    run: RunSoFar,
    search: Search,
    rng: np.random.Generator,
) -> Float[np.ndarray, " d"]:
    """The valid point that is worth most.

    A prior that is sure of a corner, or a space of few values, can put the maximum on a query that
    is under way or has failed; then the best candidate of the search that is neither takes its
    place. Where nothing else is left, it is asked again.
    """
    believed = run.believed(belief)
    candidates = search.candidates(moves, believed.x, believed.y, rng)
    scored = acquisition.score(believed, candidates, rng)
    x = maximum(scored, moves, candidates, search)
    avoided = np.vstack([run.pending, run.failed])
    if unused(x[None], avoided).all():
        return x
    allowed = unused(candidates, avoided)
    return candidates[_best(scored.values, allowed)] if allowed.any() else x


def propose_among(
    belief: AbstractBelief,
    acquisition: AbstractAcquisition,
    candidates: Float[np.ndarray, "m d"],
    allowed: Bool[np.ndarray, " m"],
    run: RunSoFar,
    rng: np.random.Generator,
) -> int:
    """Index of the allowed candidate that is worth most."""
    believed = run.believed(belief)
    return _best(acquisition.score(believed, candidates, rng).values, allowed)


def _best(values: Float[np.ndarray, " m"], allowed: Bool[np.ndarray, " m"]) -> int:
    """Index of the largest allowed value."""
    return int(np.argmax(np.where(allowed, values, -np.inf)))


def unused(
    points: Float[np.ndarray, "m d"], used: Float[np.ndarray, "n d"]
) -> Bool[np.ndarray, " m"]:
    """Which of `points` are none of the queries in `used`."""
    is_unused = np.ones(len(points), bool)
    for x in used:
        is_unused &= np.any(np.abs(points - x) > SAME_POINT, axis=1)
    return is_unused
