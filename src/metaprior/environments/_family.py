"""A family of tasks, and one task of it: the two interfaces every environment fills in.

A task is a module whose leaves are its parameters, so `jax.vmap` turns a function of one task
into a function of a stack of them. A family knows how its tasks are distributed, how many of them
and how long a run the benchmark uses, and where the optimum of each task lies.
"""

import abc
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior._precision import float64
from metaprior.data import Real, Space
from metaprior.environments._optimum import Optima, find_optima


class AbstractTask(eqx.Module):
    """One function to maximise, without observation noise.

    Calling the task takes one point of the unit cube, as the core does; `native` takes one point
    in the units of `space` and holds the formula; `evaluate` is for people.
    """

    space: eqx.AbstractClassVar[Space]

    @abc.abstractmethod
    def native(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """The function's value at `x`, given in the units of `space`."""

    def __call__(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """The function's value at the point `u` of the unit cube; larger is better."""
        low, high = (jnp.asarray(bound, u.dtype) for bound in _bounds(self.space))
        return self.native(low + (high - low) * u)

    @float64
    def evaluate(self, points: Any) -> np.ndarray:
        """The function's values at `points`, as an array of their number.

        - `points`: in the units of `space`: a list of dicts, or an array with a row for each point.
        """
        return np.asarray(_values(self, jnp.asarray(self.space.encode(points))))


def _bounds(space: Space) -> tuple[list[float], list[float]]:
    """Lower and upper bounds of a space of plain real dimensions."""
    reals = [each for each in space.dimensions if isinstance(each, Real) and not each.log]
    return [each.low for each in reals], [each.high for each in reals]


@jax.jit
def _values(task: AbstractTask, u: Float[Array, "m d"]) -> Float[Array, " m"]:
    return jax.vmap(task)(u)


TaskT = TypeVar("TaskT", bound=AbstractTask)


class Family(abc.ABC, Generic[TaskT]):
    """A distribution over tasks that share a space. Subclasses are frozen configurations.

    - `name`: the word that stands for the family in records and on the command line.
    - `num_tasks`, `run_length`: tasks to meta-train on and observations of each, by default those
      of the paper's table of benchmark environments.
    - `noise_std`: standard deviation of the Gaussian noise that `observe` adds.
    """

    name: ClassVar[str]
    space: ClassVar[Space]
    num_tasks: int
    run_length: int
    noise_std: float

    def __post_init__(self) -> None:
        for field in ("num_tasks", "run_length"):
            value = getattr(self, field)
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"`{field}` of {type(self).__name__} is {value!r}; give a whole number >= 1."
                )
        if not (math.isfinite(self.noise_std) and self.noise_std >= 0):
            raise ValueError(
                f"`noise_std` of {type(self).__name__} is {self.noise_std!r}; give a finite "
                "number >= 0 (0 observes the function itself)."
            )

    @abc.abstractmethod
    def sample(self, *, key: PRNGKeyArray) -> TaskT:
        """One task; may be traced, so `jax.vmap` over keys gives a stack of tasks."""

    @float64
    def sample_tasks(self, num: int, *, key: PRNGKeyArray) -> TaskT:
        """`num` independent tasks, stacked: every parameter has a leading axis of that length."""
        if num < 1:
            raise ValueError(f"Cannot sample {num} tasks; ask for at least 1.")
        # NumPy leaves keep their 64 bits whatever JAX's switch says after this call.
        return jax.tree.map(np.asarray, _sample_stack(self, jr.split(key, num)))

    def stack(self, tasks: Sequence[TaskT]) -> TaskT:
        """A list of tasks as one stack: the inverse of `unstack`."""
        if not tasks:
            raise ValueError("Cannot stack an empty list of tasks; give at least 1.")
        return jax.tree.map(lambda *leaves: np.stack([np.asarray(x) for x in leaves]), *tasks)

    def unstack(self, tasks: TaskT) -> list[TaskT]:
        """A stack of tasks as a list, one task after the other."""
        return [jax.tree.map(lambda leaf, i=i: leaf[i], tasks) for i in range(self._count(tasks))]

    def observe(self, task: TaskT, u: Float[Array, " d"], *, key: PRNGKeyArray) -> Float[Array, ""]:
        r"""$f(u) + \epsilon$ with $\epsilon$ Gaussian of standard deviation `noise_std`."""
        return task(u) + self.noise_std * jr.normal(key, (), u.dtype)

    def optimum(self, tasks: TaskT) -> Optima:
        """The maximum of every task of a stack, and where in the unit cube it is attained."""
        self._count(tasks)
        return find_optima(tasks, self.space.num_columns)

    def _count(self, tasks: TaskT) -> int:
        """The number of tasks in a stack; an error where there is no stack."""
        single = jax.eval_shape(lambda key: self.sample(key=key), jr.key(0))
        if jax.tree.structure(tasks) != jax.tree.structure(single):
            raise TypeError(
                f"Expected tasks of {type(self).__name__}, got {type(tasks).__name__}; "
                "use the family that sampled them."
            )
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(tasks)]
        # A parameter of one task may be a vector itself, so ranks tell a stack from a single task.
        if any(
            len(shape) != leaf.ndim + 1
            for shape, leaf in zip(shapes, jax.tree.leaves(single), strict=True)
        ):
            raise ValueError(
                f"Expected a stack of tasks, got a single {type(tasks).__name__}; "
                "make a stack of one with `family.stack([task])`."
            )
        return shapes[0][0]


@partial(jax.jit, static_argnums=0)
def _sample_stack(family: Family[TaskT], keys: Array) -> TaskT:
    return jax.vmap(lambda key: family.sample(key=key))(keys)
