r"""The F-PACOH objective with a variational hyper-posterior (the paper's algorithm 2).

symbol      meaning                                             name here
Q_xi        hyper-posterior over priors                         model
phi_k       a prior drawn from it                               priors
h           values of a function drawn from a drawn prior       values
K, S        number of priors, and of functions from each        num_priors, num_functions

All other symbols are those of `_objective.py`.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from metaprior.gp import AbstractProcess, Gaussian, cholesky
from metaprior.meta._data import MetaData
from metaprior.meta._hyper_posterior import HyperPosterior, antithetic_normals
from metaprior.meta._hyper_prior import divergence_weight, hyper_prior_at
from metaprior.meta._measured_tasks import MeasuredTasks, measure_tasks
from metaprior.meta._measurement import MeasurementSizes
from metaprior.meta._train import AbstractObjective
from metaprior.processes import (
    AbstractScoreEstimator,
    Samples,
    SpectralStein,
    Target,
    divergence,
)


class VariationalBatch(NamedTuple):
    """Tasks with measurement sets, the hyper-prior there, and the noise of all samples."""

    measured: MeasuredTasks
    hyper_prior: Target
    prior_noise: Float[Array, "priors p"]
    function_noise: Float[Array, "batch priors functions total"]
    keys: Key[Array, " batch"]


class VariationalObjective(AbstractObjective):
    r"""Estimate of the F-PACOH objective of a hyper-posterior from a batch of tasks.

    $$ J(\xi) = \frac1n \sum_{i=1}^n \Big[
       - \frac{1}{T_i} \mathbb{E}_{\phi \sim \mathcal{Q}_\xi} \ln p_\phi(y_i \mid x_i)
       + \kappa \Big( \frac{1}{\sqrt n} + \frac{1}{n T_i} \Big)
         \mathbb{E}_X \, \mathrm{KL}\big( q_\xi(h_X) \,\|\, \rho(h_X) \big) \Big],
       \qquad q_\xi(h_X) = \mathbb{E}_{\phi \sim \mathcal{Q}_\xi} \, p_\phi(h_X) $$

    The mixture $q_\xi$ has no tractable density, so its score is estimated from function samples.
    `num_parameters` is the number of entries of $\phi$.
    """

    data: MetaData
    hyper_prior: AbstractProcess
    kl_weight: Float[Array, ""]
    measurement_variance: Float[Array, ""]
    sizes: MeasurementSizes = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)
    num_priors: int = eqx.field(static=True)
    num_functions: int = eqx.field(static=True)
    num_parameters: int = eqx.field(static=True)
    estimator: AbstractScoreEstimator = SpectralStein()

    def draw(self, *, key: PRNGKeyArray) -> VariationalBatch:
        key_tasks, key_target, key_prior, key_function, key_estimate = jax.random.split(key, 5)
        measured = measure_tasks(
            self.data, self.sizes, self.batch_size, self.held_out, key=key_tasks
        )
        targets = hyper_prior_at(
            self.hyper_prior,
            measured.measurements,
            jitter=self.measurement_variance,
            estimator=self.estimator,
            num_samples=self.num_priors * self.num_functions,
            key=key_target,
        )
        shape = (self.batch_size, self.num_priors, self.num_functions, self.sizes.total)
        return VariationalBatch(
            measured,
            targets,
            antithetic_normals(self.num_priors, self.num_parameters, key=key_prior),
            jax.random.normal(key_function, shape, jnp.float32).astype(float),
            jax.random.split(key_estimate, self.batch_size),
        )

    def loss(self, model: HyperPosterior, batch: VariationalBatch):
        measured = batch.measured
        num_tasks = self.data.num_seen(self.held_out)
        # Batched over priors first, then tasks.
        fit, marginals = eqx.filter_vmap(measured.fit_and_marginals)(model.at(batch.prior_noise))

        def one_task(marginals: Gaussian, hyper_prior, noise, key, length):
            samples = mixture_samples(marginals, noise, self.measurement_variance)
            kl = divergence(samples, hyper_prior, estimator=self.estimator, noise=None, key=key)
            return self.kl_weight * divergence_weight(num_tasks, length) * kl

        complexity = jax.vmap(one_task, in_axes=(1, 0, 0, 0, 0))(
            marginals,
            batch.hyper_prior,
            batch.function_noise,
            batch.keys,
            jnp.sum(measured.tasks.mask, axis=1),
        )
        fit = jnp.mean(fit)
        # The value of the complexity is that of a surrogate and has no meaning: not reported.
        return fit + jnp.mean(complexity), {"fit": fit}


def mixture_samples(
    marginals: Gaussian,
    noise: Float[Array, "priors functions total"],
    jitter: Float[Array, ""],
) -> Samples:
    """Functions drawn from each prior, and the moments of the mixture of all priors."""
    factors = jax.vmap(lambda covariance: cholesky(covariance, jitter))(marginals.covariance)
    values = marginals.mean[:, None, :] + noise @ jnp.swapaxes(factors, 1, 2)
    mean = jnp.mean(marginals.mean, axis=0)
    apart = marginals.mean - mean[None, :]
    between = apart.T @ apart / apart.shape[0]
    within = jnp.mean(marginals.covariance, axis=0) + jitter * jnp.eye(mean.shape[0])
    return Samples(values.reshape(-1, mean.shape[0]), Gaussian(mean, within + between))
