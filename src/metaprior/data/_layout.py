"""Layout: which encoded columns belong to which dimension of a space, as tables."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from metaprior.data._dimensions import Categorical, Dimension
from metaprior.data._grid import IntegerGrid


class Layout(NamedTuple):
    """Static tables of the encoded columns; `grid` is meaningful in columns with one only."""

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


def lay_out(dimensions: tuple[Dimension, ...]) -> Layout:
    """The tables of a space with these dimensions."""
    widths = [dimension.num_columns for dimension in dimensions]
    starts = np.cumsum([0, *widths[:-1]])
    num_columns = sum(widths)
    columns = np.arange(num_columns)

    is_categorical = np.repeat([isinstance(d, Categorical) for d in dimensions], widths)
    has_grid = [not isinstance(d, Categorical) and d.grid is not None for d in dimensions]
    is_integer = np.repeat(has_grid, widths)
    # Harmless values where there is no integer: position and level are then the identity.
    fields = np.tile(np.array([[0.0], [0.0], [0.0], [0.0], [1.0]]), num_columns)
    categoricals = []
    for dimension, start, width in zip(dimensions, starts, widths, strict=True):
        if isinstance(dimension, Categorical):
            categoricals.append(start + np.arange(width))
        elif dimension.grid is not None:
            fields[:, start] = dimension.grid

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

    layout = Layout(
        starts=starts,
        is_real=~is_integer & ~is_categorical,
        is_integer=is_integer,
        is_categorical=is_categorical,
        grid=IntegerGrid(fields[0] > 0, *fields[1:]),
        integer_rows=np.eye(num_columns, dtype=bool)[is_integer],
        choice_columns=choice_columns,
        owner=owner,
        rotations=rotations,
    )
    for table in (*layout, *layout.grid):  # shared by all holders of the space
        if isinstance(table, np.ndarray):
            table.setflags(write=False)
    return layout
