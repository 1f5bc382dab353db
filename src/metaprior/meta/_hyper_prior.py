"""The stochastic process that a learned prior is pulled towards where data are missing."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from metaprior.gp import AbstractProcess, GaussianProcess, SquaredExponential
from metaprior.processes import AbstractScoreEstimator, Target, gaussian_process, target_of


def gp_hyper_prior(
    lengthscale: Float[Array, ""] | float, variance: Float[Array, ""] | float
) -> GaussianProcess:
    r"""$\mathcal{GP}(0, k_{SE})$ in standardised units: a conservative default."""
    return gaussian_process(SquaredExponential(jnp.log(lengthscale), jnp.log(variance)))


def hyper_prior_at(
    hyper_prior: AbstractProcess,
    sets: Float[Array, "batch total d"],
    *,
    jitter: Float[Array, ""],
    estimator: AbstractScoreEstimator,
    num_samples: int,
    key: PRNGKeyArray,
) -> Target:
    """The hyper-prior at each measurement set of a batch, in the form it is compared in."""

    def at(x, key):
        return target_of(
            hyper_prior, x, jitter=jitter, estimator=estimator, num_samples=num_samples, key=key
        )

    return jax.vmap(at)(sets, jax.random.split(key, sets.shape[0]))


def divergence_weight(num_tasks: Int[Array, ""], length: Int[Array, ""]) -> Float[Array, ""]:
    r"""$1 / \sqrt n + 1 / (n T_i)$: the fewer the tasks, the more the hyper-prior counts."""
    return 1 / jnp.sqrt(num_tasks) + 1 / (num_tasks * length)
