"""Refining the noise and the output scale of a process on the run at hand.

A prior learned from many short runs keeps some noise to explain what its mean and kernel cannot,
and late in a run that noise limits how closely the optimum is found. A task may also vary more
than the past ones did. Both are estimated from the run itself.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from metaprior.gp._kernels import ScaledKernel
from metaprior.gp._linalg import JITTER
from metaprior.gp._process import AbstractObservedProcess, GaussianProcess

# Steps in the logarithm of the noise variance, fine near the learned value and coarse below; and
# in that of the kernel's variance.
NOISE_STEPS = np.array([-14.0, -12.0, -10.0, -8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0])

SCALE_STEPS = np.array([0.0, 0.7, 1.4, 2.1, 2.8])


class Spread(eqx.Module):
    """How far a run may be from what was learned, as standard deviations of logarithms."""

    noise: Float[Array, ""]
    scale: Float[Array, ""]


def refine(
    process: AbstractObservedProcess,
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    mask: Bool[Array, " n"],
    spread: Spread,
) -> GaussianProcess:
    r"""`process` with noise variance and kernel scale that maximise evidence times prior.

    The prior is Gaussian in the logarithms, around the learned values, so a short run changes
    little; a spread of zero keeps what was learned.
    """
    marginal = process.marginal(x)
    residual = jnp.where(mask, y - marginal.mean, 0.0)
    covariance = jnp.where(mask[:, None] & mask[None, :], marginal.covariance, 0.0)
    # Noise and scale change the eigenvalues and nothing else: one factorisation serves all steps.
    eigenvalues, eigenvectors = jnp.linalg.eigh(covariance)
    eigenvalues = jnp.maximum(eigenvalues, 0.0)
    squares = (residual @ eigenvectors) ** 2
    num_padded = jnp.sum(~mask)

    def log_evidence(noise_step, scale_step):
        noise = jnp.exp(process.log_noise_variance + noise_step) + JITTER
        variances = jnp.exp(scale_step) * eigenvalues + noise
        # Every padded row has eigenvalue 0, and says nothing.
        determinant = jnp.sum(jnp.log(variances)) - num_padded * jnp.log(noise)
        return -0.5 * (jnp.sum(squares / variances) + determinant)

    noise_step, scale_step = best_steps(log_evidence, spread)
    return GaussianProcess(
        process.mean,
        ScaledKernel(process.kernel, scale_step),
        process.log_noise_variance + noise_step,
    )


def best_steps(
    log_evidence: Callable[[Float[Array, ""], Float[Array, ""]], Float[Array, ""]], spread: Spread
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The steps in log noise variance and log scale with the most evidence times prior."""

    def log_posterior(noise_step, scale_step):
        surprise = _surprise(noise_step, spread.noise) + _surprise(scale_step, spread.scale)
        return log_evidence(noise_step, scale_step) - surprise

    noise_steps, scale_steps = (s.ravel() for s in jnp.meshgrid(NOISE_STEPS, SCALE_STEPS))
    best = jnp.argmax(jax.vmap(log_posterior)(noise_steps, scale_steps))
    return noise_steps[best], scale_steps[best]


def _surprise(step: Float[Array, ""], spread: Float[Array, ""]) -> Float[Array, ""]:
    """Half the squared distance from the learned value, in units of the spread."""
    return jnp.where(step == 0, 0.0, 0.5 * (step / spread) ** 2)
