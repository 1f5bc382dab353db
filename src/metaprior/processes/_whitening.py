r"""Coordinates in which a distribution has mean zero and unit covariance.

symbol      meaning                                             shape
h           values of a process at n points                     (n,)
m, C        their mean and covariance                           (n,), (n, n)
L           lower Cholesky factor of C                          (n, n)
z           whitened values, L^{-1} (h - m)                     (n,)

Values of a smooth function at neighbouring points agree up to the jitter, so their covariance is
nearly singular and their score is huge in some directions and small in others. An estimator that
measures distances between samples sees nothing of that; in whitened coordinates it need not.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.gp import Gaussian, cholesky, invert_factor


class Whitening(eqx.Module):
    r"""The map $z = L^{-1} (h - m)$."""

    mean: Float[Array, " n"]
    inverse_factor: Float[Array, "n n"]

    def __call__(self, values: Float[Array, "k n"]) -> Float[Array, "k n"]:
        """Each row of `values` in whitened coordinates."""
        return (values - self.mean[None, :]) @ self.inverse_factor.T

    def pull_back(self, scores: Float[Array, "k n"]) -> Float[Array, "k n"]:
        r"""$L^{-\top} s$ of each row: a score with respect to $z$ as one with respect to $h$."""
        return scores @ self.inverse_factor


def whitening(moments: Gaussian) -> Whitening:
    """The map that whitens a distribution of these moments."""
    return Whitening(moments.mean, invert_factor(cholesky(moments.covariance, 0.0)))


def sample_moments(samples: Float[Array, "k n"]) -> Gaussian:
    r"""Mean and covariance of the samples themselves, differentiable.

    With fewer than $2n$ samples the covariance gets a ridge, of up to its mean variance, so that
    it can be inverted.
    """
    num, n = samples.shape
    mean = jnp.mean(samples, axis=0)
    centred = samples - mean[None, :]
    covariance = centred.T @ centred / max(num - 1, 1)
    shortage = max(0.0, 1.0 - num / (2 * n))
    ridge = shortage**2 * jnp.trace(covariance) / n
    return Gaussian(mean, covariance + ridge * jnp.eye(n))


def population_moments(samples: Float[Array, "k n"]) -> Gaussian:
    r"""Mean and covariance of the distribution that the samples come from.

    The inverse of the covariance $S$ of $k$ normal samples exceeds that of the distribution,
    $\mathbb{E} S^{-1} = \frac{k - 1}{k - n - 2} C^{-1}$, and it is the inverse that makes the
    score of a sample not seen before: $S$ is enlarged by this factor.
    """
    num, n = samples.shape
    mean, covariance = sample_moments(samples)
    # With fewer than 2n samples the ridge takes over.
    enlarge = (num - 1) / max(num - n - 2, n - 2, 1)
    return Gaussian(mean, max(enlarge, 1.0) * covariance)
