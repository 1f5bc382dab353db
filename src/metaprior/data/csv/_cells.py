"""Text runs: runs as they stand in files; and from the text of their cells to values."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metaprior.data import Categorical, Choice, Column, Complaint, Dimension
from metaprior.words import shortened

# What `float` takes is more than people write: 1_000, infinity, nan.
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
BOOLS = {"true": True, "false": False}
# What stands in the value cell of an evaluation that is known to have failed.
FAILED = "failed"


class TextRun(NamedTuple):
    """One run, in the order of its file; every cell is text.

    - `rows`: where each point stands in the file `path`.
    - `columns`: one for each dimension, by name; `values` is the column to be optimised.
    - `features`: columns that say something of the whole run, by name.
    """

    name: str
    path: Path
    rows: list[int]
    columns: dict[str, list[str]]
    values: list[str]
    features: dict[str, list[str]] = {}

    def subset(self, indices: list[int]) -> "TextRun":
        """The run with the points at `indices` only."""
        columns, features = (
            {name: [cells[i] for i in indices] for name, cells in each.items()}
            for each in (self.columns, self.features)
        )
        rows = [self.rows[i] for i in indices]
        values = [self.values[i] for i in indices]
        return TextRun(self.name, self.path, rows, columns, values, features)


class Cell(NamedTuple):
    """A cell, and what to call it in an error."""

    text: str
    place: str


def column_of(runs: list[TextRun], name: str) -> list[str]:
    """The cells of one dimension, of all runs in turn."""
    return [cell for run in runs for cell in run.columns[name]]


def place(runs: list[TextRun], index: int) -> str:
    """File and row of entry `index` of a column of all runs."""
    for run in runs:
        if index < len(run.rows):
            return f"{run.path}, row {run.rows[index]}"
        index -= len(run.rows)
    raise IndexError("There is no such row.")


def complaint(runs: list[TextRun], name: str) -> Complaint:
    """An error maker for entries of the column `name` of all runs."""
    return lambda index, problem: ValueError(f"{place(runs, index)}, column {name!r}: {problem}.")


def number(cell: str) -> int | float | None:
    """The number that a cell holds: an int if written as one; `None` if it holds none."""
    if _WHOLE.fullmatch(cell):
        return int(cell)
    return float(cell) if NUMBER.fullmatch(cell) else None


def has_value(cell: str) -> bool:
    """Whether a value cell says anything but that the evaluation failed."""
    return bool(cell) and cell.lower() != FAILED


def refuse_missing(cells: list[str], complain: Complaint, *, else_: str = "") -> None:
    """Raise an error for the first empty cell.

    - `else_`: what else may be done than to fill the cell or to remove the row.
    """
    empty = [index for index, cell in enumerate(cells) if not cell]
    if empty:
        count = f" (the first of {len(empty)} in this column)" if len(empty) > 1 else ""
        problem = f"the cell is empty{count}; fill it, or remove the row"
        raise complain(empty[0], problem + else_)


def values_of(dimension: Dimension, cells: list[str], complain: Complaint) -> Column:
    """What the cells of a dimension hold, each checked to belong to it.

    Of a dimension that need not exist, empty cells hold `None`.
    """
    if dimension.when and not all(cells):
        full = [i for i, cell in enumerate(cells) if cell]
        held = values_of(
            dimension, [cells[i] for i in full], lambda k, problem: complain(full[k], problem)
        )
        found: list[Any] = [None] * len(cells)
        for i, value in zip(full, held, strict=True):
            found[i] = value
        return found
    refuse_missing(cells, complain)
    if isinstance(dimension, Categorical):
        choice_of = {cell: _choice(dimension, cell) for cell in set(cells)}
        values: Any = [choice_of[cell] for cell in cells]
    else:
        values = np.array(numbers_of(cells, complain), float)
    dimension.encode(values, complain)
    return values


def numbers_of(cells: list[str], complain: Complaint) -> list[int | float]:
    """The cells as numbers; the first that is none raises an error."""
    numbers: list[int | float] = []
    for index, cell in enumerate(cells):
        value = number(cell)
        if value is None:
            raise complain(
                index,
                f"received {shortened(cell)}, which is not a number; repair the cell or remove "
                "the row",
            )
        numbers.append(value)
    return numbers


def _choice(dimension: Categorical, cell: str) -> Choice:
    """The choice that is written like this; the text itself if there is none."""
    texts = [choice for choice in dimension.choices if isinstance(choice, str)]
    bools = [choice for choice in dimension.choices if isinstance(choice, bool)]
    if cell in texts:
        return cell
    if BOOLS.get(cell.lower()) in bools:
        return BOOLS[cell.lower()]
    value = number(cell)
    for choice in dimension.choices:
        if not isinstance(choice, (str, bool)) and choice == value:
            return choice
    return cell
