"""A task and a family of tasks: the interface of everything that studies and examples run on.

A task is one function to maximise: a module whose leaves are its parameters, so that `jax.vmap`
turns a function of one task into a function of a stack of them.

A family knows which tasks there are to learn from, to choose hyper-parameters on and to be judged
on, how many of them and how long a run the benchmark uses, and where the optimum of each lies.
"""

import abc
import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Choices, Space
from metaprior.gp import float64
from metaprior.lab.environments._optimum import Optima


class AbstractTask(eqx.Module):
    """One function to maximise, without observation noise.

    Calling the task takes one point of the unit cube; `evaluate` takes points in the units of its
    space.
    """

    space: eqx.AbstractVar[Space]

    @property
    @abc.abstractmethod
    def choices(self) -> Choices | None:
        """The points that may be queried, if they are finitely many; `None` for the whole space."""

    @abc.abstractmethod
    def __call__(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        """The function's value at the point `u` of the unit cube; larger is better."""

    @abc.abstractmethod
    def num_points(self) -> Float[Array, ""]:
        """The number of points that may be queried; infinity for a continuous space."""

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


class Available(NamedTuple):
    """The number of different tasks of each kind in a family; `None` if unlimited."""

    training: int | None
    validation: int | None
    test: int | None


class Family(abc.ABC, Generic[TaskT]):
    """Related tasks that share a space. Subclasses are frozen configurations.

    - `name`: the word that stands for the family in records and on the command line.
    - `num_tasks`, `run_length`: tasks to meta-train on and observations of each, by default those
      of the paper's table of benchmark environments.
    - `noise_std`: standard deviation of the Gaussian noise that `observe` adds.
    - `provenance`: where the function values come from, in a few words.
    """

    name: str
    space: Space
    provenance: str
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

    @property
    @abc.abstractmethod
    def available(self) -> Available:
        """How many different tasks there are of each kind."""

    @abc.abstractmethod
    def training_tasks(self, num: int, *, key: PRNGKeyArray) -> TaskT:
        """Tasks to learn from, stacked: `num` of them, or all there are if those are fewer."""

    @abc.abstractmethod
    def validation_tasks(self, num: int, *, key: PRNGKeyArray) -> TaskT:
        """Tasks to choose hyper-parameters on, never to report on; as many as above."""

    @abc.abstractmethod
    def test_tasks(self, num: int, *, key: PRNGKeyArray) -> TaskT:
        """Unseen tasks to be judged on; as many as above."""

    def rehearsal(self, index: int) -> "Family[TaskT]":
        """The family for choosing hyper-parameters, of which nothing is reported: where tasks are
        few, some of those to learn from are kept apart to validate on, others for each `index`."""
        return self

    @abc.abstractmethod
    def optimum(self, tasks: TaskT) -> Optima:
        """The maximum of every task of a stack, and where in the unit cube it is attained."""

    @abc.abstractmethod
    def _template(self) -> TaskT:
        """What one task looks like: its structure, and leaves of the right ranks."""

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

    def _count(self, tasks: TaskT) -> int:
        """The number of tasks in a stack; an error where there is no stack."""
        single = self._template()
        if jax.tree.structure(tasks) != jax.tree.structure(single):
            raise TypeError(
                f"Expected tasks of {type(self).__name__}, got {type(tasks).__name__}; "
                "use the family that they came from."
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


def require_positive(num: int) -> int:
    """`num`, if it is a number of tasks that can be asked for."""
    if num < 1:
        raise ValueError(f"Cannot sample {num} tasks; ask for at least 1.")
    return num
