"""Families given by a formula with random parameters: any number of tasks, on a whole cube."""

import abc
from functools import partial
from typing import ClassVar, Generic, TypeVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Real, Space
from metaprior.gp import float64
from metaprior.lab.environments._family import AbstractTask, Available, Family, require_positive
from metaprior.lab.environments._optimum import Optima, find_optima


class AbstractFormula(AbstractTask):
    """A smooth function on a box; `native` takes a point in the units of `space` and holds the
    formula."""

    @property
    def choices(self) -> None:
        return None

    @abc.abstractmethod
    def native(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """The function's value at `x`, given in the units of `space`."""

    def __call__(self, u: Float[Array, " d"]) -> Float[Array, ""]:
        low, high = (jnp.asarray(bound, u.dtype) for bound in _bounds(self.space))
        return self.native(low + (high - low) * u)

    def num_points(self) -> Float[Array, ""]:
        return jnp.asarray(jnp.inf)

    def uniform(
        self, sizes: tuple[int, ...], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, "_ d"], ...]:
        keys = jr.split(key, len(sizes))
        d = self.space.num_columns
        return tuple(jr.uniform(key, (size, d)) for key, size in zip(keys, sizes, strict=True))


FormulaT = TypeVar("FormulaT", bound=AbstractFormula)


class SimulatedFamily(Family[FormulaT], Generic[FormulaT]):
    """A distribution over formulas: tasks of every kind are independent draws from it."""

    provenance: ClassVar[str] = "random formula"

    @abc.abstractmethod
    def sample(self, *, key: PRNGKeyArray) -> FormulaT:
        """One task; may be traced, so `jax.vmap` over keys gives a stack of tasks."""

    @float64
    def sample_tasks(self, num: int, *, key: PRNGKeyArray) -> FormulaT:
        """`num` independent tasks, stacked: every parameter has a leading axis of that length."""
        keys = jr.split(key, require_positive(num))
        # NumPy leaves keep their 64 bits whatever JAX's switch says after this call.
        return jax.tree.map(np.asarray, _sample_stack(self, keys))

    @property
    def available(self) -> Available:
        return Available(None, None, None)

    def training_tasks(self, num: int, *, key: PRNGKeyArray) -> FormulaT:
        return self.sample_tasks(num, key=key)

    def validation_tasks(self, num: int, *, key: PRNGKeyArray) -> FormulaT:
        return self.sample_tasks(num, key=key)

    def test_tasks(self, num: int, *, key: PRNGKeyArray) -> FormulaT:
        return self.sample_tasks(num, key=key)

    def optimum(self, tasks: FormulaT) -> Optima:
        self._count(tasks)
        return find_optima(tasks, self.space.num_columns)

    def _template(self) -> FormulaT:
        return jax.eval_shape(lambda key: self.sample(key=key), jr.key(0))


def _bounds(space: Space) -> tuple[list[float], list[float]]:
    """Lower and upper bounds of a space of plain real dimensions."""
    reals = [each for each in space.dimensions if isinstance(each, Real) and not each.log]
    return [each.low for each in reals], [each.high for each in reals]


@partial(jax.jit, static_argnums=0)
def _sample_stack(family: SimulatedFamily[FormulaT], keys: Array) -> FormulaT:
    return jax.vmap(lambda key: family.sample(key=key))(keys)
