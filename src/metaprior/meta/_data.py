"""Meta-training data as compiled code sees them: standardised, padded, on the device."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from metaprior.data import Standardiser, Tasks, padded_length
from metaprior.meta._measurement import Domain, choose_tasks


class TaskBatch(eqx.Module):
    """A mini-batch of standardised tasks."""

    x: Float[Array, "batch m d"]
    y: Float[Array, "batch m"]
    mask: Bool[Array, "batch m"]


class MetaData(eqx.Module):
    """All tasks, standardised, with rows of padding tasks that are never drawn."""

    x: Float[Array, "n m d"]
    y: Float[Array, "n m"]
    mask: Bool[Array, "n m"]
    num_tasks: Int[Array, ""]
    domain: Domain

    def draw(self, draws: Float[Array, " batch"]) -> TaskBatch:
        """A task for each uniform random number in `draws`: distinct ones, or, where there are
        fewer tasks than that, each of them equally often up to one."""
        rounds = -(-draws.shape[0] // self.num_tasks)
        chosen = choose_tasks(rounds * self.num_tasks, draws) % self.num_tasks
        return TaskBatch(self.x[chosen], self.y[chosen], self.mask[chosen])


def meta_data(tasks: Tasks, standardiser: Standardiser) -> MetaData:
    """`tasks` in standardised units.

    The number of tasks is padded too, so that one more task, as in lifelong learning, rarely
    means a new compilation.
    """
    x = np.where(tasks.mask[..., None], np.asarray(standardiser.x(jnp.asarray(tasks.x))), 0.0)
    y = np.where(tasks.mask, np.asarray(standardiser.y(jnp.asarray(tasks.y))), 0.0)
    spare = padded_length(tasks.num_tasks) - tasks.num_tasks
    x, y, mask = (np.pad(a, [(0, spare)] + [(0, 0)] * (a.ndim - 1)) for a in (x, y, tasks.mask))
    return MetaData(
        jnp.asarray(x),
        jnp.asarray(y),
        jnp.asarray(mask),
        jnp.asarray(tasks.num_tasks),
        Domain(tasks.space, standardiser),
    )
