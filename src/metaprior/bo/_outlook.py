r"""What is expected of a query, and of the rest of a run: when to stop.

symbol      meaning
f           the function of this task, drawn from the belief after what was told
x^+         the best query so far
x^*         the best of the points that might be best

A drawn function says by how much the best so far misses its optimum, $r = f(x^*) - f(x^+)$. The
expected improvement left is the mean of $r$; the run is done where $r$ is within a tolerance, in
most of the drawn functions.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief import ConditionedBelief

# How many functions are drawn, on how many points that might be best, and on how many anywhere.
NUM_FUNCTIONS, MOST_PROMISING, NUM_ANYWHERE = 256, 160, 96
# By default a run is done when the best is nearer to the optimum than this share of the distance
# from a function's median to its optimum.
NEARLY = 0.05


class Expectation(NamedTuple):
    """What is expected of a query, in the units of the value.

    - `value`, `std`: mean and standard deviation of what would be observed.
    - `chance`: probability that it beats the best so far; `None` before the first observation.
    """

    value: float
    std: float
    chance: float | None


class StoppingHint(NamedTuple):
    """Whether it is worth going on, in the units of the value.

    - `improvement_left`: by how much the optimum is expected to beat the best so far.
    - `tolerance`: what counts as near enough to the optimum.
    - `probability`: that the best so far is within the tolerance of the optimum, if this task is
      like what the belief expects: the share of functions drawn from the belief in which it is. It
      is not calibrated on held-out runs, so it is as good as the belief.
    """

    improvement_left: float
    tolerance: float
    probability: float

    def is_done(self, confidence: float = 0.95) -> bool:
        """Whether the run may stop: the belief is this sure that the best is near enough."""
        return self.probability >= confidence


class Left(NamedTuple):
    """What drawn functions say is left to be gained: by how much each one's optimum beats the best
    so far, and the distance from its median to its optimum."""

    regret: Float[np.ndarray, " functions"]
    gap: Float[np.ndarray, " functions"]

    def hint(self, tolerance: float | None) -> StoppingHint:
        """The hint at this tolerance; by default a share of each function's own gap."""
        near = NEARLY * self.gap if tolerance is None else tolerance
        shown = float(np.mean(NEARLY * self.gap)) if tolerance is None else tolerance
        # No count of functions makes sure of anything: one success and one failure are added.
        done = (np.sum(self.regret <= near) + 1.0) / (len(self.regret) + 2.0)
        return StoppingHint(float(np.mean(self.regret)), shown, float(done))


def left_in(
    belief: ConditionedBelief,
    candidates: Float[np.ndarray, "m d"],
    rng: np.random.Generator,
) -> Left:
    """What is left of a run, by functions drawn from the belief about it.

    - `candidates`: points all over the space, with some near the best of the run.
    """
    moments = belief.moments(candidates)
    bound = moments.mean + 2.0 * np.sqrt(moments.function_variance)
    promising = candidates[np.argsort(-bound, kind="stable")[:MOST_PROMISING]]
    anywhere = candidates[:: max(1, len(candidates) // NUM_ANYWHERE)][:NUM_ANYWHERE]
    best = belief.x[np.argmax(belief.y)]
    # Twice the same point makes a joint covariance singular.
    points = np.unique(np.concatenate([best[None], promising, anywhere]), axis=0)
    drawn = belief.sample(points, NUM_FUNCTIONS, rng)
    at_best = int(np.argmin(np.sum(np.abs(points - best), axis=1)))
    is_anywhere = (points[:, None, :] == anywhere[None]).all(axis=2).any(axis=1)
    top = np.max(drawn, axis=1)
    return Left(top - drawn[:, at_best], top - np.median(drawn[:, is_anywhere], axis=1))


def expectation_of(
    belief: ConditionedBelief, x: Float[np.ndarray, " d"], sign: float
) -> Expectation:
    """What is expected of the query `x`; `sign`: of the user's values."""
    moments = belief.moments(x[None])
    chance = None
    if len(belief.y):
        below = belief.cdf(x[None], np.array([np.max(belief.y)]))
        chance = float(np.clip(1.0 - below[0], 0.0, 1.0))
    std = math.sqrt(float(moments.variance[0]))
    return Expectation(float(sign * moments.mean[0]), std, chance)
