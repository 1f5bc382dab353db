"""The stochastic process that a learned prior is pulled towards where data are missing."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.gp import ConstantMean, GaussianProcess, SquaredExponential


def vanilla_hyper_prior(
    lengthscale: Float[Array, ""] | float, variance: Float[Array, ""] | float
) -> GaussianProcess:
    r"""$\mathcal{GP}(0, k_{SE})$ in standardised units: what a careful person would assume.

    Its noise plays no part in the functional divergence and is set to zero.
    """
    kernel = SquaredExponential(jnp.log(lengthscale), jnp.log(variance))
    return GaussianProcess(ConstantMean(jnp.asarray(0.0)), kernel, jnp.asarray(-jnp.inf))
