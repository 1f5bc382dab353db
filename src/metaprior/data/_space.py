"""Space: named dimensions, and their map to and from the unit cube.

Everything that learns or decides works in the unit cube; only this module and its neighbours know
other units. Whole-column masks and tables are computed once, in NumPy, so that the functions which
JAX compiles are a few operations on vectors, whatever the number of dimensions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from metaprior.data._codes import Codes, codes_of
from metaprior.data._conditions import Conditions, conditions_of, settled_whens
from metaprior.data._dimension_json import dimension_from_json
from metaprior.data._dimensions import Categorical as Categorical
from metaprior.data._dimensions import Dimension as Dimension
from metaprior.data._dimensions import Integer as Integer
from metaprior.data._dimensions import Real as Real
from metaprior.data._layout import Layout, lay_out
from metaprior.data._points import Column, Complaint, as_native, complaint, is_missing, read_columns
from metaprior.data._points import Points as Points
from metaprior.words import shortened


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """Named dimensions in the order given: `Space(lr=Real(1e-4, 1e-1, log=True), ...)`.

    A point has a value for each dimension that exists there, and no others: `when=` of a dimension
    says where it exists. A space is a hashable value, so that it can be a static field of what JAX
    compiles.
    """

    names: tuple[str, ...]
    dimensions: tuple[Dimension, ...]

    def __init__(self, /, **dimensions: Dimension) -> None:
        if not dimensions:
            raise ValueError("A space needs at least 1 dimension; give Space(x=Real(0, 1)).")
        for name, dimension in dimensions.items():
            if not isinstance(dimension, (Real, Integer, Categorical)):
                raise TypeError(
                    f"Dimension {name!r} of the space is {dimension!r}; give a Real, an Integer "
                    "or a Categorical."
                )
        if any(dimension.when for dimension in dimensions.values()):
            whens = settled_whens(dimensions)
            dimensions = {name: replace(d, when=whens[name]) for name, d in dimensions.items()}
        object.__setattr__(self, "names", tuple(dimensions))
        object.__setattr__(self, "dimensions", tuple(dimensions.values()))

    def __repr__(self) -> str:
        pairs = zip(self.names, self.dimensions, strict=True)
        return f"Space({', '.join(f'{name}={dimension}' for name, dimension in pairs)})"

    @property
    def num_columns(self) -> int:
        """The width of an encoded point; a categorical dimension takes a column for each choice."""
        return sum(dimension.num_columns for dimension in self.dimensions)

    @property
    def num_inputs(self) -> int:
        """The width of what models see of a point: that of `embed`."""
        return self.num_coded + self.num_added

    @property
    def num_coded(self) -> int:
        """How many of the columns that models see stand for those of the cube; they come first."""
        return self.num_columns if self.codes is None else self.codes.width

    @property
    def num_added(self) -> int:
        """How many more there are: one for each set of numbers that exist together."""
        return len(self.conditions.companions) if self.conditions else 0

    @property
    def is_embedded(self) -> bool:
        """Whether models see other columns than those of the cube."""
        return self.conditions is not None or self.codes is not None

    @property
    def is_real(self) -> Bool[np.ndarray, " num_columns"]:
        """Which columns move freely in the unit interval."""
        return self._layout.is_real

    @property
    def is_integer(self) -> Bool[np.ndarray, " num_columns"]:
        """Which columns hold a position on a grid: of an integer, or of a real with a step."""
        return self._layout.is_integer

    @property
    def is_categorical(self) -> Bool[np.ndarray, " num_columns"]:
        """Which columns belong to a one-hot code."""
        return self._layout.is_categorical

    @property
    def is_parent(self) -> Bool[np.ndarray, " num_columns"]:
        """Which columns say whether other dimensions exist."""
        conditions = self.conditions
        return conditions.is_parent if conditions else np.zeros(self.num_columns, bool)

    @cached_property
    def conditions(self) -> Conditions | None:
        """Where which dimensions exist; `None` if all exist everywhere."""
        return conditions_of(self.names, self.dimensions)

    @cached_property
    def codes(self) -> Codes | None:
        """What models see of categories with many choices; `None` without any."""
        return codes_of(self.dimensions)

    def columns_of_points(self, width: int) -> Int[np.ndarray, " num_inputs"]:
        """Which of `width` columns are those that models see of a point, where they see features
        of tasks, too: these come between the columns of dimensions and the added ones."""
        return np.r_[0 : self.num_coded, width - self.num_added : width]

    def existing(self, point: Mapping[str, Any]) -> list[str]:
        """The names of the dimensions that exist at a point, as far as it has their parents."""
        whens = dict(zip(self.names, (d.when for d in self.dimensions), strict=True))

        def exists(name: str) -> bool:
            return all(
                parent in point and point[parent] in values and exists(parent)
                for parent, values in whens[name]
            )

        return [name for name in self.names if exists(name)]

    def as_dicts(self, points: Points, *, where: str = "") -> list[dict[str, Any]]:
        """The same points as a list of dicts, values untouched and not yet checked."""
        columns = self._columns(points, where)
        rows = zip(*columns, strict=True)
        dicts = [dict(zip(self.names, map(as_native, row), strict=True)) for row in rows]
        may_lack = self._may_lack
        if not may_lack:
            return dicts
        return [
            {name: v for name, v in point.items() if name not in may_lack or not is_missing(v)}
            for point in dicts
        ]

    def encode(self, points: Points, *, where: str = "") -> Float[np.ndarray, "m num_columns"]:
        """Points of the unit cube for points in the user's units.

        - `points`: a list of dicts, a frame, a 2-d array (columns in the order of `names`; an
          object array if there are categories), a list of rows, or, in one dimension, plain
          numbers. May be empty. A dimension that does not exist at a point has no value there: no
          entry in the dict, `None` or NaN in a row or frame.
        - `where`: what to call the points in an error, such as `"task 3"`.
        """
        columns = self._columns(points, where)
        return self.encode_columns(columns, lambda name: complaint(where, f"dimension {name!r}"))

    def encode_columns(
        self, columns: list[Column], complain: Callable[[str], Complaint]
    ) -> Float[np.ndarray, "m num_columns"]:
        """Points of the unit cube for one column of values per dimension.

        - `complain`: how to complain about the column of a name.
        """
        if self.conditions is not None:
            return _encoded_where_given(self, columns, complain)
        named = zip(self.names, self.dimensions, columns, strict=True)
        return np.concatenate(
            [dimension.encode(column, complain(name)) for name, dimension, column in named],
            axis=1,
        )

    def decode(self, unit: Any) -> list[dict[str, Any]]:
        """Points in the user's units for points of the unit cube, `unit`: `(m, num_columns)`.

        Integers and categories are snapped, reals clipped to their bounds; a dimension that does
        not exist at a point is not in its dict.
        """
        unit = np.asarray(unit, np.float64)
        if unit.ndim != 2 or unit.shape[1] != self.num_columns:
            raise ValueError(
                f"Received encoded points of shape {unit.shape}; give the shape "
                f"(number of points, {self.num_columns}), as `encode` does."
            )
        if not np.isfinite(unit).all():
            row = int(np.argmin(np.isfinite(unit).all(axis=1)))
            raise ValueError(
                f"Encoded point {row} is {shortened(unit[row].tolist())}; give finite numbers only."
            )
        blocks = np.split(unit, self._layout.starts[1:], axis=1)
        values = [d.decode(block) for d, block in zip(self.dimensions, blocks, strict=True)]
        points = [dict(zip(self.names, row, strict=True)) for row in zip(*values, strict=True)]
        if self.conditions is None:
            return points
        return [
            {name: v for (name, v), is_there in zip(point.items(), there, strict=True) if is_there}
            for point, there in zip(points, self.conditions.exists(unit), strict=True)
        ]

    def embed(self, unit: Any, xp: ModuleType = np) -> Any:
        """What models see of points of the unit cube: from (..., num_columns) to
        (..., num_inputs). The points themselves, with codes of many choices (see `_codes`), and
        then a column for each set of numbers that exist together (see `_conditions`); columns that
        do not exist are canonical.

        - `xp`: NumPy, or its JAX twin for compiled code.
        """
        seen = unit if self.conditions is None else self.conditions.embed(unit, xp)
        if self.codes is None:
            return seen
        d = self.num_columns
        return xp.concatenate([self.codes.encode(seen[..., :d]), seen[..., d:]], axis=-1)

    def embed_slopes(
        self, unit: Float[np.ndarray, "k d"], by_input: Float[np.ndarray, "*K k e"]
    ) -> Float[np.ndarray, "*K k d"]:
        """Derivatives by points of the cube, from those by what models see."""
        if self.codes is not None:
            first, added = np.split(by_input, [self.num_coded], axis=-1)
            by_input = np.concatenate([first @ self.codes.matrix.T, added], axis=-1)
        return by_input if self.conditions is None else self.conditions.pullback(unit, by_input)

    def points_of(self, seen: Float[np.ndarray, "*k e"]) -> Float[np.ndarray, "*k d"]:
        """The points of the cube of which models see the columns `seen`, or these and others."""
        first = seen[..., : self.num_coded]
        return first if self.codes is None else self.codes.decode(first)

    def matches(self, other: "Space") -> bool:
        """Whether it has the same points, whatever models see of them."""
        return self._plain == other._plain

    def snap(self, unit: Float[Any, " num_columns"]) -> Float[Any, " num_columns"]:
        """The valid point of the cube that the point `unit` stands for; `encode(decode(unit))`.

        Integers go to the position of the bin they fall in, categories to the choice with the
        largest entry, reals are clipped. For compiled code: `unit` is a JAX array.
        """
        import jax.numpy as jnp

        layout = self._layout
        snapped: Any = jnp.clip(unit, 0.0, 1.0)
        if layout.is_integer.any():
            level = layout.grid.nearest_level(snapped, jnp)
            position = layout.grid.position(level, jnp).astype(snapped.dtype)
            snapped = jnp.where(layout.is_integer, position, snapped)
        if layout.is_categorical.any():
            # The index after the last column stands for "no such choice" and never wins.
            entries = jnp.append(unit, -jnp.inf)[layout.choice_columns]
            winners = layout.choice_columns[:, 0] + jnp.argmax(entries, axis=1)
            hot: Any = jnp.equal(winners[layout.owner], np.arange(self.num_columns))
            snapped = jnp.where(layout.is_categorical, hot.astype(snapped.dtype), snapped)
        return snapped if self.conditions is None else self.conditions.settle(snapped, jnp)

    def neighbours(self, unit: Float[Any, " num_columns"]) -> Float[Any, "k num_columns"]:
        """All points one move away from the snapped point `unit` in one discrete dimension.

        First every integer one step down, then every integer one step up (at a bound, the point
        itself, so that their number `k` is static), then every category moved on to the other
        choices in turn. Dimensions that begin to exist start in the middle, or at their first
        choice. For compiled code: `unit` is a JAX array.
        """
        import jax
        import jax.numpy as jnp

        layout = self._layout
        level = layout.grid.nearest_level(unit, jnp)
        stepped = []
        for step in (-1.0, 1.0):
            moved = jnp.clip(level + step, layout.grid.first, layout.grid.last)
            position = layout.grid.position(moved, jnp).astype(unit.dtype)
            stepped.append(jnp.where(layout.integer_rows, position[None, :], unit[None, :]))
        moved = jnp.concatenate([*stepped, unit[layout.rotations]])
        return moved if self.conditions is None else jax.vmap(self.snap)(moved)

    def to_json(self) -> dict[str, Any]:
        """The space as JSON-able values; `Space.from_json` gives an equal space back."""
        named = zip(self.names, self.dimensions, strict=True)
        return {"dimensions": [{"name": name, **d.to_json()} for name, d in named]}

    @classmethod
    def from_json(cls, data: Any) -> "Space":
        """The space that `to_json` wrote."""
        entries = data.get("dimensions") if isinstance(data, Mapping) else None
        if not isinstance(entries, list):
            raise ValueError(
                f"A space is written as {{'dimensions': [...]}}, received {shortened(data)}; "
                "write it with `Space.to_json`."
            )
        dimensions: dict[str, Dimension] = {}
        for index, entry in enumerate(entries):
            name, dimension = dimension_from_json(index, entry)
            if name in dimensions:
                raise ValueError(
                    f"Entry {index} of the space repeats the name {name!r}; rename it."
                )
            dimensions[name] = dimension
        return cls(**dimensions)

    @cached_property
    def _may_lack(self) -> frozenset[str]:
        named = zip(self.names, self.dimensions, strict=True)
        return frozenset(name for name, dimension in named if dimension.when)

    def _columns(self, points: Points, where: str) -> list[Column]:
        return read_columns(points, self.names, where=where, may_lack=self._may_lack)

    @property
    def _plain(self) -> tuple[tuple[str, Dimension], ...]:
        plain = (
            replace(d, one_hot=True) if isinstance(d, Categorical) else d for d in self.dimensions
        )
        return tuple(zip(self.names, plain, strict=True))

    @cached_property
    def _layout(self) -> Layout:
        return lay_out(self.dimensions)


def _encoded_where_given(
    space: Space, columns: list[Column], complain: Callable[[str], Complaint]
) -> Float[np.ndarray, "m num_columns"]:
    """Encoded points that have values for the dimensions that exist there, and for no others."""
    conditions = space.conditions
    assert conditions is not None
    is_given = [np.array([not is_missing(v) for v in column], bool) for column in columns]
    starts = np.cumsum([0, *(dimension.num_columns for dimension in space.dimensions)])
    unit = np.tile(conditions.canonical, (len(columns[0]), 1))
    for i, (name, dimension) in enumerate(zip(space.names, space.dimensions, strict=True)):
        rows = np.flatnonzero(is_given[i]) if dimension.when else np.arange(len(unit))
        values = [columns[i][row] for row in rows.tolist()] if dimension.when else columns[i]
        unit[rows, starts[i] : starts[i + 1]] = dimension.encode(
            values, lambda k, problem, rows=rows, name=name: complain(name)(int(rows[k]), problem)
        )
    for i, exists in enumerate(conditions.exists(unit).T):
        wrong = np.flatnonzero(exists != is_given[i])
        if space.dimensions[i].when and wrong.size:
            raise _misplaced(space, i, int(wrong[0]), is_given, columns, complain)
    return conditions.settle(unit)


def _misplaced(
    space: Space,
    index: int,
    row: int,
    is_given: list[Bool[np.ndarray, " m"]],
    columns: list[Column],
    complain: Callable[[str], Complaint],
) -> ValueError:
    """An error for a value where there should be none, or the other way round."""
    name, dimension = space.names[index], space.dimensions[index]
    rule = " and ".join(
        f"{parent!r} is {' or '.join(map(repr, values))}" for parent, values in dimension.when
    )
    now = " and ".join(
        f"{parent!r} is {as_native(columns[i][row])!r}"
        if is_given[i][row]
        else f"{parent!r} does not exist"
        for parent, _ in dimension.when
        for i in [space.names.index(parent)]
    )
    if is_given[index][row]:
        received = shortened(as_native(columns[index][row]))
        return complain(name)(
            row,
            f"received {received}, but it exists only if {rule}, and here {now}; leave it out",
        )
    return complain(name)(row, f"has no value, but it exists since {now}; give one")
