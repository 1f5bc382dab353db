r"""A window on a space: some of its dimensions, with fewer values of each, the others held still.

A prior knows the union of what past tasks have tried. A new task may allow less: other bounds, a
step, another scale, fewer choices, or it may lack a dimension. Its points then live in a unit cube
of their own, and a map brings them to the cube that the prior was learned on:

    symbol      meaning                                              shape
    u           point of the window's cube                           (w,)
    z           the same point in the cube of the whole space        (d,)

$$ z = \frac{g(A u + b) - s}{r}, \qquad g(t) = t, \ e^t \text{ or } \ln t $$

column by column: $A u + b$ is the value, or its logarithm where the window is on a log scale, and
$g$ changes the scale where the whole space has another.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from metaprior.belief import (
    EXPONENTIAL,
    IDENTITY,
    LOGARITHM,
    AbstractBelief,
    SeenThrough,
    UnitView,
)
from metaprior.bo._ranges import Line, Numbers, Options, Range, line_of
from metaprior.data import Categorical, Dimension, Space


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

    def through(self, belief: AbstractBelief) -> AbstractBelief:
        """The belief as it looks through the window: the same over `space`."""
        # The GP that a guard falls back to has learned nothing on the whole space, so the guard
        # stays outside of the window.
        return belief.guarding(SeenThrough(belief.unguarded, self.map()))

    def map(self) -> UnitView:
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
        return UnitView(
            matrix,
            *(np.array([getattr(row, name) for row in rows]) for name in _Row._fields[2:]),
        )


class _Row(NamedTuple):
    """One column of the whole space as a function of one column of the window, or of none."""

    column: int | None = None
    slope: float = 0.0
    offset: float = 0.0
    bend: int = IDENTITY
    start: float = 0.0
    width: float = 1.0


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
