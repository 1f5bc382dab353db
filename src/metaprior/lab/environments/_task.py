"""One task: a function to maximise, and the domain it is defined on.

A task is a module whose leaves are its parameters, so `jax.vmap` turns a function of one task
into a function of a stack of them.
"""

import abc
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Choices, Space
from metaprior.gp import float64


class AbstractTask(eqx.Module):
    """One function to maximise, without observation noise.

    Calling the task takes one point of the unit cube, as the core does; `evaluate` is for people.
    """

    space: eqx.AbstractVar[Space]

    @property
    @abc.abstractmethod
    def choices(self) -> Choices | None:
        """The points that may be asked, if they are finitely many; `None` for the whole space."""

    @abc.abstractmethod
    def __call__(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """The function's value at the point `u` of the unit cube; larger is better."""

    @abc.abstractmethod
    def num_points(self) -> Float[Array, ""]:
        """How many different points may be asked; infinity if there is no end to them."""

    @abc.abstractmethod
    def uniform(
        self, sizes: tuple[int, ...], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, "_ d"], ...]:
        """Sets of points drawn uniformly from the domain, one set for each of `sizes`.

        No point is drawn twice, in one set or in two, where there are finitely many.
        """

    @float64
    def evaluate(self, points: Any) -> np.ndarray:
        """The function's values at `points`, as an array of their number.

        - `points`: in the units of `space`: a list of dicts, or an array with a row for each point.
        """
        return np.asarray(_values(self, jnp.asarray(self.space.encode(points))))


@jax.jit
def _values(task: AbstractTask, u: Float[Array, "m d"]) -> Float[Array, " m"]:
    return jax.vmap(task)(u)


TaskT = TypeVar("TaskT", bound=AbstractTask)
