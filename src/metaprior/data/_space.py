"""Space: named dimensions, and their map to and from the unit cube.

Everything that learns or decides works in the unit cube; only this module and its neighbours know
other units. Whole-column masks and tables are computed once, in NumPy, so that the functions which
JAX compiles are a few operations on vectors, whatever the number of dimensions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from metaprior.data._dimensions import Categorical as Categorical
from metaprior.data._dimensions import Dimension as Dimension
from metaprior.data._dimensions import Integer as Integer
from metaprior.data._dimensions import IntegerGrid
from metaprior.data._dimensions import Real as Real
from metaprior.data._points import Points as Points
from metaprior.data._points import as_native, complaint, read_columns
from metaprior.words import shortened

_KINDS = {"real": Real, "integer": Integer, "categorical": Categorical}
_FIELDS = {
    "real": {"low", "high", "log"},
    "integer": {"low", "high", "log"},
    "categorical": {"choices"},
}


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """Named dimensions in the order given: `Space(lr=Real(1e-4, 1e-1, log=True), ...)`.

    A space is a hashable value, so that it can be a static field of what JAX compiles.
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
    def is_real(self) -> Bool[np.ndarray, " num_columns"]:
        """Which columns move freely in the unit interval."""
        return self._layout.is_real

    @property
    def is_integer(self) -> Bool[np.ndarray, " num_columns"]:
        """Which columns hold an integer's position."""
        return self._layout.is_integer

    @property
    def is_categorical(self) -> Bool[np.ndarray, " num_columns"]:
        """Which columns belong to a one-hot code."""
        return self._layout.is_categorical

    def as_dicts(self, points: Points, *, where: str = "") -> list[dict[str, Any]]:
        """The same points as a list of dicts, values untouched and not yet checked."""
        columns = read_columns(points, self.names, where=where)
        rows = zip(*columns, strict=True)
        return [dict(zip(self.names, map(as_native, row), strict=True)) for row in rows]

    def encode(self, points: Points, *, where: str = "") -> Float[np.ndarray, "m num_columns"]:
        """Points of the unit cube for points in the user's units.

        - `points`: a list of dicts, a frame, a 2-d array (columns in the order of `names`; an
          object array if there are categories), a list of rows, or, in one dimension, plain
          numbers. May be empty.
        - `where`: what to call the points in an error, such as `"task 3"`.
        """
        columns = read_columns(points, self.names, where=where)
        named = zip(self.names, self.dimensions, columns, strict=True)
        return np.concatenate(
            [
                dimension.encode(column, complaint(where, f"dimension {name!r}"))
                for name, dimension, column in named
            ],
            axis=1,
        )

    def decode(self, unit: Any) -> list[dict[str, Any]]:
        """Points in the user's units for points of the unit cube, `unit`: `(m, num_columns)`.

        Integers and categories are snapped, reals clipped to their bounds.
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
        return [dict(zip(self.names, point, strict=True)) for point in zip(*values, strict=True)]

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
        return snapped

    def neighbours(self, unit: Float[Any, " num_columns"]) -> Float[Any, "k num_columns"]:
        """All points one move away from the snapped point `unit` in one discrete dimension.

        First every integer one step down, then every integer one step up (at a bound, the point
        itself, so that their number `k` is static), then every category moved on to the other
        choices in turn. For compiled code: `unit` is a JAX array.
        """
        import jax.numpy as jnp

        layout = self._layout
        level = layout.grid.nearest_level(unit, jnp)
        stepped = []
        for step in (-1.0, 1.0):
            moved = jnp.clip(level + step, layout.grid.first, layout.grid.last)
            position = layout.grid.position(moved, jnp).astype(unit.dtype)
            stepped.append(jnp.where(layout.integer_rows, position[None, :], unit[None, :]))
        return jnp.concatenate([*stepped, unit[layout.rotations]])

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
            name, dimension = _dimension_from_json(index, entry)
            if name in dimensions:
                raise ValueError(
                    f"Entry {index} of the space repeats the name {name!r}; rename it."
                )
            dimensions[name] = dimension
        return cls(**dimensions)

    @cached_property
    def _layout(self) -> "_Layout":
        return _lay_out(self.dimensions)


class _Layout(NamedTuple):
    """Static tables of the encoded columns; `grid` is meaningful in integer columns only."""

    starts: Int[np.ndarray, " num_dimensions"]
    is_real: Bool[np.ndarray, " num_columns"]
    is_integer: Bool[np.ndarray, " num_columns"]
    is_categorical: Bool[np.ndarray, " num_columns"]
    grid: IntegerGrid
    # One row for each integer: its own column.
    integer_rows: Bool[np.ndarray, "num_integers num_columns"]
    # One row for each categorical: its columns, padded with `num_columns`.
    choice_columns: Int[np.ndarray, "num_categoricals max_choices"]
    # The row of `choice_columns` that a column belongs to (0 where it belongs to none).
    owner: Int[np.ndarray, " num_columns"]
    # Gathering a one-hot point by one of these rows moves one category on to another choice.
    rotations: Int[np.ndarray, "num_other_choices num_columns"]


def _lay_out(dimensions: tuple[Dimension, ...]) -> _Layout:
    widths = [dimension.num_columns for dimension in dimensions]
    starts = np.cumsum([0, *widths[:-1]])
    num_columns = sum(widths)
    columns = np.arange(num_columns)

    def columns_of(kind: type) -> Bool[np.ndarray, " num_columns"]:
        return np.repeat([isinstance(dimension, kind) for dimension in dimensions], widths)

    # Harmless values where there is no integer: position and level are then the identity.
    fields = np.tile(np.array([[0.0], [0.0], [0.0], [0.0], [1.0]]), num_columns)
    categoricals = []
    for dimension, start, width in zip(dimensions, starts, widths, strict=True):
        if isinstance(dimension, Integer):
            fields[:, start] = dimension.grid
        elif isinstance(dimension, Categorical):
            categoricals.append(start + np.arange(width))

    owner = np.zeros(num_columns, int)
    choice_columns = np.full(
        (len(categoricals), max(map(len, categoricals), default=1)), num_columns
    )
    rotations = np.empty((0, num_columns), int)
    for index, block in enumerate(categoricals):
        owner[block] = index
        choice_columns[index, : len(block)] = block
        turned = np.tile(columns, (len(block) - 1, 1))
        for shift in range(1, len(block)):
            turned[shift - 1, block] = np.roll(block, shift)
        rotations = np.concatenate([rotations, turned])

    is_integer = columns_of(Integer)
    layout = _Layout(
        starts=starts,
        is_real=columns_of(Real),
        is_integer=is_integer,
        is_categorical=columns_of(Categorical),
        grid=IntegerGrid(fields[0] > 0, *fields[1:]),
        integer_rows=np.eye(num_columns, dtype=bool)[is_integer],
        choice_columns=choice_columns,
        owner=owner,
        rotations=rotations,
    )
    for table in (*layout, *layout.grid):  # shared by everyone who holds the space
        if isinstance(table, np.ndarray):
            table.setflags(write=False)
    return layout


def _dimension_from_json(index: int, entry: Any) -> tuple[str, Dimension]:
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(
            f"Entry {index} of the space is {shortened(entry)}; its 'type' must be one of "
            f"{list(_KINDS)}."
        )
    arguments = {key: value for key, value in entry.items() if key not in ("name", "type")}
    name = entry.get("name")
    if not isinstance(name, str) or set(arguments) != _FIELDS[kind]:
        raise ValueError(
            f"Entry {index} of the space is {shortened(entry)}; a dimension of type {kind!r} "
            f"needs a name and exactly {sorted(_FIELDS[kind])}."
        )
    try:
        return name, _KINDS[kind](**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Entry {index} ({name!r}) of the space is invalid: {error}") from None
