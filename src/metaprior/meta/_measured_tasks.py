"""Mini-batches of tasks, each with the measurement set where its prior meets the hyper-prior."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from metaprior.gp import Gaussian, GaussianProcess, log_density
from metaprior.meta._data import MetaData, TaskBatch
from metaprior.meta._measurement import MeasurementSizes, choose_measurements


class MeasuredTasks(NamedTuple):
    """Tasks and their measurement sets.

    `points` are the task's inputs followed by points of the domain; `rows` say which of them
    form the measurement set.
    """

    tasks: TaskBatch
    points: Float[Array, "batch p d"]
    rows: Int[Array, "batch total"]

    @property
    def measurements(self) -> Float[Array, "batch total d"]:
        """The measurement set of each task."""
        return jax.vmap(lambda points, rows: points[rows])(self.points, self.rows)

    def fit_and_marginals(self, prior: GaussianProcess) -> tuple[Float[Array, " batch"], Gaussian]:
        """Negative log-likelihood a point of each task, and the prior at each measurement set.

        The networks see each point once, and all points of the batch in one matrix product:
        likelihood and measurements are views of one marginal.
        """
        flat = self.points.reshape(-1, self.points.shape[-1])
        shape = self.points.shape[:2]
        mean = jax.vmap(prior.mean)(flat).reshape(shape)
        embedded = jax.vmap(prior.kernel.embed)(flat).reshape(*shape, -1)

        def one_task(tasks: TaskBatch, mean, embedded, rows):
            m = tasks.y.shape[0]
            covariance = prior.kernel.pairwise(embedded, embedded)
            observed = prior.observe(Gaussian(mean[:m], covariance[:m, :m]))
            fit = -log_density(tasks.y, observed, tasks.mask) / jnp.sum(tasks.mask)
            return fit, Gaussian(mean[rows], covariance[rows][:, rows])

        return jax.vmap(one_task)(self.tasks, mean, embedded, self.rows)


def measure_tasks(
    data: MetaData, sizes: MeasurementSizes, batch_size: int, *, key: PRNGKeyArray
) -> MeasuredTasks:
    """A random batch of tasks with random measurement sets."""
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
    return MeasuredTasks(tasks, jnp.concatenate([tasks.x, points], axis=1), rows)
