r"""Equal-weight mixtures of Gaussians: what a finite sample of models predicts together.

symbol           meaning                                               name here
K                number of components                                  leading axis of `components`
mu_k             mean of component k                                   components.mean
s_k^2            variance of an observation under component k          components.variance
"""

import abc

import jax
import jax.numpy as jnp
from jax.scipy import stats
from jaxtyping import Array, Float

from metaprior.methods._method import AbstractPosterior, Moments


def mixture_moments(components: Moments) -> Moments:
    r"""Moments of $\frac1K \sum_k \mathcal N(\mu_k, s_k^2)$, with function and noise apart.

    $$ \mu = \frac1K \sum_k \mu_k, \qquad
       \sigma^2 = \frac1K \sum_k s_k^2 + \frac1K \sum_k (\mu_k - \mu)^2 $$

    Disagreement between the components is uncertainty about the function, not noise.
    """
    mean, function_variance, noise_variance = components
    return Moments(
        jnp.mean(mean),
        jnp.mean(function_variance) + jnp.var(mean),
        jnp.mean(noise_variance),
    )


def mixture_log_density(components: Moments, y: Float[Array, ""]) -> Float[Array, ""]:
    r"""$\ln \frac1K \sum_k \mathcal N(y; \mu_k, s_k^2)$ of an observation."""
    # Summed in logarithms: far from every component each density is 0 to rounding.
    each = stats.norm.logpdf(y, components.mean, jnp.sqrt(components.variance))
    return jax.nn.logsumexp(each) - jnp.log(each.shape[0])


def mixture_cdf(components: Moments, y: Float[Array, ""]) -> Float[Array, ""]:
    r"""$\frac1K \sum_k \Phi\big( (y - \mu_k) / s_k \big)$: probability of observing at most `y`."""
    return jnp.mean(stats.norm.cdf(y, components.mean, jnp.sqrt(components.variance)))


class AbstractMixturePosterior(AbstractPosterior):
    """A posterior that is a Gaussian mixture at every point; final classes say which."""

    @abc.abstractmethod
    def components(self, x: Float[Array, " d"]) -> Moments:
        """The components at `x`, along a leading axis, in the units of `y`."""

    def moments(self, x):
        return mixture_moments(self.components(x))

    def log_density(self, x, y):
        return mixture_log_density(self.components(x), y)

    def cdf(self, x, y):
        return mixture_cdf(self.components(x), y)
