r"""What a belief says is left of a run: by how much its best misses the optimum.

symbol      meaning
f           the function of this task, drawn from the belief after what was told
x^+         the best query so far
x^*         the best of the points that might be best

A drawn function says by how much the best so far misses its optimum, $r = f(x^*) - f(x^+)$. The
expected improvement left is the mean of $r$; the run is done where $r$ is within a tolerance, in
most of the drawn functions.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import ConditionedBelief

# How many functions are drawn, on how many points that might be best, and on how many anywhere.
NUM_FUNCTIONS, MOST_PROMISING, NUM_ANYWHERE = 256, 160, 96
# By default a run is done when the best is nearer to the optimum than this share of the distance
# from a function's median to its optimum.
NEARLY = 0.05


class Left(NamedTuple):
    """What drawn functions say is left to be gained: by how much each one's optimum beats the best
    so far, and the distance from its median to its optimum."""

    regret: Float[np.ndarray, " functions"]
    gap: Float[np.ndarray, " functions"]

    def probability(self, tolerance: float | None = None) -> float:
        """That the best is within the tolerance of the optimum; by default a share of each
        function's own gap."""
        near = NEARLY * self.gap if tolerance is None else tolerance
        # No count of functions makes sure of anything: one success and one failure are added.
        return float((np.sum(self.regret <= near) + 1.0) / (len(self.regret) + 2.0))


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
