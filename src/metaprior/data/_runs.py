"""Runs and finite domains in buffers of fixed capacity, so that compiled code does not depend on
their lengths."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

SMALLEST_CAPACITY = 16


class Run(eqx.Module):
    """One optimisation history: `x` in the unit cube, `y` maximised, padded to a capacity."""

    x: Float[Array, "capacity d"]
    y: Float[Array, " capacity"]
    length: Int[Array, ""]

    @property
    def mask(self) -> Bool[Array, " capacity"]:
        """Which rows hold observations."""
        return jnp.arange(self.y.shape[0]) < self.length

    def append(self, x: Float[Array, " d"], y: Float[Array, ""]) -> "Run":
        """The run with one more observation; the caller keeps it within its capacity."""
        return Run(self.x.at[self.length].set(x), self.y.at[self.length].set(y), self.length + 1)


def canonical_order(
    x: Float[Array, "m d"], y: Float[Array, " m"], mask: Bool[Array, " m"]
) -> Int[Array, " m"]:
    """Rows sorted by value, then by point, padding last: for whatever random numbers are drawn row
    by row and must not depend on the order in which a run was observed."""
    columns = [x[:, j] for j in reversed(range(x.shape[1]))]
    return jnp.lexsort([*columns, y, ~mask])


def empty_run(capacity: int, num_columns: int) -> Run:
    """A run without observations."""
    return Run(jnp.zeros((capacity, num_columns)), jnp.zeros(capacity), jnp.asarray(0))


def run_of(x: Float[np.ndarray, "m d"], y: Float[np.ndarray, " m"], spare: int = 0) -> Run:
    """A run of the given observations with room for `spare` more.

    The capacity is a power of two, so a growing run changes its shape, and compiled code that
    depends on it, only when it doubles.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    capacity = SMALLEST_CAPACITY
    while capacity < len(y) + spare:
        capacity *= 2
    padding = capacity - len(y)
    return Run(
        jnp.asarray(np.pad(x, ((0, padding), (0, 0)))),
        jnp.asarray(np.pad(y, (0, padding))),
        jnp.asarray(len(y)),
    )


class Choices(eqx.Module):
    """The only points that may be queried: the rows of `points` where `valid` is true.

    The other rows are padding. They repeat valid rows, so that every row is a point of the domain.
    """

    points: Float[Array, "m d"]
    valid: Bool[Array, " m"]

    def unasked(self, run: Run) -> Bool[Array, " m"]:
        """Which rows are valid and not among the queries of `run`."""
        # Queries are copies of rows, never computed, so equal means equal in every bit.
        same = jnp.all(self.points[:, None, :] == run.x[None, :, :], axis=2)
        return self.valid & ~jnp.any(same & run.mask[None, :], axis=1)

    def nearest(self, point: Float[Array, " d"], among: Bool[Array, " m"]) -> Int[Array, ""]:
        """Index of the row of `among` with the smallest distance to `point` in the unit cube."""
        distance = jnp.sum((self.points - point[None, :]) ** 2, axis=1)
        return jnp.argmin(jnp.where(among, distance, jnp.inf))

    def draw(self, num: int, *, key: PRNGKeyArray) -> Float[Array, "{num} d"]:
        """`num` different valid points, uniform; there must be as many."""
        ticket = jnp.where(self.valid, jax.random.uniform(key, self.valid.shape), -1.0)
        _, rows = jax.lax.top_k(ticket, num)
        return self.points[rows]
