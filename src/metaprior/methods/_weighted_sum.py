"""A weighted sum of independent Gaussian processes: the posterior of an ensemble."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.gp import ConditionedProcess, Gaussian, sample
from metaprior.methods._gaussian_posterior import AbstractGaussianPosterior
from metaprior.methods._method import Moments

# Members that are worked on at once: bounds the memory that thousands of them need.
BATCH = 32


class WeightedSumPosterior(AbstractGaussianPosterior):
    r"""$f(x) = a + b \sum_i w_i f_i(x)$ with independent $f_i$: those of the past, along a leading
    axis, and the target's; $a$ and $b$ are the level and the scale of the run."""

    past: ConditionedProcess
    target: ConditionedProcess
    past_weights: Float[Array, " n"]
    target_weight: Float[Array, ""]
    y_mean: Float[Array, ""]
    y_std: Float[Array, ""]

    def moments(self, x):
        means, variances = jax.vmap(lambda member: member(x))(self.past)
        noise_variances = jnp.exp(self.past.process.log_noise_variance)
        mean, variance = self.target(x)
        return Moments(
            self.y_mean + self.y_std * (self.past_weights @ means + self.target_weight * mean),
            self._variance(variances, variance),
            self._variance(noise_variances, self.target.process.noise_variance),
        )

    def _variance(self, past: Float[Array, " n"], target: Float[Array, ""]) -> Float[Array, ""]:
        """Variance of the weighted sum, in the units of the run."""
        return self.y_std**2 * (self.past_weights**2 @ past + self.target_weight**2 * target)

    def sample(self, x, num, *, key):
        def plus(total: Gaussian, member: ConditionedProcess, weight) -> Gaussian:
            own = member.joint(x)
            return Gaussian(
                total.mean + weight * own.mean, total.covariance + weight**2 * own.covariance
            )

        m = x.shape[0]
        start = plus(Gaussian(jnp.zeros(m), jnp.zeros((m, m))), self.target, self.target_weight)
        joint, _ = jax.lax.scan(
            lambda total, member: (plus(total, *member), None),
            start,
            (self.past, self.past_weights),
        )
        return self.y_mean + self.y_std * sample(joint, num, key=key)

    def path(self, anchors, *, key):
        key_past, key_target = jax.random.split(key)
        keys = jax.random.split(key_past, self.past_weights.shape[0])
        past = jax.lax.map(
            lambda member: member[0].path(anchors, key=member[1]),
            (self.past, keys),
            batch_size=BATCH,
        )
        target = self.target.path(anchors, key=key_target)

        def value(x):
            values = jax.vmap(lambda path: path(x))(past)
            drawn = self.past_weights @ values + self.target_weight * target(x)
            return self.y_mean + self.y_std * drawn

        return value
