"""What is expected of a query, and of the rest of a run: when to stop."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief import NEARLY, ConditionedBelief, Left
from metaprior.bo._checks import positive


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
      like what the belief expects: the share of functions drawn from the belief in which it is.
    - `calibrated`: whether that share was corrected by how often it held in held-out runs. If not,
      it is as good as the belief.
    """

    improvement_left: float
    tolerance: float
    probability: float
    calibrated: bool = False

    def is_done(self, confidence: float = 0.95) -> bool:
        """Whether the run may stop: it is this probable that the best is near enough."""
        return self.probability >= positive("confidence", confidence, most=1.0)


def hint_of(left: Left, tolerance: float | None) -> StoppingHint:
    """The hint at this tolerance; by default a share of each function's own gap."""
    shown = float(np.mean(NEARLY * left.gap)) if tolerance is None else tolerance
    return StoppingHint(float(np.mean(left.regret)), shown, left.probability(tolerance))


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
