r"""A window on a space: some of its dimensions, with fewer values of each, the others held still.

A prior knows the union of what past tasks have tried. A new task may allow less: other bounds, a
step, another scale, fewer choices, or it may lack a dimension. Its points then live in a unit cube
of their own, and a map brings them to the cube that the prior was learned on:

    symbol      meaning                                              shape
    u           point of the window's cube                           (w,)
    z           the same point in the cube of the whole space        (d,)

$$ z = \frac{g(A u + b) - s}{r}, \qquad g(t) = t, \ e^t \text{ or } \ln t $$

column by column: $A u + b$ is the value, or its logarithm where the window is on a log scale, and
$g$ changes the scale where the whole space has another. All of it is traced, so that windows which
differ in their bounds only share what was compiled.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from metaprior.belief import Prior
from metaprior.bo._ranges import Line, Numbers, Options, Range, line_of
from metaprior.data import Categorical, Dimension, Run, Space
from metaprior.gp import float64
from metaprior.methods import AbstractPosterior, AbstractSurrogate

IDENTITY, EXPONENTIAL, LOGARITHM = 0, 1, 2


@dataclass(frozen=True)
class Window:
    """The part of `whole` that a task uses.

    - `ranges`: what it may try of each dimension that it uses, at least one.
    - `held`: the value of each dimension of which it knows one value only; dimensions that are not
      named at all are held in the middle, categories at their first choice.
    """

    whole: Space
    ranges: tuple[tuple[str, Range], ...]
    held: tuple[tuple[str, Any], ...] = ()

    @property
    def space(self) -> Space:
        """The window's own space, without names and units of the task."""
        return Space(**{f"x{i}": r.dimension for i, (_, r) in enumerate(self.ranges)})

    def encode(self, point: Mapping[str, Any]) -> dict[str, Any] | None:
        """A point in the task's units as one of `space`; `None` if it lies outside of the window.

        A dimension that the point lacks is taken in the middle of its range, or at its first
        choice.
        """
        if any(name in point and not _same(point[name], value) for name, value in self.held):
            return None
        encoded = {}
        for i, (name, r) in enumerate(self.ranges):
            at = r.coordinate(point[name]) if name in point else _middle(r.dimension)
            if at is None:
                return None
            encoded[f"x{i}"] = at
        return encoded

    def decode(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point of `space` in the task's units."""
        return {name: r.value(point[f"x{i}"]) for i, (name, r) in enumerate(self.ranges)}

    def through(self, prior: Prior) -> Prior:
        """The prior as it looks through the window: the same beliefs over `space`."""
        # The model that a guard falls back to knows nothing of the whole space: the guard stays
        # outside of the window.
        seen = prior.surrogate.guarding(Windowed(prior.surrogate.unguarded, self.map()))
        return dataclasses.replace(prior, space=self.space, surrogate=seen)

    @float64
    def map(self) -> "WindowMap":
        """From the window's cube to that of the whole space."""
        ranges, held = dict(self.ranges), dict(self.held)
        widths = [r.dimension.num_columns for r in ranges.values()]
        columns = dict(zip(ranges, np.cumsum([0, *widths[:-1]]).tolist(), strict=True))
        rows = []
        for name, dimension in zip(self.whole.names, self.whole.dimensions, strict=True):
            r = ranges.get(name)
            if r is None:
                rows += _held(dimension, held.get(name))
            elif isinstance(r, Numbers):
                rows.append(_numeric(r.line, line_of(dimension), columns[name]))
            else:
                rows += _chosen(r, dimension, columns[name])
        matrix = np.zeros((len(rows), sum(widths)))
        for i, row in enumerate(rows):
            if row.column is not None:
                matrix[i, row.column] = row.slope
        return WindowMap(
            jnp.asarray(matrix),
            *(jnp.asarray([getattr(row, name) for row in rows]) for name in _Row._fields[2:]),
        )


class _Row(NamedTuple):
    """One column of the whole space as a function of one column of the window, or of none."""

    column: int | None = None
    slope: float = 0.0
    offset: float = 0.0
    bend: int = IDENTITY
    start: float = 0.0
    width: float = 1.0


class WindowMap(eqx.Module):
    """$z(u)$, see the head of this file."""

    matrix: Float[Array, "d w"]
    offset: Float[Array, " d"]
    bend: Int[Array, " d"]
    start: Float[Array, " d"]
    width: Float[Array, " d"]

    def __call__(self, u: Float[Array, " w"]) -> Float[Array, " d"]:
        t = self.matrix @ u + self.offset
        # The inner `where` keeps what is not used from overflowing, and its gradient with it. Half
        # a step below the lowest number of a grid there may be no logarithm: stop where it starts.
        grown = jnp.exp(jnp.where(self.bend == EXPONENTIAL, t, 0.0))
        positive = jnp.maximum(t, jnp.exp(jnp.where(self.bend == LOGARITHM, self.start, 0.0)))
        flattened = jnp.log(jnp.where(self.bend == LOGARITHM, positive, 1.0))
        bent = jnp.where(self.bend == EXPONENTIAL, grown, flattened)
        return (jnp.where(self.bend == IDENTITY, t, bent) - self.start) / self.width


class Windowed(AbstractSurrogate):
    """A surrogate that sees the points of a window."""

    surrogate: AbstractSurrogate
    view: WindowMap

    def condition(self, run: Run) -> "WindowedPosterior":
        seen = Run(jax.vmap(self.view)(run.x), run.y, run.length)
        return WindowedPosterior(self.surrogate.condition(seen), self.view)


class WindowedPosterior(AbstractPosterior):
    """A posterior that sees the points of a window."""

    posterior: AbstractPosterior
    view: WindowMap

    def moments(self, x):
        return self.posterior.moments(self.view(x))

    def log_density(self, x, y):
        return self.posterior.log_density(self.view(x), y)

    def cdf(self, x, y):
        return self.posterior.cdf(self.view(x), y)

    def covariance(self, x):
        return self.posterior.covariance(jax.vmap(self.view)(x))

    def sample(self, x, num, *, key):
        return self.posterior.sample(jax.vmap(self.view)(x), num, key=key)

    def path(self, anchors, *, key):
        drawn = self.posterior.path(jax.vmap(self.view)(anchors), key=key)
        return lambda x: drawn(self.view(x))


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, str) or isinstance(other, str):
        return value == other
    return math.isclose(value, other, rel_tol=1e-9)


def _middle(dimension: Dimension) -> Any:
    """The middle of a dimension without units, or its first choice."""
    if isinstance(dimension, Categorical):
        return 0
    (value,) = dimension.decode(np.array([[0.5]]))
    return value


def _numeric(own: Line, whole: Line, column: int) -> _Row:
    bend = IDENTITY
    if own.log != whole.log:
        bend = EXPONENTIAL if own.log else LOGARITHM
    return _Row(column, own.width, own.start, bend, whole.start, whole.width)


def _chosen(options: Options, dimension: Dimension, first_column: int) -> list[_Row]:
    assert isinstance(dimension, Categorical)
    index = {choice: i for i, choice in enumerate(options.choices)}
    found = [index.get(choice) for choice in dimension.choices]
    return [_Row() if i is None else _Row(first_column + i, 1.0) for i in found]


def _held(dimension: Dimension, value: Any) -> list[_Row]:
    """Columns of a dimension that stays at `value`, or in the middle for `None`."""
    if isinstance(dimension, Categorical):
        at = dimension.choices.index(value) if value is not None else 0
        return [_Row(offset=float(i == at)) for i in range(dimension.num_columns)]
    if value is None:
        return [_Row(offset=0.5)]
    start, width, log = line_of(dimension)
    return [_Row(offset=((math.log(value) if log else value) - start) / width)]
