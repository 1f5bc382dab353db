"""The hyper-prior of a method, and how scores are estimated where a density is missing."""

import jax.numpy as jnp

from metaprior.gp import AbstractProcess
from metaprior.meta import gp_hyper_prior
from metaprior.processes import AbstractScoreEstimator, SlicedScoreMatching, SpectralStein

# A score network is fitted anew in every training step, so it has to be content with a few steps
# from the Gaussian score that it starts from.
ESTIMATORS = {"spectral": SpectralStein(), "sliced": SlicedScoreMatching(num_steps=10)}


def hyper_prior_of(method, num_columns: int) -> AbstractProcess:
    r"""`method.hyper_prior` if there is one; otherwise a squared-exponential GP with
    `method.hyper_lengthscale` in units of $\sqrt d$, since distances between points of a
    $d$-dimensional domain grow like that."""
    if method.hyper_prior is not None:
        return method.hyper_prior
    lengthscale = method.hyper_lengthscale * jnp.sqrt(num_columns)
    return gp_hyper_prior(lengthscale, method.hyper_variance)


def estimator_of(name: str) -> AbstractScoreEstimator:
    """The score estimator of that name: "spectral" (Stein) or "sliced" (score matching)."""
    if name not in ESTIMATORS:
        raise ValueError(
            f"There is no score estimator {name!r}; give one of {', '.join(map(repr, ESTIMATORS))}."
        )
    return ESTIMATORS[name]
