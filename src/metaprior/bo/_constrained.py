r"""Improvement where it is allowed: for runs with constraints.

    symbol      meaning
    f           the function to be maximised
    c_j         a constraint: a point is feasible if every c_j(x) <= 0
    y*          the best value that was observed at a feasible point

$$ \ln a(x) = \ln \mathbb{E} \max(f(x) - y^*, 0)
   + \sum_j \ln \Phi\!\left(-\frac{\mu_j(x)}{\sigma_j(x)}\right) $$

with $\mu_j, \sigma_j$ of a Gaussian process fitted to what this run has shown of $c_j$ (Gardner et
al. 2014). Before anything feasible was seen there is no $y^*$, and the sum alone is maximised.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from metaprior.belief import AbstractSmoothFunction, ConditionedBelief, FittedBelief
from metaprior.bo._acquisition import (
    LOG_SQRT_2_PI,
    SMALLEST_VARIANCE,
    AbstractAcquisition,
    ImprovementScore,
    ScoredAnchors,
)

FITTING_STEPS = 25


@dataclass(frozen=True)
class ConstrainedImprovement(AbstractAcquisition):
    """Expected improvement on the best feasible value, times the probability of feasibility.

    - `constraints`: the belief about each of them.
    - `best`: the best value observed at a feasible point; `None` before the first.
    """

    constraints: tuple[ConditionedBelief, ...]
    best: float | None

    def score(self, belief, anchors, rng):
        improvement = None if self.best is None else ImprovementScore(belief, self.best)
        score = ConstrainedScore(improvement, self.constraints)
        return ScoredAnchors(score, score.values(anchors))


@dataclass(frozen=True)
class ConstrainedScore(AbstractSmoothFunction):
    """The score of `ConstrainedImprovement`."""

    improvement: ImprovementScore | None
    constraints: tuple[ConditionedBelief, ...]

    def values(self, x):
        from scipy.special import log_ndtr

        total = np.zeros(len(x)) if self.improvement is None else self.improvement.values(x)
        for constraint in self.constraints:
            moments = constraint.moments(x)
            std = np.sqrt(np.maximum(moments.function_variance, SMALLEST_VARIANCE))
            total = total + log_ndtr(-moments.mean / std)
        return total

    def gradients(self, x):
        r"""$\partial \ln \Phi(u) = \varphi(u) / \Phi(u)\, \partial u$, $u = -\mu_j / \sigma_j$."""
        from scipy.special import log_ndtr

        values, slopes = np.zeros(len(x)), np.zeros_like(x)
        if self.improvement is not None:
            values, slopes = self.improvement.gradients(x)
        for constraint in self.constraints:
            moments, mean_slope, variance_slope = constraint.slopes(x)
            variance = moments.function_variance
            std = np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
            is_known = (variance > SMALLEST_VARIANCE)[:, None]
            std_slope = np.where(is_known, variance_slope / (2.0 * std[:, None]), 0.0)
            u = -moments.mean / std
            log_probability = log_ndtr(u)
            by_u = np.exp(-0.5 * u**2 - LOG_SQRT_2_PI - log_probability)[:, None]
            u_slope = -(mean_slope + u[:, None] * std_slope) / std[:, None]
            values, slopes = values + log_probability, slopes + by_u * u_slope
        return values, slopes


def constrained_improvement(
    x: Float[np.ndarray, "m d"],
    y: Float[np.ndarray, " m"],
    constraints: Float[np.ndarray, "m k"],
) -> ConstrainedImprovement:
    """The acquisition after values `y`, larger is better, and `constraints` were observed at `x`.

    - `constraints`: NaN where one was not reported, which says neither that it holds nor that it
      does not; a point without any report that it is violated counts as feasible.
    """
    is_feasible = ~np.any(constraints > 0.0, axis=1)
    best = float(np.max(y[is_feasible])) if is_feasible.any() else None
    beliefs = []
    for values in constraints.T:
        known = np.isfinite(values)
        beliefs.append(FittedBelief(FITTING_STEPS).condition(x[known], values[known]))
    return ConstrainedImprovement(tuple(beliefs), best)
