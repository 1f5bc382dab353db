"""Mini-batches of tasks, each with the measurement set where its prior meets the hyper-prior."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from metaprior.gp import AbstractObservedProcess, Gaussian, log_density
from metaprior.meta._data import HeldOut, MetaData, TaskBatch
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

    def fit_and_marginals(
        self, prior: AbstractObservedProcess
    ) -> tuple[Float[Array, " batch"], Gaussian]:
        """Negative log-likelihood per point of each task, and the prior at each measurement set.

        The networks see each point once, and all points of the batch in one matrix product:
        likelihood and measurements are views of one marginal.
        """
        mean, embedded = prior.mean_and_embedded(self.points)

        def one_task(tasks: TaskBatch, mean, embedded, rows):
            m = tasks.y.shape[0]
            covariance = prior.kernel.pairwise(embedded, embedded)
            observed = prior.observe(Gaussian(mean[:m], covariance[:m, :m]))
            fit = -log_density(tasks.y, observed, tasks.mask) / jnp.sum(tasks.mask)
            return fit, Gaussian(mean[rows], covariance[rows][:, rows])

        return jax.vmap(one_task)(self.tasks, mean, embedded, self.rows)


def measure_tasks(
    data: MetaData,
    sizes: MeasurementSizes,
    batch_size: int,
    held_out: HeldOut,
    *,
    key: PRNGKeyArray,
) -> MeasuredTasks:
    """A random batch of tasks that are not held out, with random measurement sets.

    Runs longer than `sizes.longest` are subsampled to that many points, anew in every step, which
    bounds time and memory of a step.
    """
    capacity, d = data.x.shape[1:]
    columns = data.domain.space.num_columns
    # One call for all random numbers of a step: each call costs compile time and run time.
    num_cube = batch_size * sizes.from_domain * columns
    uniform = jax.random.uniform(key, (batch_size + batch_size * capacity + num_cube,))
    which, scores, cube = jnp.split(uniform, [batch_size, batch_size * (1 + capacity)])
    tasks, scores = data.draw(which, held_out), scores.reshape(batch_size, capacity)
    if capacity > sizes.longest:
        tasks, scores = jax.vmap(lambda task, s: _some_points(task, s, sizes.longest))(
            tasks, scores
        )
    points = data.domain.points(cube.reshape(-1, columns)).reshape(batch_size, -1, d)
    rows = jax.vmap(lambda mask, scores: choose_measurements(mask, scores, sizes))(
        tasks.mask, scores
    )
    return MeasuredTasks(tasks, jnp.concatenate([tasks.x, points], axis=1), rows)


def _some_points(task: TaskBatch, scores: Float[Array, " m"], num: int):
    """The `num` rows with the largest scores, real ones before padding, and their scores."""
    _, rows = jax.lax.top_k(scores + task.mask, num)
    return jax.tree.map(lambda leaf: leaf[rows], task), scores[rows]
