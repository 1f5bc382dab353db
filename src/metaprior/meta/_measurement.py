r"""Measurement sets: where the learned prior and the hyper-prior are compared.

A set for task $i$ is $X_i = [X^D_{i,s}, X^M_i]$: a few of the task's own inputs, without
replacement, and points drawn uniformly from the domain.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from metaprior.data import Space, Standardiser

# A step costs the cube of this number. The paper's longest runs have 50 points.
LONGEST = 128


class Domain(eqx.Module):
    """The bounded domain of the inputs, in standardised units."""

    space: Space = eqx.field(static=True)
    standardiser: Standardiser

    def points(self, cube: Float[Array, "num columns"]) -> Float[Array, "num d"]:
        """Uniform draws from the unit cube as points uniform on the domain: integers and
        categories take valid values, and what does not exist at a point is canonical."""
        valid = jax.vmap(lambda unit: self.space.embed(self.space.snap(unit), jnp))(cube)
        return self.standardiser.x(valid)


class MeasurementSizes(eqx.Module):
    """How many points of a measurement set come from where.

    A task with fewer than `from_task` points gives all it has, and the domain gives the rest, so
    that all sets have `total` points. `from_domain` is what the shortest task needs. No more than
    `longest` points of a run take part in one step.
    """

    total: int = eqx.field(static=True)
    from_task: int = eqx.field(static=True)
    from_domain: int = eqx.field(static=True)
    longest: int = eqx.field(static=True, default=LONGEST)


def measurement_sizes(total: int, from_task: int, shortest_run: int) -> MeasurementSizes:
    """Sizes of the sets for tasks of which the shortest has `shortest_run` points."""
    from_task = min(from_task, total)
    return MeasurementSizes(total, from_task, total - min(from_task, shortest_run))


def choose_measurements(
    mask: Bool[Array, " m"], scores: Float[Array, " m"], sizes: MeasurementSizes
) -> Int[Array, " total"]:
    """Rows of `[task inputs, domain points]` that make up one measurement set.

    `scores` are uniform random numbers, one per row of the task.
    """
    capacity = mask.shape[0]
    available = jnp.minimum(jnp.sum(mask), sizes.from_task)
    # The largest of random scores, real rows before padding: a draw without replacement.
    width = min(sizes.from_task, capacity)
    _, from_task = jax.lax.top_k(scores + mask, width)
    slots = jnp.arange(sizes.total)
    from_task = jnp.pad(from_task, (0, sizes.total - width))
    from_domain = capacity + slots - available
    return jnp.where(slots < available, from_task, from_domain)


def choose_tasks(num_tasks: Int[Array, ""], draws: Float[Array, " batch"]) -> Int[Array, " batch"]:
    """Distinct task indices, one for each uniform random number in `draws`, at a cost that does not
    depend on the number of tasks.

    Floyd's algorithm: the draw for place $j$ comes from the first $n - H + j + 1$ tasks; if it is
    taken already, the last of these is new for certain.
    """
    batch_size = draws.shape[0]
    chosen = jnp.full(batch_size, -1)
    for j in range(batch_size):
        last = num_tasks - batch_size + j
        candidate = jnp.floor(draws[j] * (last + 1)).astype(chosen.dtype)
        chosen = chosen.at[j].set(jnp.where(jnp.any(chosen == candidate), last, candidate))
    return chosen
