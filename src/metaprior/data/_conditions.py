r"""Conditions: dimensions that exist only where others have certain values.

A dimension that does not exist at a point has no value there. In the unit cube its columns are then
canonical: numbers in the middle, categories equally far from every choice. Models see one column
more for each set of numbers that exist together:

    symbol      meaning                                              shape
    u_j         position of number j of the set, 1/2 in the middle   ()
    k           how many numbers the set has                         ()
    h           the added column; 0 where the set does not exist     ()

$$ h = \sqrt{ \tfrac{k + 1}{4} - \sum_j (u_j - \tfrac12)^2 } $$

So the squared distance between a point with the set and a point without is $(k + 1) / 4$ in these
columns, whatever values the one with it has: kernels compare the two by what they share. Two points
that both have the set are about as far apart as without the column.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from metaprior.data._dimensions import Categorical, Dimension, Integer
from metaprior.data._when import When
from metaprior.words import shortened

# The standard deviation of a uniform position: the scale of columns that may not exist.
UNIFORM_STD = 12.0**-0.5


class Parent(NamedTuple):
    """A condition on one dimension: `index` of the parent, its columns, and what they may hold."""

    index: int
    start: int
    stop: int
    dimension: Categorical | Integer
    # Whether each choice is allowed, or the levels of the grid of an integer that are.
    allowed: Bool[np.ndarray, " c"] | Int[np.ndarray, " num_allowed"]

    def holds(self, unit: Any, xp: ModuleType) -> Any:
        """At which of the points `unit` the parent has one of the values."""
        if isinstance(self.dimension, Categorical):
            chosen = xp.argmax(unit[..., self.start : self.stop], axis=-1)
            return xp.asarray(self.allowed)[chosen]
        position = xp.clip(unit[..., self.start], 0.0, 1.0)
        level = self.dimension.grid.nearest_level(position, xp)
        return xp.any(level[..., None] == self.allowed, axis=-1)


class Companions(NamedTuple):
    """Numbers that exist together: their columns, and one dimension among them."""

    columns: Int[np.ndarray, " k"]
    index: int

    @property
    def square_radius(self) -> float:
        return (len(self.columns) + 1) / 4.0


class Conditions:
    """Which dimensions exist at which points, as functions of points of the unit cube.

    - `parents`: for each dimension the conditions that must all hold; empty for most.
    """

    def __init__(self, dimensions: tuple[Dimension, ...], parents: list[list[Parent]]):
        widths = [dimension.num_columns for dimension in dimensions]
        starts = np.cumsum([0, *widths[:-1]])
        # Dimensions under the same condition exist together: each condition is looked at once.
        order = _in_order([[p.index for p in own] for own in parents])
        whens = list(dict.fromkeys(dimensions[i].when for i in order))
        self._set_of = np.array([whens.index(dimension.when) for dimension in dimensions])
        first = [next(i for i in order if dimensions[i].when == when) for when in whens]
        self._parents = [parents[i] for i in first]
        self._owner = np.repeat(np.arange(len(dimensions)), widths)
        self.canonical = np.concatenate([np.full(w, 1.0 / w if w > 1 else 0.5) for w in widths])
        together: dict[When, list[int]] = {}
        for i, dimension in enumerate(dimensions):
            if dimension.when and not isinstance(dimension, Categorical):
                together.setdefault(dimension.when, []).append(i)
        self.companions = [Companions(starts[own], own[0]) for own in together.values()]
        may_lack = np.array([bool(dimension.when) for dimension in dimensions])
        self.may_lack = may_lack[self._owner]
        self.is_parent = np.zeros(len(self._owner), bool)
        for own in parents:
            for parent in own:
                self.is_parent[parent.start : parent.stop] = True

    def exists(self, unit: Any, xp: ModuleType = np) -> Any:
        """Which dimensions exist at each point: from (..., num_columns) to (..., dimensions)."""
        found = []
        for parents in self._parents:
            exists = xp.ones(unit.shape[:-1], bool)
            for parent in parents:
                exists = exists & found[self._set_of[parent.index]] & parent.holds(unit, xp)
            found.append(exists)
        return xp.stack(found, axis=-1)[..., self._set_of]

    def active(self, unit: Any, xp: ModuleType = np) -> Any:
        """The same for columns."""
        return self.exists(unit, xp)[..., self._owner]

    def settle(self, unit: Any, xp: ModuleType = np) -> Any:
        """The points with columns that do not exist at their canonical values."""
        return xp.where(self.active(unit, xp), unit, self.canonical)

    def embed(self, unit: Any, xp: ModuleType = np) -> Any:
        """What models see of valid points: their columns, and one for each set of companions."""
        exists = self.exists(unit, xp)
        unit = xp.where(exists[..., self._owner], unit, self.canonical)
        added = [
            xp.where(exists[..., own.index], self._height(unit, own, xp), 0.0)[..., None]
            for own in self.companions
        ]
        return xp.concatenate([unit, *added], axis=-1)

    def pullback(
        self, unit: Float[np.ndarray, "k d"], by_input: Float[np.ndarray, "*K k e"]
    ) -> Float[np.ndarray, "*K k d"]:
        r"""Derivatives by points from those by what models see: $\partial h / \partial u_j =
        -(u_j - \tfrac12) / h$, and none by columns that do not exist."""
        d = unit.shape[-1]
        exists = self.exists(unit)
        active = exists[..., self._owner]
        unit = np.where(active, unit, self.canonical)
        by_unit = np.where(active, by_input[..., :d], 0.0)
        for place, own in enumerate(self.companions):
            slope = (0.5 - unit[:, own.columns]) / self._height(unit, own, np)[:, None]
            slope = np.where(exists[:, own.index, None], slope, 0.0)
            by_unit[..., own.columns] += by_input[..., d + place, None] * slope
        return by_unit

    @cached_property
    def usual(self) -> tuple[Float[np.ndarray, " e"], Float[np.ndarray, " e"]]:
        """Centre and scale of what models see; NaN where the data say it.

        Where a dimension does not exist says nothing about its values: the columns of conditional
        dimensions are scaled as uniform ones are, all alike, which keeps distances as they are.
        """
        height = [0.5 * own.square_radius**0.5 for own in self.companions]
        centre = np.append(np.where(self.may_lack, self.canonical, np.nan), height)
        is_hot = np.bincount(self._owner)[self._owner] > 1
        std = np.where(is_hot, np.sqrt(self.canonical * (1.0 - self.canonical)), UNIFORM_STD)
        std = np.where(self.may_lack, std, np.nan)
        return centre, np.append(std, np.full(len(self.companions), UNIFORM_STD))

    def _height(self, unit: Any, own: Companions, xp: ModuleType) -> Any:
        squares = xp.sum((unit[..., own.columns] - 0.5) ** 2, axis=-1)
        return xp.sqrt(own.square_radius - xp.minimum(squares, own.square_radius - 0.25))


def conditions_of(names: tuple[str, ...], dimensions: tuple[Dimension, ...]) -> Conditions | None:
    """The conditions of a space whose dimensions are `settled_whens`; `None` without any."""
    if not any(dimension.when for dimension in dimensions):
        return None
    starts = np.cumsum([0, *(dimension.num_columns for dimension in dimensions)]).tolist()

    def parent(name: str, values: tuple[Any, ...]) -> Parent:
        i = names.index(name)
        dimension = dimensions[i]
        assert isinstance(dimension, (Categorical, Integer))
        allowed = np.array(_indices(dimension, values))
        if isinstance(dimension, Categorical):
            allowed = np.isin(np.arange(dimension.num_columns), allowed)
        return Parent(i, starts[i], starts[i + 1], dimension, allowed)

    return Conditions(
        dimensions, [[parent(name, values) for name, values in d.when] for d in dimensions]
    )


def settled_whens(named: Mapping[str, Dimension]) -> dict[str, When]:
    """The conditions of each dimension, checked: parents in the order of the space, values in
    theirs, so that equal conditions are equal values."""
    settled = {
        name: tuple(
            sorted(
                (_checked(name, parent, values, named) for parent, values in dimension.when),
                key=lambda pair: list(named).index(pair[0]),
            )
        )
        for name, dimension in named.items()
    }
    order = list(named)
    _in_order([[order.index(parent) for parent, _ in settled[name]] for name in order], order)
    for name in order:
        _require_somewhere(name, settled)
    return settled


def _require_somewhere(name: str, settled: Mapping[str, When]) -> None:
    """Raise an error if what a dimension depends on contradicts itself, by way of its parents."""
    allowed: dict[str, tuple[Any, ...]] = {}
    stack = [name]
    while stack:
        for parent, values in settled[stack.pop()]:
            both = tuple(value for value in allowed.get(parent, values) if value in values)
            if not both:
                needed = (shortened(list(each)) for each in (allowed[parent], values))
                raise ValueError(
                    f"Dimension {name!r} never exists: its conditions need {parent!r} to be one of "
                    f"{' and one of '.join(needed)}; change one of them."
                )
            allowed[parent] = both
            stack.append(parent)


def _checked(
    name: str, parent: str, values: tuple[Any, ...], named: Mapping[str, Dimension]
) -> tuple[str, tuple[Any, ...]]:
    """A condition of the dimension `name` with the values as the parent has them, in its order."""
    if parent not in named:
        raise ValueError(
            f"Dimension {name!r} depends on {parent!r}, which the space does not have; add it, or "
            f"name another one of {list(named)}."
        )
    dimension = named[parent]
    if not isinstance(dimension, (Categorical, Integer)):
        raise ValueError(
            f"Dimension {name!r} depends on {parent!r}, which is {dimension}; only a Categorical "
            "or an Integer can be depended on."
        )
    foreign = [value for value in values if not _indices(dimension, (value,))]
    if foreign:
        raise ValueError(
            f"Dimension {name!r} exists where {parent!r} is {shortened(foreign[0])}, which is no "
            f"value of {dimension}; give values that it has."
        )
    found = sorted({index for value in values for index in _indices(dimension, (value,))})
    if len(found) == _num_values(dimension):
        raise ValueError(
            f"Dimension {name!r} exists at every value of {parent!r}, which is no condition; name "
            "fewer values, or leave it out of `when`."
        )
    return parent, tuple(_value(dimension, index) for index in found)


def _indices(dimension: Categorical | Integer, values: Iterable[Any]) -> list[int]:
    """Indices of choices, or levels of the grid, of those values that `dimension` has."""
    if isinstance(dimension, Categorical):
        return [dimension.choices.index(value) for value in values if value in dimension.choices]
    levels = [dimension.level(value) for value in values]
    return [level for level in levels if level is not None]


def _value(dimension: Categorical | Integer, index: int) -> Any:
    if isinstance(dimension, Categorical):
        return dimension.choices[index]
    return dimension.value(index)


def _num_values(dimension: Categorical | Integer) -> int:
    if isinstance(dimension, Categorical):
        return len(dimension.choices)
    return int(dimension.grid.last - dimension.grid.first) + 1


def _in_order(parents: list[list[int]], names: list[str] | None = None) -> list[int]:
    """Indices so that parents come before what depends on them; a circle raises an error."""
    order: list[int] = []
    path: list[int] = []

    def visit(i: int) -> None:
        if i in path:
            circle = [*path[path.index(i) :], i]
            told = " -> ".join(repr(names[j] if names else j) for j in circle)
            raise ValueError(
                f"Dimensions depend on each other in a circle: {told}; remove one condition."
            )
        if i not in order:
            path.append(i)
            for j in parents[i]:
                visit(j)
            path.pop()
            order.append(i)

    for i in range(len(parents)):
        visit(i)
    return order
