"""The next query of a run, with queries under way, failures and early stops respected."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief import AbstractBelief, ConditionedBelief
from metaprior.bo._acquisition import ScoredAnchors
from metaprior.bo._moves import Moves
from metaprior.bo._search import Search, maximum

# Two points of the unit cube closer than this are the same query.
SAME_POINT = 1e-9
# Without noise, a query with a known value is not worth repeating, nor one this near to it.
REPEATED = 1e-6
# Nothing is tried this near to a query that failed or was stopped early.
NEAR_LOST = 1e-3
# Values that differ by less than this, relative to the largest difference, are the same.
ROUNDING = 1e-6


class RunSoFar(NamedTuple):
    """A run so far: observations, queries under way, and queries that were lost.

    - `lost`: queries that failed or were stopped early.
    - `limit`: what each of those is at most; NaN for the worst observation.
    """

    x: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    pending: Float[np.ndarray, "p d"]
    lost: Float[np.ndarray, "l d"]
    limit: Float[np.ndarray, " l"]

    def believed(self, belief: AbstractBelief) -> ConditionedBelief:
        """`belief` as if every query had returned: pending ones what is expected of them, lost
        ones the same, but no more than their limit."""
        ghosts = np.vstack([self.pending, self.lost])
        observed = belief.condition(self.x, self.y)
        if len(ghosts) == 0:
            return observed
        expected = observed.moments(ghosts).mean
        worst = np.min(self.y, initial=np.inf)
        limit = np.where(np.isnan(self.limit), worst, self.limit)
        limits = np.concatenate([np.full(len(self.pending), np.inf), limit])
        values = np.minimum(expected, limits)
        # What was made up is no evidence for or against any part of the belief.
        settled = belief.fixed(self.x, self.y)
        return settled.condition(np.vstack([self.x, ghosts]), np.append(self.y, values))

    def is_open(self, points: Float[np.ndarray, "m d"]) -> Bool[np.ndarray, " m"]:
        """Which of `points` are not under way, and not near one that was lost."""
        return unused(points, self.pending) & unused(points, self.lost, within=NEAR_LOST)

    def is_new(self, points: Float[np.ndarray, "m d"]) -> Bool[np.ndarray, " m"]:
        """Which of `points` are open and, unless the run is noisy, not observed yet."""
        known = self.x[:0] if self.is_noisy else self.x
        return self.is_open(points) & unused(points, known, within=REPEATED)

    @property
    def is_noisy(self) -> bool:
        """Whether one query got two different values. What a model calls noise is no evidence:
        it may be a rough function."""
        first = np.sort(self.x[:, 0])
        if not (np.diff(first) <= SAME_POINT).any():
            return False  # no two queries agree in the first column, let alone in all
        rounding = ROUNDING * (np.max(self.y) - np.min(self.y))
        repeats = (
            ~unused(self.x, x[None]) & (np.abs(self.y - y) > rounding)
            for x, y in zip(self.x, self.y, strict=True)
        )
        return any(repeat.any() for repeat in repeats)


class Goal(NamedTuple):
    """What a query is chosen by.

    - `x`, `merit`: what is known or believed of the run, and how good each of these points is: the
      search looks around the best of them.
    - `score`: how much a query is worth, given anchors that cover what may be asked.
    """

    x: Float[np.ndarray, "n d"]
    merit: Float[np.ndarray, " n"]
    score: Callable[[Float[np.ndarray, "m d"]], ScoredAnchors]


def propose(
    goal: Goal, moves: Moves, run: RunSoFar, search: Search, rng: np.random.Generator
) -> Float[np.ndarray, " d"]:
    """The valid point that is worth most.

    A prior that is sure of a corner, or a space of few values, can put the maximum on a query that
    is under way, was lost or has been answered; then the best candidate of the search that is none
    of these takes its place. In a space that is used up, the best answered one is asked again, and
    where nothing else is left, any.
    """
    candidates = search.candidates(moves, goal.x, goal.merit, rng)
    scored = goal.score(candidates)
    x = maximum(scored, moves, candidates, search)
    if run.is_new(x[None]).all():
        return x
    values = scored.values
    if moves.is_discrete and not run.is_new(candidates).any():
        # One move away from the points that were tried is one that was not, if there is any.
        tried = moves.placed(goal.x)
        beside = np.concatenate([moves.neighbours(point) for point in tried])
        candidates = np.concatenate([candidates, beside])
        values = np.append(values, scored.score.values(beside))
    for is_allowed in (run.is_new, run.is_open):
        allowed = is_allowed(candidates)
        if allowed.any():
            return candidates[best_allowed(values, allowed)]
    return x


def propose_among(
    goal: Goal, candidates: Float[np.ndarray, "m d"], allowed: Bool[np.ndarray, " m"]
) -> int:
    """Index of the allowed candidate that is worth most."""
    return best_allowed(goal.score(candidates).values, allowed)


def propose_near(
    goal: Goal, candidates: Float[np.ndarray, "m d"], run: RunSoFar
) -> Float[np.ndarray, " d"]:
    """`best_new` of candidates that are all beside one query."""
    return best_new(goal.score(candidates).values, candidates, run)


def best_new(
    values: Float[np.ndarray, " m"], candidates: Float[np.ndarray, "m d"], run: RunSoFar
) -> Float[np.ndarray, " d"]:
    """The candidate that is worth most, a new one if there is one."""
    ranks = (run.is_new(candidates), run.is_open(candidates), np.ones(len(candidates), bool))
    allowed = next(rank for rank in ranks if rank.any())
    return candidates[best_allowed(values, allowed)]


def best_allowed(values: Float[np.ndarray, " m"], allowed: Bool[np.ndarray, " m"]) -> int:
    """Index of the largest allowed value."""
    return int(np.argmax(np.where(allowed, values, -np.inf)))


def unused(
    points: Float[np.ndarray, "m d"],
    used: Float[np.ndarray, "n d"],
    *,
    within: float = SAME_POINT,
) -> Bool[np.ndarray, " m"]:
    """Which of `points` are none of the queries in `used`, and not `within` this of one."""
    is_unused = np.ones(len(points), bool)
    for x in used:
        is_unused &= np.any(np.abs(points - x) > within, axis=1)
    return is_unused
