r"""Acquisition functions: from a posterior and the run so far to a score, larger is better.

symbol      meaning
mu          posterior mean
sigma       posterior standard deviation: of an observation in UCB, as in the paper; of the
            function in expected improvement
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy import stats
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from metaprior.data import Run
from metaprior.methods import AbstractPosterior

Score = Callable[[Float[Array, " d"]], Float[Array, ""]]
# Variances below this are rounding; the slope of their root, and a quotient by it, would be too.
SMALLEST_VARIANCE = 1e-16


class AbstractAcquisition(eqx.Module):
    """How much a query is worth."""

    @abc.abstractmethod
    def score(
        self,
        posterior: AbstractPosterior,
        run: Run,
        anchors: Float[Array, "m d"],
        *,
        key: PRNGKeyArray,
    ) -> Score:
        """The function of single points to be maximised; `anchors` cover the space."""


class UpperConfidenceBound(AbstractAcquisition):
    r"""$\mu(x) + \beta\, \sigma(x)$, with $\sigma$ the predictive standard deviation."""

    beta: float = 2.0

    def score(self, posterior, run, anchors, *, key):
        def bound(x):
            moments = posterior.moments(x)
            return moments.mean + self.beta * jnp.sqrt(moments.variance)

        return bound


class RestlessConfidenceBound(AbstractAcquisition):
    r"""The upper confidence bound, with checks of the model once it claims that nothing is left.

    A learned prior can be sure of itself and wrong about a task that is unlike the past ones; the
    plain bound then asks for the same local optimum again and again. Here, when no point could
    beat the best observation by a noticeable margin,

    $$ \max_x \mu(x) + \beta\, \sigma(x) < y^* + \tau \,(\max_x \mu(x) - \min_x \mu(x)), $$

    every other query widens the bound until some point could, and so goes where the model's claim
    is easiest to refute; the queries between polish the optimum as before. A prior that knows how
    uncertain it is needs no more than $\beta = 1$ besides.

    What a model calls noise is often a rough function, which says the same to the same question. So
    noise is worth a query where there is none yet, and nothing at a distance $r$ from a query that
    is small beside the reach $\ell$:

    $$ \sigma^2(x) = \sigma_f^2(x) + (1 - e^{-r^2 / 2 \ell^2})\, \sigma_\text{noise}^2(x). $$
    """

    beta: float = 1.0
    tolerance: float = 1e-4
    reach: float = 0.1

    def score(self, posterior, run, anchors, *, key):
        def expected(x):
            moments = posterior.moments(x)
            squares = jnp.sum((run.x - x[None, :]) ** 2, axis=1)
            nearest = jnp.min(squares, where=run.mask, initial=jnp.inf)
            news = -jnp.expm1(-0.5 * nearest / self.reach**2)
            variance = moments.function_variance + news * moments.noise_variance
            return moments.mean, jnp.sqrt(jnp.maximum(variance, SMALLEST_VARIANCE))

        mean, std = jax.vmap(expected)(anchors)
        best = jnp.max(jnp.where(run.mask, run.y, -jnp.inf))
        margin = self.tolerance * (jnp.max(mean) - jnp.min(mean))
        needed = jnp.min((best + margin - mean) / std)
        check = (run.length % 2 == 1) & (needed > self.beta)
        # A little more than needed, so that the likeliest surprise stands out.
        beta = jnp.where(check, 1.2 * needed, self.beta)

        def bound(x):
            mean, std = expected(x)
            return mean + beta * std

        return bound


class LogExpectedImprovement(AbstractAcquisition):
    r"""$\ln \mathbb{E} \max(f(x) - y^*, 0)$, stable where the improvement underflows.

    $y^*$ is the best observation; before the first, the largest posterior mean at the anchors.
    """

    def score(self, posterior, run, anchors, *, key):
        expected = jax.vmap(lambda x: posterior.moments(x).mean)(anchors)
        observed = jnp.where(run.mask, run.y, -jnp.inf)
        best = jnp.where(run.length > 0, jnp.max(observed), jnp.max(expected))

        def log_improvement(x):
            moments = posterior.moments(x)
            std = jnp.sqrt(jnp.maximum(moments.function_variance, SMALLEST_VARIANCE))
            return jnp.log(std) + log_standard_improvement((moments.mean - best) / std)

        return log_improvement


class ThompsonSampling(AbstractAcquisition):
    """A function drawn from the posterior: its maximum is the query."""

    def score(self, posterior, run, anchors, *, key):
        return posterior.path(anchors, key=key)


class Held(AbstractAcquisition):
    """Another acquisition where some columns stay at their values, whatever a query says of them.

    - `mask`: which columns; `values`: where they stay, and anything in the others.
    """

    acquisition: AbstractAcquisition
    mask: Bool[Array, " d"]
    values: Float[Array, " d"]

    def score(self, posterior, run, anchors, *, key):
        held = jax.vmap(self.place)(anchors)
        score = self.acquisition.score(posterior, run, held, key=key)
        return lambda x: score(self.place(x))

    def place(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """The query that `x` stands for."""
        return jnp.where(self.mask, self.values, x)


def log_standard_improvement(u: Float[Array, ""]) -> Float[Array, ""]:
    r"""$\ln h(u)$ with $h(u) = \varphi(u) + u \Phi(u)$.

    For $u \ll 0$ the two terms cancel; there the series
    $h(u) = \varphi(u)\, u^{-2} (1 - 3 u^{-2} + 15 u^{-4} - 105 u^{-6} + \dots)$ takes over.
    """
    far = u < -30.0
    near_u = jnp.where(far, -1.0, u)
    near = jnp.log(stats.norm.pdf(near_u) + near_u * stats.norm.cdf(near_u))
    far_u = jnp.where(far, u, -30.0)
    s = 1.0 / far_u**2
    series = 1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s * (1.0 - 9.0 * s)))
    return jnp.where(far, stats.norm.logpdf(far_u) + jnp.log(s * series), near)
