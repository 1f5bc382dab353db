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
    """A block of consecutive tasks that a training must not see: `count` tasks from `first` on;
    one block for each training of a batch."""

    first: Int[Array, "*batch"]
    count: Int[Array, "*batch"]

    def skip(self, index: Int[Array, " k"]) -> Int[Array, " k"]:
        """Indices among the other tasks as indices among all."""
        return jnp.where(index < self.first, index, index + self.count)

    def holds(self, index: Int[Array, " k"]) -> Bool[Array, " k"]:
        """Whether the tasks of these indices are held out."""
        return (index >= self.first) & (index < self.first + self.count)


def nothing_held_out() -> HeldOut:
    """Every task may be seen."""
    return HeldOut(jnp.asarray(0), jnp.asarray(0))


class MetaData(eqx.Module):
    """All tasks, standardised, with rows of padding tasks that are never drawn.

    Every reader says which tasks are held out from it, so that an objective cannot forget to.
    """

    x: Float[Array, "n m d"]
    y: Float[Array, "n m"]
    mask: Bool[Array, "n m"]
    num_tasks: Int[Array, ""]
    domain: Domain

    def num_seen(self, held_out: HeldOut) -> Int[Array, ""]:
        """The number $n$ of tasks that are not held out."""
        return self.num_tasks - held_out.count

    def lengths_seen(self, held_out: HeldOut) -> Int[Array, " n"]:
        """The number of observations of each task; 0 for tasks that are held out or padding."""
        index = jnp.arange(self.mask.shape[0])
        seen = (index < self.num_tasks) & ~held_out.holds(index)
        return jnp.where(seen, jnp.sum(self.mask, axis=1), 0)

    def draw(self, draws: Float[Array, " batch"], held_out: HeldOut) -> TaskBatch:
        """One task that is not held out per uniform random number in `draws`; distinct tasks as
        long as there are enough, and otherwise all of them equally often, up to one."""
        n = self.num_seen(held_out)
        rounds = -(-draws.shape[0] // n)
        chosen = held_out.skip(choose_tasks(rounds * n, draws) % n)
        return TaskBatch(self.x[chosen], self.y[chosen], self.mask[chosen])


def meta_data(tasks: Tasks, standardiser: Standardiser) -> MetaData:
    """`tasks` in standardised units.

    The number of tasks is padded too, so that one more task, as in lifelong learning, rarely
    means a new compilation.
    """
    # On the host: every operation on the device would be a program to compile.
    units, mask = standardiser, tasks.mask
    x = (tasks.x - np.asarray(units.x_mean)) / np.asarray(units.x_std)
    y = (tasks.y - np.asarray(units.y_mean)) / np.asarray(units.y_std)
    x, y = np.where(mask[..., None], x, 0.0), np.where(mask, y, 0.0)
    spare = padded_length(tasks.num_tasks) - tasks.num_tasks
    x, y, mask = (np.pad(a, [(0, spare)] + [(0, 0)] * (a.ndim - 1)) for a in (x, y, mask))
    return MetaData(
        jnp.asarray(x),
        jnp.asarray(y),
        jnp.asarray(mask),
        jnp.asarray(np.asarray(tasks.num_tasks)),
        Domain(tasks.space, standardiser),
    )
