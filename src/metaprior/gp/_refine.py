"""Refining the noise of a process on the run at hand.

A prior learned from many short runs keeps some noise to explain what its mean and kernel cannot,
and late in a run that noise decides how closely an optimum is found. The run itself tells more.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from metaprior.gp._gaussian import Gaussian, log_density
from metaprior.gp._process import GaussianProcess

# Steps in the logarithm of the noise variance, fine near the learned value and coarse below.
LOG_STEPS = np.array([-14.0, -12.0, -10.0, -8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0])


def refine_noise(
    process: GaussianProcess,
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    mask: Bool[Array, " n"],
    log_spread: Float[Array, ""],
) -> GaussianProcess:
    r"""`process` with the noise variance that maximises evidence times prior on a fixed ladder.

    The prior is $\ln \sigma^2 \sim N(\ln \sigma^2_\mathrm{learned}, s^2)$ with $s$ the
    `log_spread`, so a short run changes little; $s = 0$ keeps the learned noise.
    """
    marginal = process.marginal(x)
    identity = jnp.eye(y.shape[0])

    def log_posterior(step):
        noise = jnp.exp(process.log_noise_variance + step) * identity
        evidence = log_density(y, Gaussian(marginal.mean, marginal.covariance + noise), mask)
        surprise = jnp.where(step == 0, 0.0, (step / log_spread) ** 2)
        return evidence - 0.5 * surprise

    steps = jnp.asarray(LOG_STEPS)
    best = steps[jnp.argmax(jax.vmap(log_posterior)(steps))]
    return eqx.tree_at(
        lambda p: p.log_noise_variance, process, process.log_noise_variance + best
    )
