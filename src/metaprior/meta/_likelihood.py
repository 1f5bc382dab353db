r"""Likelihood objectives: unregularised, and regularised in the parameter space.

symbol      meaning                                             name here
n           number of tasks that are not held out               num_tasks
H           number of tasks in a batch                          batch_size
T_i         number of observations of task i                    mask.sum()
T~          harmonic mean of the T_i                            harmonic_length
ln Z_i      log marginal likelihood of task i                   log_likelihoods
phi         all parameters of the prior                         model
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.gp import Gaussian, GaussianProcess, log_density
from metaprior.meta._data import HeldOut, MetaData, TaskBatch
from metaprior.meta._train import AbstractObjective


def log_likelihoods(model: GaussianProcess, tasks: TaskBatch) -> Float[Array, " batch"]:
    r"""$\ln Z_i = \ln p_\phi(y_i \mid x_i)$ of each task."""
    # All points of the batch go through the networks in one matrix product.
    mean, embedded = model.mean_and_embedded(tasks.x)

    def one_task(mean, embedded, y, mask):
        function = Gaussian(mean, model.kernel.pairwise(embedded, embedded))
        return log_density(y, model.observe(function), mask)

    return jax.vmap(one_task)(mean, embedded, tasks.y, tasks.mask)


class LikelihoodObjective(AbstractObjective):
    r"""Unbiased estimate of the negative log-likelihood of all tasks, a mean over observations.

    $$ J(\phi) = - \frac{\sum_{i=1}^n \ln Z_i(\phi)}{\sum_{i=1}^n T_i}
       \approx - \frac1H \sum_{i \in \text{batch}} \frac{\ln Z_i(\phi)}{\bar T},
       \qquad \bar T = \frac1n \sum_{i=1}^n T_i $$

    Its minimiser maximises the sum of the tasks' log-likelihoods: a long task counts for more than
    a short one. `log_likelihoods` gives $\ln Z_i$ of the tasks of a batch under the model.
    """

    data: MetaData
    mean_length: Float[Array, ""]
    log_likelihoods: Callable[[Any, TaskBatch], Float[Array, " batch"]] = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)

    def without(self, held_out: HeldOut) -> "LikelihoodObjective":
        total = jnp.sum(self.data.lengths_seen(held_out))
        return eqx.tree_at(
            lambda o: (o.held_out, o.mean_length),
            self,
            (held_out, total / self.data.num_seen(held_out)),
        )

    def draw(self, *, key: PRNGKeyArray) -> TaskBatch:
        return self.data.draw(jax.random.uniform(key, (self.batch_size,)), self.held_out)

    def loss(self, model: Any, batch: TaskBatch):
        fit = -jnp.mean(self.log_likelihoods(model, batch)) / self.mean_length
        return fit, {"fit": fit}


class PacohObjective(AbstractObjective):
    r"""Unbiased estimate of the PACOH objective with a MAP hyper-posterior.

    $$ J(\phi) = - \frac1n \sum_{i=1}^n \frac{1}{T_i} \ln Z_i(\phi)
       + \kappa \Big( \frac{1}{\sqrt n} + \frac{1}{n \tilde T} \Big)
         \frac{\|\phi\|^2}{2 \sigma_P^2},
       \qquad \tilde T = \Big( \frac1n \sum_{i=1}^n \frac{1}{T_i} \Big)^{-1} $$

    The last factor is $-\ln P(\phi)$ of the hyper-prior $P = N(0, \sigma_P^2 I)$ on all parameters,
    up to a constant; $\kappa = 1$ is the bound of the paper with $\lambda = \sqrt n$.
    """

    data: MetaData
    kappa: Float[Array, ""]
    hyper_prior_variance: Float[Array, ""]
    harmonic_length: Float[Array, ""]
    batch_size: int = eqx.field(static=True)

    def without(self, held_out: HeldOut) -> "PacohObjective":
        lengths = self.data.lengths_seen(held_out)
        inverse = jnp.sum(jnp.where(lengths > 0, 1.0 / jnp.maximum(lengths, 1), 0.0))
        return eqx.tree_at(
            lambda o: (o.held_out, o.harmonic_length),
            self,
            (held_out, self.data.num_seen(held_out) / inverse),
        )

    def draw(self, *, key: PRNGKeyArray) -> TaskBatch:
        return self.data.draw(jax.random.uniform(key, (self.batch_size,)), self.held_out)

    def loss(self, model: GaussianProcess, batch: TaskBatch):
        n = self.data.num_seen(self.held_out)
        fit = -jnp.mean(log_likelihoods(model, batch) / jnp.sum(batch.mask, axis=1))
        parameters, _ = ravel_pytree(eqx.filter(model, eqx.is_inexact_array))
        surprise = 0.5 * jnp.sum(parameters**2) / self.hyper_prior_variance
        weight = self.kappa * (1 / jnp.sqrt(n) + 1 / (n * self.harmonic_length))
        complexity = weight * surprise
        return fit + complexity, {"fit": fit, "complexity": complexity}
