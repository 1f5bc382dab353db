r"""A distribution over priors: a diagonal Gaussian over all parameters of a process.

symbol      meaning                                             name here
phi         parameters of a prior                               leaves of `mean`, flattened
mu, s       mean and standard deviation of the Gaussian         mean, exp(log_std)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from metaprior.gp import GaussianProcess


class HyperPosterior(eqx.Module):
    r"""$\mathcal{Q}(\phi) = N(\mu, \mathrm{diag}(s^2))$ over the parameters of a GP prior."""

    mean: GaussianProcess
    # Flat, since it is no weight matrix: weight decay must not pull it to 0.
    log_std: Float[Array, " p"]

    def at(self, noise: Float[Array, "k p"]) -> GaussianProcess:
        r"""The priors $\phi = \mu + s \epsilon$, stacked, one for each row of standard normals."""
        params, static = eqx.partition(self.mean, eqx.is_inexact_array)
        mean, unravel = ravel_pytree(params)
        phi = mean[None, :] + jnp.exp(self.log_std)[None, :] * noise
        return eqx.combine(jax.vmap(unravel)(phi), static)


def hyper_posterior(prior: GaussianProcess, std: Float[Array, ""] | float) -> HyperPosterior:
    """A hyper-posterior around `prior` with the same standard deviation for all parameters."""
    flat, _ = ravel_pytree(eqx.filter(prior, eqx.is_inexact_array))
    return HyperPosterior(prior, jnp.full(flat.shape, jnp.log(std)))


def antithetic_normals(num: int, size: int, *, key) -> Float[Array, "num size"]:
    """Standard normals in pairs of opposite sign: half the cost, and errors of first order cancel
    within a pair."""
    # There are thousands of them in a step; single precision is plenty for noise.
    half = jax.random.normal(key, ((num + 1) // 2, size), jnp.float32).astype(float)
    return jnp.concatenate([half, -half])[:num]
