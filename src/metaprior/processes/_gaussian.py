"""Gaussian processes to be pulled towards: a kernel, and any mean."""

import jax.numpy as jnp

from metaprior.gp import AbstractKernel, AbstractMean, ConstantMean, GaussianProcess


def gaussian_process(kernel: AbstractKernel, mean: AbstractMean | None = None) -> GaussianProcess:
    r"""$\mathcal{GP}(m, k)$ without observation noise; the mean is zero by default."""
    mean = ConstantMean(jnp.asarray(0.0)) if mean is None else mean
    return GaussianProcess(mean, kernel, jnp.asarray(-jnp.inf))
