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


class HeldOut(eqx.Module):
    """A block of neighbouring tasks that a training must not see: `count` of them from `first`;
    one block for each training of a batch."""

    first: Int[Array, "*batch"]
    count: Int[Array, "*batch"]

    def skip(self, index: Int[Array, " k"]) -> Int[Array, " k"]:
        """Indices among the other tasks as indices among all."""
        return jnp.where(index < self.first, index, index + self.count)


def nothing_held_out() -> HeldOut:
    """Every task may be seen."""
    return HeldOut(jnp.asarray(0), jnp.asarray(0))


class MetaData(eqx.Module):
    """All tasks, standardised, with rows of padding tasks that are never drawn."""

    x: Float[Array, "n m d"]
    y: Float[Array, "n m"]
    mask: Bool[Array, "n m"]
    num_tasks: Int[Array, ""]
    domain: Domain

    def draw(self, draws: Float[Array, " batch"], held_out: HeldOut | None = None) -> TaskBatch:
        """A task for each uniform random number in `draws`: distinct ones, or, where there are
        fewer tasks than that, each of them equally often up to one."""
        held_out = nothing_held_out() if held_out is None else held_out
        n = self.num_tasks - held_out.count
        rounds = -(-draws.shape[0] // n)
        chosen = held_out.skip(choose_tasks(rounds * n, draws) % n)
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
