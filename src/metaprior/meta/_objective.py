r"""The F-PACOH objective with a MAP hyper-posterior (the paper's equation 3 and algorithm 3).

symbol      meaning                                             name here
n           number of all tasks                                 data.num_tasks
H           number of tasks in a batch                          batch_size
T_i         number of observations of task i                    mask.sum()
L           number of measurement points                        sizes.total
kappa       weight of the divergence                            kl_weight
rho         the hyper-prior                                     hyper_prior
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from metaprior.gp import (
    Gaussian,
    GaussianProcess,
    Reference,
    kl_divergence,
    log_density,
    reference,
)
from metaprior.meta._data import MetaData, TaskBatch
from metaprior.meta._measurement import MeasurementSizes, choose_measurements
from metaprior.meta._train import AbstractObjective


class MeasuredBatch(NamedTuple):
    """A mini-batch of tasks, each with its measurement set and the hyper-prior there.

    `points` are the task's inputs followed by points of the domain; `rows` say which of them
    form the measurement set.
    """

    tasks: TaskBatch
    points: Float[Array, "batch p d"]
    rows: Int[Array, "batch total"]
    hyper_prior: Reference


class FPacohObjective(AbstractObjective):
    r"""Unbiased estimate of the F-PACOH objective from a batch of tasks.

    $$ J(\phi) = \frac1n \sum_{i=1}^n \Big[ -\frac{1}{T_i} \ln p_\phi(y_i \mid x_i)
       + \kappa \Big( \frac{1}{\sqrt n} + \frac{1}{n T_i} \Big)
         \mathbb{E}_X \, \mathrm{KL}\big( p_\phi(f_X) \,\|\, \rho(f_X) \big) \Big] $$

    with $X$ a random measurement set. `measurement_variance` is the jitter that both sides of the
    divergence share: how finely two functions are compared.
    """

    data: MetaData
    hyper_prior: GaussianProcess
    kl_weight: Float[Array, ""]
    measurement_variance: Float[Array, ""]
    sizes: MeasurementSizes = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)

    def draw(self, *, key: PRNGKeyArray) -> MeasuredBatch:
        data, sizes, batch_size = self.data, self.sizes, self.batch_size
        capacity, d = data.x.shape[1:]
        # One call for all random numbers of a step: each call costs compile time and run time.
        num_cube = batch_size * sizes.from_domain * d
        uniform = jax.random.uniform(key, (batch_size + batch_size * capacity + num_cube,))
        which, scores, cube = jnp.split(uniform, [batch_size, batch_size * (1 + capacity)])
        tasks = data.draw(which)
        points = data.domain.points(cube.reshape(-1, d)).reshape(batch_size, -1, d)
        rows = jax.vmap(lambda mask, scores: choose_measurements(mask, scores, sizes))(
            tasks.mask, scores.reshape(batch_size, capacity)
        )
        points = jnp.concatenate([tasks.x, points], axis=1)
        measured = jax.vmap(lambda points, rows: points[rows])(points, rows)
        hyper_prior = jax.vmap(
            lambda x: reference(self.hyper_prior.marginal(x), self.measurement_variance)
        )(measured)
        return MeasuredBatch(tasks, points, rows, hyper_prior)

    def loss(self, model: GaussianProcess, batch: MeasuredBatch):
        n = self.data.num_tasks
        # The networks see each point once, and all points of the batch in one matrix product:
        # likelihood and divergence are views of one marginal.
        flat = batch.points.reshape(-1, batch.points.shape[-1])
        shape = batch.points.shape[:2]
        mean = jax.vmap(model.mean)(flat).reshape(shape)
        embedded = jax.vmap(model.kernel.embed)(flat).reshape(*shape, -1)

        def one_task(tasks: TaskBatch, mean, embedded, rows, hyper_prior: Reference):
            m = tasks.y.shape[0]
            covariance = model.kernel.pairwise(embedded, embedded)
            at_data = Gaussian(mean[:m], covariance[:m, :m])
            at_measurements = Gaussian(mean[rows], covariance[rows][:, rows])
            length = jnp.sum(tasks.mask)
            fit = -log_density(tasks.y, model.observe(at_data), tasks.mask) / length
            kl = kl_divergence(at_measurements, hyper_prior)
            weight = self.kl_weight * (1 / jnp.sqrt(n) + 1 / (n * length))
            return fit, weight * kl

        terms = jax.vmap(one_task)(batch.tasks, mean, embedded, batch.rows, batch.hyper_prior)
        fit, complexity = jax.tree.map(jnp.mean, terms)
        return fit + complexity, {"fit": fit, "complexity": complexity}
