r"""A window on a space: what a task uses of it, the other dimensions held still.

A prior knows the union of what past tasks have tried. A new task may allow less: other bounds, a
step, another scale, fewer choices, or it may lack a dimension. It may also allow more: wider
bounds, new choices, new dimensions. Its points then live in a unit cube of their own, and a map
brings them to the cube that the prior was learned on, or to the nearest point of it:

    symbol      meaning                                              shape
    u           point of the window's cube                           (w,)
    z           the same point in the cube of the whole space        (d,)

$$ z = \frac{g(A u + b) - s}{r}, \qquad g(t) = t, \ e^t \text{ or } \ln t $$

column by column: $A u + b$ is the value, or its logarithm where the window is on a log scale, and
$g$ changes the scale where the whole space has another.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from metaprior.belief import (
    EXPONENTIAL,
    IDENTITY,
    LOGARITHM,
    AbstractBelief,
    ChainedView,
    ExtendedBelief,
    NearestKnown,
    Novelty,
    PointsView,
    SeenThrough,
    UnitView,
    embedding_view,
)
from metaprior.bo._moves import free_moves
from metaprior.bo._ranges import Line, Numbers, Options, Range, line_of, new_choices, surplus
from metaprior.data import Categorical, Dimension, Integer, Space

# At so many points a prior is asked what a usual and a large value is.
NUM_POINTS = 256


@dataclass(frozen=True)
class Window:
    """What a task uses of the space `whole`, and what it adds to it.

    - `ranges`: what it may try of each dimension that it uses, at least one. Names that `whole`
      lacks, or has with another kind of values, are new dimensions.
    - `held`: the value of each dimension of which it knows one value only; dimensions that are not
      named at all are held in the middle, categories at their first choice.
    """

    whole: Space
    ranges: tuple[tuple[str, Range], ...]
    held: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def space(self) -> Space:
        """The window's own space, without names and units of the task; dimensions of `whole` exist
        in it under the same conditions, as far as the task decides them."""
        return Space(
            **{
                f"x{i}": replace(self._own_dimension(name, r), when=self._when(name))
                for i, (name, r) in enumerate(self.ranges)
            }
        )

    def encode(self, point: Mapping[str, Any]) -> dict[str, Any] | None:
        """A point in the task's units as one of `space`; `None` if it lies outside of the window.

        A dimension that the point lacks is taken in the middle of its range, or at its first
        choice; what does not exist there is left out.
        """
        if any(name in point and not _same(point[name], value) for name, value in self.held):
            return None
        encoded = {}
        for i, (name, r) in enumerate(self.ranges):
            at = r.coordinate(point[name]) if name in point else middle_of(r.dimension)
            if at is None:
                return None
            encoded[f"x{i}"] = at
        return {own: encoded[own] for own in self.space.existing(encoded)}

    def decode(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point of `space` in the task's units."""
        return {
            name: r.value(point[f"x{i}"])
            for i, (name, r) in enumerate(self.ranges)
            if f"x{i}" in point
        }

    def through(self, belief: AbstractBelief) -> AbstractBelief:
        """The belief as it looks through the window: the same over `space`."""
        # What has not learned on the whole space sees the window as it is, and which dimensions
        # exist; what was learned has its own way to see that.
        novelty, is_embedded = self.novelty(), self.space.is_embedded
        only_points = PointsView(self.space)
        if novelty.is_nothing:
            view = ChainedView(only_points, self.map()) if is_embedded else self.map()
            seen = belief.through(view)
        else:
            nearest = NearestKnown(self.map(), self._stopped())
            anywhere = np.random.default_rng(0).uniform(size=(NUM_POINTS, self.whole.num_columns))
            points = free_moves(self.whole).snap(anywhere)
            extended = ExtendedBelief(belief.unguarded, nearest, novelty, points)
            seen = belief.guarding(SeenThrough(extended, only_points) if is_embedded else extended)
        return SeenThrough(seen, embedding_view(self.space)) if is_embedded else seen

    def known_dimension(self, name: str) -> Dimension | None:
        """The dimension of `whole` that a range of the task is about; `None` for a new one."""
        if name not in self.whole.names:
            return None
        dimension = self.whole.dimensions[self.whole.names.index(name)]
        is_category = isinstance(dict(self.ranges).get(name), Options)
        return dimension if is_category == isinstance(dimension, Categorical) else None

    def _own_dimension(self, name: str, r: Range) -> Dimension:
        """The dimension of a range; models see its choices as they see those of `whole`."""
        own, known = r.dimension, self.known_dimension(name)
        if isinstance(own, Categorical) and isinstance(known, Categorical):
            return replace(own, one_hot=known.one_hot)
        return own

    def _when(self, name: str) -> dict[str, list[Any]]:
        """The condition of a dimension, in terms of the window's space; none where the task does
        not decide, or contradicts what `whole` says."""
        known = self.known_dimension(name)
        own = {other: (i, r) for i, (other, r) in enumerate(self.ranges)}
        when = {}
        for parent, values in known.when if known is not None else ():
            if parent not in own or self.known_dimension(parent) is None:
                continue
            i, r = own[parent]
            found = [r.coordinate(value) for value in values]
            found = [at for at in found if at is not None]
            dimension = r.dimension
            count = len(dimension.choices) if isinstance(dimension, Categorical) else None
            if isinstance(dimension, Integer):
                count = int(dimension.grid.last - dimension.grid.first) + 1
            if count is None or not found:
                return {}
            if len(found) < count:
                when[f"x{i}"] = found
        return when

    def novelty(self) -> Novelty:
        """What of the task's cube `whole` does not have."""
        low, high, is_new_choice, is_new = [], [], [], []
        for name, r in self.ranges:
            dimension, width = self.known_dimension(name), r.dimension.num_columns
            ends = (-math.inf, math.inf)
            chosen = [False] * width
            if dimension is not None and isinstance(r, Numbers):
                ends = surplus(r, dimension) or ends
            elif dimension is not None and isinstance(r, Options):
                chosen = [choice in new_choices(r, dimension) for choice in r.choices]
            low += [ends[0]] * width
            high += [ends[1]] * width
            is_new_choice += chosen
            is_new += [dimension is None] * width
        return Novelty(*map(np.array, (low, high, is_new_choice, is_new)))

    def _stopped(self) -> np.ndarray:
        """Columns of `whole` whose ends some values of the task lie beyond."""
        stopped = []
        for name, dimension in zip(self.whole.names, self.whole.dimensions, strict=True):
            r = dict(self.ranges).get(name) if self.known_dimension(name) else None
            beyond = isinstance(r, Numbers) and surplus(r, dimension) is not None
            stopped += [beyond] * dimension.num_columns
        return np.array(stopped)

    def map(self) -> UnitView:
        """From the window's cube to that of the whole space."""
        ranges, held = dict(self.ranges), dict(self.held)
        widths = [r.dimension.num_columns for r in ranges.values()]
        columns = dict(zip(ranges, np.cumsum([0, *widths[:-1]]).tolist(), strict=True))
        rows = []
        for name, dimension in zip(self.whole.names, self.whole.dimensions, strict=True):
            r = ranges.get(name)
            if r is None or self.known_dimension(name) is None:
                rows += _held(dimension, held.get(name))
            elif isinstance(r, Numbers):
                rows.append(_numeric(r.line, line_of(dimension), columns[name]))
            else:
                rows += _chosen(r, dimension, columns[name])
        matrix = np.zeros((len(rows), sum(widths)))
        for i, row in enumerate(rows):
            if row.column is not None:
                matrix[i, row.column] = row.slope
            matrix[i, list(row.averaged)] = row.share
        return UnitView(
            matrix,
            *(np.array([getattr(row, name) for row in rows]) for name in _UNIT_VIEW),
        )


# Fields of `UnitView` after the matrix, and of a row of it.
_UNIT_VIEW = ("offset", "bend", "start", "width")


class _Row(NamedTuple):
    """One column of the whole space as a function of columns of the window."""

    column: int | None = None
    slope: float = 0.0
    offset: float = 0.0
    bend: int = IDENTITY
    start: float = 0.0
    width: float = 1.0
    # Columns of new choices, and how much of each this one is.
    averaged: tuple[int, ...] = ()
    share: float = 0.0


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, str) or isinstance(other, str):
        return value == other
    return math.isclose(value, other, rel_tol=1e-9)


def middle_of(dimension: Dimension) -> Any:
    """The middle of a dimension, or its first choice."""
    if isinstance(dimension, Categorical):
        return dimension.choices[0]
    (value,) = dimension.decode(np.array([[0.5]]))
    return value


def _numeric(own: Line, whole: Line, column: int) -> _Row:
    bend = IDENTITY
    if own.log != whole.log:
        bend = EXPONENTIAL if own.log else LOGARITHM
    return _Row(column, own.width, own.start, bend, whole.start, whole.width)


def _chosen(options: Options, dimension: Dimension, first_column: int) -> list[_Row]:
    """A new choice is taken to be the mean of those that are known."""
    assert isinstance(dimension, Categorical)
    unknown = new_choices(options, dimension)
    index = {c: i for i, c in enumerate(options.choices) if c not in unknown}
    averaged = tuple(first_column + options.choices.index(choice) for choice in unknown)
    share = 1.0 / len(dimension.choices)
    rows = []
    for choice in dimension.choices:
        own = index.get(choice)
        column, slope = (None, 0.0) if own is None else (first_column + own, 1.0)
        rows.append(_Row(column, slope, averaged=averaged, share=share))
    return rows


def _held(dimension: Dimension, value: Any) -> list[_Row]:
    """Columns of a dimension that stays at `value`, or in the middle for `None`."""
    if isinstance(dimension, Categorical):
        at = dimension.choices.index(value) if value is not None else 0
        return [_Row(offset=float(i == at)) for i in range(dimension.num_columns)]
    if value is None:
        return [_Row(offset=0.5)]
    start, width, log = line_of(dimension)
    return [_Row(offset=((math.log(value) if log else value) - start) / width)]
