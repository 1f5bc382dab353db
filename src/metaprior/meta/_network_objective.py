r"""The F-PACOH objective of a prior over networks, from samples of their weights.

symbol      meaning                                             name here
P_phi       the prior, a distribution over weights              model
theta       weights drawn from it                               model.function(whitened, ...)
l           loss of a prediction at an observation              loss_function

All other symbols are those of `_objective.py`.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from metaprior.gp import AbstractProcess
from metaprior.meta._data import MetaData
from metaprior.meta._hyper_posterior import antithetic_normals
from metaprior.meta._hyper_prior import divergence_weight, hyper_prior_at
from metaprior.meta._measured_tasks import MeasuredTasks, measure_tasks
from metaprior.meta._measurement import MeasurementSizes
from metaprior.meta._network_likelihood import (
    Loss,
    condition_draws,
    gaussian_loss,
    log_mean_exp,
    total_losses,
)
from metaprior.meta._network_prior import NetworkPrior
from metaprior.meta._tangent import Observations
from metaprior.meta._train import AbstractObjective
from metaprior.processes import (
    AbstractScoreEstimator,
    Samples,
    SpectralStein,
    Target,
    divergence,
)


class NetworkBatch(NamedTuple):
    """Tasks with measurement sets, the hyper-prior there, and the noise of all samples: of
    weights, of values at the measurement sets, and of observations."""

    measured: MeasuredTasks
    hyper_prior: Target
    whitened: Float[Array, "samples p"]
    value_noise: Float[Array, "batch samples total"]
    observation_noise: Float[Array, "batch samples m"]
    keys: Key[Array, " batch"]


class NetworkObjective(AbstractObjective):
    r"""Estimate of the F-PACOH objective of a prior over networks from a batch of tasks.

    $$ J(\phi) = \frac1n \sum_{i=1}^n \Big[ - \frac{1}{T_i}
       \ln \mathbb{E}_{\theta \sim P_\phi} e^{- \sum_t l(h_\theta(x_{i,t}),\, y_{i,t})}
       + \kappa \Big( \frac{1}{\sqrt n} + \frac{1}{n T_i} \Big)
         \mathbb{E}_X \, \mathrm{KL}\big( p_\phi(h_X) \,\|\, \rho(h_X) \big) \Big] $$

    Both expectations are taken over the same `num_samples` networks, which see all points of a
    batch; for the likelihood each of them is also moved towards the run, as
    `_network_likelihood.py` explains, along a tangent found by `newton_steps` steps (with 0 steps
    the draws of the prior stand alone). $p_\phi(h_X)$ has no density, so its score is estimated
    from the values of the networks. `num_weights` is the number of weights of each.
    """

    data: MetaData
    hyper_prior: AbstractProcess
    kl_weight: Float[Array, ""]
    measurement_variance: Float[Array, ""]
    sizes: MeasurementSizes = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)
    num_samples: int = eqx.field(static=True)
    num_weights: int = eqx.field(static=True)
    newton_steps: int = eqx.field(static=True, default=3)
    estimator: AbstractScoreEstimator = SpectralStein()
    loss_function: Loss = eqx.field(static=True, default=gaussian_loss)

    def draw(self, *, key: PRNGKeyArray) -> NetworkBatch:
        keys = jax.random.split(key, 6)
        measured = measure_tasks(self.data, self.sizes, self.batch_size, self.held_out, key=keys[0])
        targets = hyper_prior_at(
            self.hyper_prior,
            measured.measurements,
            jitter=self.measurement_variance,
            estimator=self.estimator,
            num_samples=self.num_samples,
            key=keys[1],
        )
        batch, capacity = measured.tasks.y.shape
        return NetworkBatch(
            measured,
            targets,
            antithetic_normals(self.num_samples, self.num_weights, key=keys[2]),
            jax.random.normal(keys[3], (batch, self.num_samples, self.sizes.total)),
            jax.random.normal(keys[4], (batch, self.num_samples, capacity)),
            jax.random.split(keys[5], batch),
        )

    def loss(self, model: NetworkPrior, batch: NetworkBatch):
        tasks, points, rows = batch.measured
        # All points of the batch go through each network in one matrix product.
        flat = model.functions(batch.whitened, points.reshape(-1, points.shape[-1]))
        values = jnp.swapaxes(flat.reshape(-1, *points.shape[:2]), 0, 1)
        resolution = jnp.sqrt(self.measurement_variance)
        num_tasks = self.data.num_seen(self.held_out)

        def one_task(task, values, rows, hyper_prior, value_noise, observation_noise, key):
            length = jnp.sum(task.mask)
            observed = Observations(task.x, task.y, task.mask)
            at_data, at_measurements = values[:, : task.y.shape[0]], values[:, rows]
            likelihood = self._log_likelihood(
                model, observed, batch.whitened, at_data, observation_noise
            )
            own = Samples(at_measurements + resolution * value_noise)
            kl = divergence(own, hyper_prior, estimator=self.estimator, noise=None, key=key)
            complexity = self.kl_weight * divergence_weight(num_tasks, length) * kl
            return -likelihood / length, complexity, jnp.var(at_measurements, axis=0)

        fit, complexity, variance = jax.vmap(one_task)(
            tasks,
            values,
            rows,
            batch.hyper_prior,
            batch.value_noise,
            batch.observation_noise,
            batch.keys,
        )
        fit = jnp.mean(fit)
        # The value of the complexity is that of a surrogate and has no meaning, so the diversity
        # of the prior's functions, which the divergence maintains, is reported instead.
        function_std = jnp.sqrt(jnp.mean(variance))
        return fit + jnp.mean(complexity), {"fit": fit, "function_std": function_std}

    def _log_likelihood(
        self,
        model: NetworkPrior,
        observed: Observations,
        whitened: Float[Array, "s p"],
        values: Float[Array, "s m"],
        noise: Float[Array, "s m"],
    ) -> Float[Array, ""]:
        r"""$\ln Z$ of one task; `values` are those of the prior's draws at its points."""
        log_weights = jnp.zeros(values.shape[0])
        if self.newton_steps > 0:
            conditioned, log_weights = condition_draws(
                model, observed, whitened, noise, self.newton_steps
            )
            values = jnp.concatenate([values, model.functions(conditioned, observed.x)])
        losses = total_losses(
            values, observed.y, observed.mask, model.noise_variance, self.loss_function
        )
        return log_mean_exp(log_weights - losses)
