"""Mixtures of whole posteriors: what several models of one kind believe together."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.methods._method import AbstractPosterior, Moments


def equal_mixture(members: AbstractPosterior) -> "MixturePosterior":
    """Posteriors stacked along a leading axis, each as likely as any other."""
    count = jax.tree.leaves(eqx.filter(members, eqx.is_array))[0].shape[0]
    return MixturePosterior(members, jnp.full(count, 1.0 / count))


class MixturePosterior(AbstractPosterior):
    r"""$\sum_k w_k p_k$ of posteriors of any one kind, stacked along a leading axis."""

    members: AbstractPosterior
    weights: Float[Array, " members"]

    def moments(self, x):
        r"""Of the mixture: $\mu = \sum_k w_k \mu_k$, and
        $\sigma^2 = \sum_k w_k (\sigma_k^2 + (\mu_k - \mu)^2)$."""
        each = self._each(lambda member: member.moments(x))
        mean = self.weights @ each.mean
        # Disagreement between the members is uncertainty about the function, not noise.
        disagreement = self.weights @ (each.mean - mean) ** 2
        return Moments(
            mean,
            self.weights @ each.function_variance + disagreement,
            self.weights @ each.noise_variance,
        )

    def log_density(self, x, y):
        each = self._each(lambda member: member.log_density(x, y))
        return jax.nn.logsumexp(each + jnp.log(self.weights))

    def cdf(self, x, y):
        # Weights that sum to 1 up to rounding make a probability up to rounding.
        return jnp.minimum(self.weights @ self._each(lambda member: member.cdf(x, y)), 1.0)

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
