r"""Mixtures of posteriors: what several models believe together.

symbol           meaning                                               name here
w_k              probability of member k                               weights
mu_k, s_k^2      mean and variance under member k                      each.mean, each.variance
C_k              joint covariance of the function under member k       covariances

Disagreement between the members is uncertainty about the function, not noise.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy import stats
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.methods._method import AbstractPosterior, Moments

Weights = Float[Array, " members"]


def equal_weights(count: int) -> Weights:
    """Members each as likely as any other."""
    return jnp.full(count, 1.0 / count)


def mixture_moments(each: Moments, weights: Weights) -> Moments:
    r"""$\mu = \sum_k w_k \mu_k$ and $\sigma^2 = \sum_k w_k (s_k^2 + (\mu_k - \mu)^2)$, with
    function and noise apart."""
    mean = weights @ each.mean
    disagreement = weights @ (each.mean - mean) ** 2
    return Moments(
        mean,
        weights @ each.function_variance + disagreement,
        weights @ each.noise_variance,
    )


def mixture_covariance(
    means: Float[Array, "members m"], covariances: Float[Array, "members m m"], weights: Weights
) -> Float[Array, "m m"]:
    r"""$\sum_k w_k (C_k + (\mu_k - \mu)(\mu_k - \mu)^\top)$: the law of total covariance."""
    within = jnp.tensordot(weights, covariances, axes=1)
    return within + disagreement_covariance(means, weights)


def disagreement_covariance(
    means: Float[Array, "members m"], weights: Weights
) -> Float[Array, "m m"]:
    r"""$\sum_k w_k (\mu_k - \mu)(\mu_k - \mu)^\top$."""
    apart = means - (weights @ means)[None, :]
    return apart.T @ (weights[:, None] * apart)


def mixture_log_density(each: Float[Array, " members"], weights: Weights) -> Float[Array, ""]:
    r"""$\ln \sum_k w_k e^{a_k}$ of the log densities $a_k$."""
    # Summed in logarithms: far from every member each density is 0 to rounding.
    return jax.nn.logsumexp(each + jnp.log(weights))


def mixture_cdf(each: Float[Array, " members"], weights: Weights) -> Float[Array, ""]:
    r"""$\sum_k w_k F_k$ of the probabilities $F_k$."""
    # Weights that sum to 1 up to rounding make a probability up to rounding.
    return jnp.minimum(weights @ each, 1.0)


def equal_mixture(members: AbstractPosterior) -> "MixturePosterior":
    """Posteriors stacked along a leading axis, each as likely as any other."""
    count = jax.tree.leaves(eqx.filter(members, eqx.is_array))[0].shape[0]
    return MixturePosterior(members, equal_weights(count))


class MixturePosterior(AbstractPosterior):
    r"""$\sum_k w_k p_k$ of posteriors of any one kind, stacked along a leading axis."""

    members: AbstractPosterior
    weights: Weights

    def moments(self, x):
        return mixture_moments(self._each(lambda member: member.moments(x)), self.weights)

    def log_density(self, x, y):
        return mixture_log_density(self._each(lambda m: m.log_density(x, y)), self.weights)

    def cdf(self, x, y):
        return mixture_cdf(self._each(lambda member: member.cdf(x, y)), self.weights)

    def covariance(self, x):
        means = self._each(lambda member: jax.vmap(member.moments)(x).mean)
        return mixture_covariance(means, self._each(lambda m: m.covariance(x)), self.weights)

    def sample(self, x, num, *, key):
        def one(key):
            key_member, key_function = jax.random.split(key)
            return self._drawn(key_member).sample(x, 1, key=key_function)[0]

        return jax.vmap(one)(jax.random.split(key, num))

    def path(self, anchors, *, key):
        key_member, key_function = jax.random.split(key)
        return self._drawn(key_member).path(anchors, key=key_function)

    def _each(self, function):
        return eqx.filter_vmap(function)(self.members)

    def _drawn(self, key: PRNGKeyArray) -> AbstractPosterior:
        index = jax.random.categorical(key, jnp.log(self.weights))
        arrays, static = eqx.partition(self.members, eqx.is_array)
        return eqx.combine(jax.tree.map(lambda leaf: leaf[index], arrays), static)


class AbstractParticlePosterior(AbstractPosterior):
    """A finite set of functions, each as likely as any other, which make an equal mixture of
    Gaussians at every point; final classes say which."""

    @abc.abstractmethod
    def components(self, x: Float[Array, " d"]) -> Moments:
        """The Gaussians at `x`, along a leading axis, in the units of `y`."""

    @abc.abstractmethod
    def functions(self, x: Float[Array, " d"]) -> Float[Array, " k"]:
        """Values of the functions at `x`, in the units of `y`."""

    def moments(self, x):
        each = self.components(x)
        return mixture_moments(each, equal_weights(each.mean.shape[0]))

    def log_density(self, x, y):
        each = self.components(x)
        densities = stats.norm.logpdf(y, each.mean, jnp.sqrt(each.variance))
        return mixture_log_density(densities, equal_weights(each.mean.shape[0]))

    def cdf(self, x, y):
        each = self.components(x)
        below = stats.norm.cdf(y, each.mean, jnp.sqrt(each.variance))
        return mixture_cdf(below, equal_weights(each.mean.shape[0]))

    def covariance(self, x):
        """Of the functions themselves."""
        values = jax.vmap(self.functions, out_axes=1)(x)
        return disagreement_covariance(values, equal_weights(values.shape[0]))
