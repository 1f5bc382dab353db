r"""The probability that a query is allowed.

    symbol      meaning
    c_j         a constraint: a point is feasible if every c_j(x) <= 0
    w_k         weight of member k of the belief about it

$$ \ln P(x) = \sum_j \ln \sum_k w_k\, \Phi\!\left(-\frac{\mu_{jk}(x)}{\sigma_{jk}(x)}\right) $$

(Gardner et al. 2014). Beliefs are about values that are maximised, here $-c_j$.
"""

from dataclasses import dataclass

import numpy as np

from metaprior.belief import AbstractSmoothFunction, ConditionedBelief
from metaprior.bo._acquisition import LOG_SQRT_2_PI, SMALLEST_VARIANCE
from metaprior.bo._mixed import log_mixed


@dataclass(frozen=True)
class FeasibilityScore(AbstractSmoothFunction):
    """Log probability that every constraint holds.

    - `constraints`: the belief about each of them, or about its negative: feasible above 0.
    """

    constraints: tuple[ConditionedBelief, ...]

    def values(self, x):
        from scipy.special import log_ndtr

        total = np.zeros(len(x))
        for belief in self.constraints:
            moments, weights = belief.members(x)
            std = np.sqrt(np.maximum(moments.function_variance, SMALLEST_VARIANCE))
            total += log_mixed(log_ndtr(moments.mean / std), weights).values
        return total

    def gradients(self, x):
        r"""$\partial \ln \Phi(u) = \varphi(u) / \Phi(u)\, \partial u$, $u = \mu / \sigma$."""
        from scipy.special import log_ndtr

        total, slope = np.zeros(len(x)), np.zeros_like(x)
        for belief in self.constraints:
            moments, mean_slope, variance_slope = belief.member_slopes(x)
            variance = moments.function_variance
            std = np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
            is_known = (variance > SMALLEST_VARIANCE)[..., None]
            std_slope = np.where(is_known, variance_slope / (2.0 * std[..., None]), 0.0)
            u = moments.mean / std
            log_probability = log_ndtr(u)
            mixed = log_mixed(log_probability, belief.weights)
            by_u = mixed.shares * np.exp(-0.5 * u**2 - LOG_SQRT_2_PI - log_probability)
            u_slope = (mean_slope - u[..., None] * std_slope) / std[..., None]
            total += mixed.values
            slope += np.einsum("Kk,Kkd->kd", by_u, u_slope)
        return total, slope
