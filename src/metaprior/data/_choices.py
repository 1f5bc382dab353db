"""Choices: the points of a finite domain, in a buffer of a size that a stack of tasks can share."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from metaprior.data._runs import Run


class Choices(eqx.Module):
    """The only points that may be asked: the rows of `points` where `valid` is true.

    The other rows are padding. They repeat valid rows, so that nobody who looks at all rows sees
    a point outside of the domain.
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
