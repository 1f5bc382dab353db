r"""Acquisition functions of compiled policies: from a posterior and the run so far to a score,
larger is better. `metaprior.bo` has the same for people's runs.

symbol      meaning
mu          posterior mean
sigma       posterior standard deviation of an observation, as in the paper
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Run
from metaprior.methods import AbstractPosterior

Score = Callable[[Float[Array, " d"]], Float[Array, ""]]
# Variances below this are rounding; the slope of their root, and a quotient by it, would be too.
SMALLEST_VARIANCE = 1e-16


class AbstractCompiledAcquisition(eqx.Module):
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


class CompiledConfidenceBound(AbstractCompiledAcquisition):
    r"""$\mu(x) + \beta\, \sigma(x)$, with $\sigma$ the predictive standard deviation."""

    beta: float = 2.0

    def score(self, posterior, run, anchors, *, key):
        def bound(x):
            moments = posterior.moments(x)
            return moments.mean + self.beta * jnp.sqrt(moments.variance)

        return bound


class CompiledLatentBound(AbstractCompiledAcquisition):
    r"""$\mu(x) + \beta\, \sigma_f(x)$, with $\sigma_f$ the standard deviation of the function.

    For a neural process, that of its mean over draws of the latent variable: what it takes for
    noise is left out, which does not shrink where it has looked.
    """

    beta: float = 2.0

    def score(self, posterior, run, anchors, *, key):
        def bound(x):
            moments = posterior.moments(x)
            variance = jnp.maximum(moments.function_variance, SMALLEST_VARIANCE)
            return moments.mean + self.beta * jnp.sqrt(variance)

        return bound


class CompiledRestlessBound(AbstractCompiledAcquisition):
    r"""The upper confidence bound, with checks of the model once it claims that nothing is left.

    A learned prior can be over-confident and wrong about a task that is unlike the past ones; the
    bound alone then asks for the same local optimum again and again. Here, when no point could
    beat the best observation by a noticeable margin,

    $$ \max_x \mu(x) + \beta\, \sigma(x) < y^* + \tau \,(\max_x \mu(x) - \min_x \mu(x)), $$

    every other query widens the bound until some point could, and so goes where the model's claim
    is easiest to refute; the queries between polish the optimum as before. A prior that knows how
    uncertain it is needs no more than $\beta = 1$ besides.

    What a model calls noise is often a rough function, which returns the same value for the same
    query. So noise counts only away from earlier queries, at distances $r$ from the nearest one
    that are not small compared with the reach $\ell$:

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
