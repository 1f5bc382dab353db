r"""How much a query is worth: from a belief about the run to a score, larger is better.

symbol      meaning
mu          posterior mean
sigma       posterior standard deviation: of an observation in confidence bounds, as in the paper;
            of the function in expected improvement

Scores and their derivatives by hand, for many points at once; all of them are those of the
acquisition functions that compiled policies use.
"""

import abc
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief import AbstractPath, AbstractSmoothFunction, ConditionedBelief

# Variances below this are rounding; the slope of their root, and a quotient by it, would be too.
SMALLEST_VARIANCE = 1e-16
# A first query is at worst so many gaps from the best; a member that hardly varies says little.
WORST_SHARE = -3.0
SMALLEST_GAP = 1e-6
# Below this, the improvement is a series: its two terms cancel.
FAR_BELOW = -30.0
LOG_SQRT_2_PI = 0.9189385332046727


class ScoredAnchors(NamedTuple):
    """A score, and its values at the anchors."""

    score: AbstractSmoothFunction
    values: Float[np.ndarray, " m"]


class AbstractAcquisition(abc.ABC):
    """How much a query is worth."""

    @abc.abstractmethod
    def score(
        self,
        belief: ConditionedBelief,
        anchors: Float[np.ndarray, "m d"],
        rng: np.random.Generator,
    ) -> ScoredAnchors:
        """The function to be maximised; `anchors` cover what may be asked."""


@dataclass(frozen=True)
class UpperConfidenceBound(AbstractAcquisition):
    r"""$\mu(x) + \beta\, \sigma(x)$, with $\sigma$ the predictive standard deviation."""

    beta: float = 2.0

    def score(self, belief, anchors, rng):
        return _scored(ConfidenceBoundScore(belief, self.beta), anchors)


@dataclass(frozen=True)
class ConfidenceBoundScore(AbstractSmoothFunction):
    """The score of `UpperConfidenceBound`."""

    belief: ConditionedBelief
    beta: float

    def values(self, x):
        moments = self.belief.moments(x)
        return moments.mean + self.beta * np.sqrt(moments.variance)

    def gradients(self, x):
        moments, pullback = self.belief.smooth_moments(x)
        std = np.sqrt(moments.variance)
        slope = pullback(np.ones(len(x)), self.beta / (2.0 * std))
        return moments.mean + self.beta * std, slope


@dataclass(frozen=True)
class RestlessConfidenceBound(AbstractAcquisition):
    r"""The upper confidence bound, with checks of the model once it claims that nothing is left.

    A learned prior can be over-confident and wrong about a task that is unlike the past ones; the
    bound alone then asks for the same local optimum again and again. Here, when no point could
    beat the best observation by a noticeable margin,

    $$ \max_x \mu(x) + \beta\, \sigma(x) < y^* + \tau \,(\max_x \mu(x) - \min_x \mu(x)), $$

    every other query widens the bound until some point could; the queries between polish the
    optimum as before.

    What a model calls noise is often a rough function, which returns the same value for the same
    query. So noise counts only away from earlier queries, at distances $r$ from the nearest one
    that are not small compared with the reach $\ell$:

    $$ \sigma^2(x) = \sigma_f^2(x) + (1 - e^{-r^2 / 2 \ell^2})\, \sigma_\text{noise}^2(x). $$
    """

    beta: float = 1.0
    tolerance: float = 1e-4
    reach: float = 0.1

    def score(self, belief, anchors, rng):
        if len(belief.y) == 0 and len(belief.groups) > 1:
            # Members of several kinds differ in level and scale, which no bound should reward.
            return _scored(ShareScore.of(belief, anchors), anchors)
        mean, std = RestlessScore(belief, self.beta, self.reach).expected(anchors)
        beta = self.beta
        if len(belief.y) % 2 == 1:
            margin = self.tolerance * (np.max(mean) - np.min(mean))
            needed = float(np.min((np.max(belief.y) + margin - mean) / std))
            # A little more than needed, so that the likeliest surprise stands out.
            beta = 1.2 * needed if needed > self.beta else self.beta
        return ScoredAnchors(RestlessScore(belief, beta, self.reach), mean + beta * std)


@dataclass(frozen=True)
class RestlessScore(AbstractSmoothFunction):
    """The score of `RestlessConfidenceBound`."""

    belief: ConditionedBelief
    beta: float
    reach: float

    def expected(
        self, x: Float[np.ndarray, "k d"]
    ) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Mean, and the standard deviation that the bound is made of."""
        moments, (news, _) = self.belief.moments(x), self._news(x)
        variance = moments.function_variance + news * moments.noise_variance
        return moments.mean, np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))

    def values(self, x):
        mean, std = self.expected(x)
        return mean + self.beta * std

    def gradients(self, x):
        moments, pullback = self.belief.smooth_moments(x)
        news, news_slope = self._news(x)
        noise = moments.noise_variance
        variance = moments.function_variance + news * noise
        std = np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
        by_variance = np.where(variance > SMALLEST_VARIANCE, self.beta / (2.0 * std), 0.0)
        slope = pullback(np.ones(len(x)), by_variance)
        slope += (by_variance * noise)[:, None] * news_slope
        return moments.mean + self.beta * std, slope

    def _news(
        self, x: Float[np.ndarray, "k d"]
    ) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k d"]]:
        r"""$1 - e^{-r^2 / 2 \ell^2}$ for the distance $r$ to the nearest query, and its slope."""
        if len(self.belief.x) == 0:
            return np.ones(len(x)), np.zeros_like(x)
        # The nearest by |q|^2 - 2 x q, which is fast; how near it is, by differences: exact.
        queries = self.belief.x
        nearest = np.argmin((queries * queries).sum(axis=1) - 2.0 * (x @ queries.T), axis=1)
        apart = x - queries[nearest]
        exponent = -0.5 * (apart * apart).sum(axis=1) / self.reach**2
        slope = np.exp(exponent)[:, None] * apart / self.reach**2
        return -np.expm1(exponent), slope


@dataclass(frozen=True)
class ShareScore(AbstractSmoothFunction):
    r"""Minus the regret that members expect of a first query, each in units of its own:

    $$ \sum_k w_k \max\!\Big( \frac{\mu_k(x) - \max \mu_k}{\max \mu_k -
       \operatorname{med} \mu_k}, -3 \Big) $$

    with maximum and median over the anchors: past tasks differ in level and scale.
    """

    belief: ConditionedBelief
    top: Float[np.ndarray, " K"]
    gap: Float[np.ndarray, " K"]

    @classmethod
    def of(cls, belief: ConditionedBelief, anchors: Float[np.ndarray, "m d"]) -> "ShareScore":
        """The score with the scales that members have at the anchors."""
        mean = belief.members(anchors)[0].mean
        top = np.max(mean, axis=1)
        gap = np.maximum(top - np.median(mean, axis=1), SMALLEST_GAP * np.std(mean))
        return cls(belief, top, np.where(gap > 0.0, gap, 1.0))

    def values(self, x):
        moments, weights = self.belief.members(x)
        return weights @ np.maximum(self._shares(moments.mean), WORST_SHARE)

    def gradients(self, x):
        moments, pullback = self.belief.smooth_members(x)
        shares = self._shares(moments.mean)
        by_mean = (shares > WORST_SHARE) * (self.belief.weights / self.gap)[:, None]
        values = self.belief.weights @ np.maximum(shares, WORST_SHARE)
        return values, pullback(by_mean, np.zeros_like(by_mean))

    def _shares(self, mean: Float[np.ndarray, "K k"]) -> Float[np.ndarray, "K k"]:
        return (mean - self.top[:, None]) / self.gap[:, None]


@dataclass(frozen=True)
class LogExpectedImprovement(AbstractAcquisition):
    r"""$\ln \mathbb{E} \max(f(x) - y^*, 0)$, stable where the improvement underflows.

    $y^*$ is the best observation; before the first, the largest posterior mean at the anchors.
    """

    def score(self, belief, anchors, rng):
        known = belief.y if len(belief.y) else belief.moments(anchors).mean
        return _scored(ImprovementScore(belief, float(np.max(known))), anchors)


@dataclass(frozen=True)
class ImprovementScore(AbstractSmoothFunction):
    """The score of `LogExpectedImprovement`; `best` is $y^*$."""

    belief: ConditionedBelief
    best: float

    def values(self, x):
        moments = self.belief.moments(x)
        std = np.sqrt(np.maximum(moments.function_variance, SMALLEST_VARIANCE))
        return np.log(std) + log_standard_improvement((moments.mean - self.best) / std)

    def gradients(self, x):
        r"""With $u = (\mu - y^*) / \sigma$, $\partial \ln h = \Phi(u) / h(u)\, \partial u$ and
        $\partial u = (\partial \mu - u\, \partial \sigma) / \sigma$."""
        from scipy.special import log_ndtr  # the default never needs it; it is slow to import

        moments, pullback = self.belief.smooth_moments(x)
        variance = moments.function_variance
        std = np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
        u = (moments.mean - self.best) / std
        log_h = log_standard_improvement(u)
        by_u = np.exp(log_ndtr(u) - log_h)
        by_variance = np.where(variance > SMALLEST_VARIANCE, (1.0 - by_u * u) / (2.0 * std**2), 0.0)
        return np.log(std) + log_h, pullback(by_u / std, by_variance)


@dataclass(frozen=True)
class ThompsonSampling(AbstractAcquisition):
    """A function drawn from the belief (Thompson sampling): its maximum is the query.

    - `num_anchors`: at most so many of the anchors are drawn exactly.
    """

    num_anchors: int = 512

    def score(self, belief, anchors, rng):
        stride = -(-len(anchors) // self.num_anchors)
        return _scored(PathScore(belief.path(anchors[::stride], rng)), anchors)


@dataclass(frozen=True)
class PathScore(AbstractSmoothFunction):
    """The score of `ThompsonSampling`."""

    path: AbstractPath

    def values(self, x):
        return self.path(x)

    def gradients(self, x):
        return self.path.slopes(x)


def _scored(score: AbstractSmoothFunction, anchors: Float[np.ndarray, "m d"]) -> ScoredAnchors:
    return ScoredAnchors(score, score.values(anchors))


def log_standard_improvement(u: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    r"""$\ln h(u)$ with $h(u) = \varphi(u) + u \Phi(u)$.

    For $u \ll 0$ the two terms cancel; there the series
    $h(u) = \varphi(u)\, u^{-2} (1 - 3 u^{-2} + 15 u^{-4} - 105 u^{-6} + \dots)$ takes over.
    """
    from scipy.special import ndtr

    far = u < FAR_BELOW
    near_u = np.where(far, -1.0, u)
    near = np.log(np.exp(-0.5 * near_u**2 - LOG_SQRT_2_PI) + near_u * ndtr(near_u))
    far_u = np.where(far, u, FAR_BELOW)
    s = 1.0 / far_u**2
    series = 1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s * (1.0 - 9.0 * s)))
    return np.where(far, -0.5 * far_u**2 - LOG_SQRT_2_PI + np.log(s * series), near)
