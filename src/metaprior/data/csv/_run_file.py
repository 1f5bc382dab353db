"""A run as a CSV file that the user edits: points, and a value cell that is filled later.

The file is the only state. It may have been written by a spreadsheet, with its own separator,
decimal commas and line ends, and keeps them; unchanged rows stay the same byte for byte.

| value cell | the row is |
|---|---|
| a number | observed |
| empty | pending: suggested, and not yet told |
| `failed` | failed |

Columns called like features of tasks say something of the whole run: their cells are all the same,
or empty. New rows repeat them. Any other column is the user's own, and stays as it is.

Rows are counted as a spreadsheet does: the header is row 1.
"""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.data import LARGEST_VALUE, FeatureValue, Integer, Quantity, Space
from metaprior.data.csv._cells import FAILED, TextRun, complaint, has_value, number, values_of
from metaprior.data.csv._features import features_of_runs
from metaprior.data.csv._roles import VALUE_NAMES
from metaprior.data.csv._sheet import (
    bytes_of,
    check_header,
    decoded,
    delimiter_of,
    has_decimal_commas,
    records_of,
    width_of,
    with_point,
)
from metaprior.data.csv._shield import shielded, unshielded
from metaprior.files import replace_file
from metaprior.words import shortened

Point = dict[str, Any]
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_BYTE_ORDER_MARK = "\ufeff".encode()


class Row(NamedTuple):
    """One row: where it stands, its point, and what is known of its value (NaN for a failure)."""

    number: int
    point: Point
    value: float | None

    @property
    def is_pending(self) -> bool:
        return self.value is None

    @property
    def is_failed(self) -> bool:
        return self.value is not None and math.isnan(self.value)

    @property
    def is_observed(self) -> bool:
        return not self.is_pending and not self.is_failed


class Dialect(NamedTuple):
    """How the file writes things."""

    delimiter: str = ","
    decimal_comma: bool = False
    line_end: str = "\n"
    byte_order_mark: bool = False


@dataclass(frozen=True)
class RunFile:
    """The file at `path`, read.

    - `header`: names of its columns, in its order; `value` is that of the value.
    - `records`: row and cells of each row; `rows`: what they mean, in the same order.
    - `data`: the bytes that were read; empty if there is no file yet.
    - `known`: names of features that may have a column; `features`: what the file says of them.
    - `quantity`: what the prior calls the value.
    """

    path: Path
    space: Space
    header: list[str]
    value: str
    rows: list[Row]
    dialect: Dialect
    records: dict[int, list[str]]
    data: bytes
    known: tuple[str, ...] = ()
    features: dict[str, FeatureValue | None] = field(default_factory=dict)
    quantity: Quantity = Quantity()

    @property
    def observed(self) -> list[Row]:
        return [row for row in self.rows if row.is_observed]

    @property
    def pending(self) -> list[Row]:
        return [row for row in self.rows if row.is_pending]

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row.is_failed]

    def parsed(self, text: str) -> float | None:
        """The number that `text` stands for, with a decimal point or comma; `None` if it is none.

        In a file that writes no decimal commas, `1,234` may be a thousand: that raises an error.
        """
        text = text.strip()
        if not self.dialect.decimal_comma and _THOUSANDS.fullmatch(text):
            raise ValueError(
                f"The value {text!r} can be read as {text.replace(',', '.')} and as "
                f"{text.replace(',', '')}; write it without the comma."
            )
        found = number(with_point(text))
        return None if found is None else float(found)

    def append(self, points: Sequence[Point], values: Sequence[float] | None = None) -> "RunFile":
        """Write `points` below the others; the file as it is then.

        - `values`: what was observed at each; by default the value cells stay empty.
        """
        text = self._text()
        if text and not text.endswith(("\n", "\r")):
            text += self.dialect.line_end
        if not self.data.strip():
            text = self._line([shielded(name) for name in self.header])
        told = [None] * len(points) if values is None else values
        for point, value in zip(points, told, strict=True):
            cells = {**self.features, **point, self.value: value}
            text += self._line([self._cell(cells.get(name)) for name in self.header])
        return self._written(text, len(self.rows) + len(points))

    def about(self, features: Mapping[str, FeatureValue | None]) -> "RunFile":
        """The run as one of a task of which `features` are known.

        A new file gets a column for each; another one must have the columns, and say the same.
        """
        columns = [name for name in features if name not in self.header]
        if columns and self.data.strip():
            raise ValueError(
                f"{self.path} has begun without the feature {columns[0]!r}; add a column called "
                f"{columns[0]!r} to it, with {features[columns[0]]!r} in every row."
            )
        for name, value in features.items():
            if self.features.get(name) not in (None, value):
                raise ValueError(
                    f"{self.path} says that the feature {name!r} is {self.features[name]!r}, and "
                    f"--feature that it is {value!r}; leave --feature out, or repair the file."
                )
        known = {**self.features, **features}
        return replace(self, header=[*self.header, *columns], features=known)

    def fill(self, row: int, value: float | None) -> "RunFile":
        """Write `value` into the row, or that it failed; the file as it is then."""
        cells = list(self.records[row])
        cells[self.header.index(self.value)] = FAILED if value is None else self._cell(value)
        lines = list(io.StringIO(self._text(), newline=""))
        start, stop = _lines_of(lines, self.dialect.delimiter, row)
        last = "".join(lines[start:stop])
        end = last[len(last.rstrip("\r\n")) :]
        lines[start:stop] = [self._line(cells, end)]
        return self._written("".join(lines), len(self.rows))

    def _written(self, text: str, num_rows: int) -> "RunFile":
        data = _BYTE_ORDER_MARK * self.dialect.byte_order_mark + text.encode()
        after = parse_run(self.path, data, self.space, self.known, self.quantity)
        if len(after.rows) != num_rows:
            raise ValueError(
                f"{self.path} cannot hold the point: its cells would not be read back as they "
                "were written; rename the choices that hold quotes, blanks or line ends."
            )
        # Spreadsheets know nothing of our lock.
        if self.path.exists() and bytes_of(self.path) != self.data:
            raise ValueError(
                f"{self.path} was changed by another program in the meantime; nothing was "
                "written: try again."
            )
        replace_file(self.path, data)
        return after

    def _text(self) -> str:
        return decoded(self.path, self.data)

    def _line(self, cells: list[str], end: str | None = None) -> str:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.dialect.delimiter, lineterminator="").writerow(cells)
        return text.getvalue() + (self.dialect.line_end if end is None else end)

    def _cell(self, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            text = repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
            return text.replace(".", ",") if self.dialect.decimal_comma else text
        return "" if value is None else shielded(value) if isinstance(value, str) else str(value)


def read_run(
    path: str | Path,
    space: Space,
    *,
    features: Sequence[str] = (),
    quantity: Quantity | None = None,
) -> RunFile:
    """The run in the file at `path`; a run without points if there is no file, or an empty one.

    - `features`: names of features of tasks, for which the file may have columns.
    - `quantity`: what the value is called: a new file gets a column of this name.
    """
    path = Path(path)
    data = bytes_of(path) if path.exists() else b""
    return parse_run(path, data, space, tuple(features), quantity or Quantity())


def parse_run(
    path: Path,
    data: bytes,
    space: Space,
    known: tuple[str, ...] = (),
    quantity: Quantity | None = None,
) -> RunFile:
    """The run that `data`, read from `path`, describes."""
    quantity = quantity or Quantity()
    text = decoded(path, data)
    if not text.strip():
        names = (quantity.name, *VALUE_NAMES, "value of the run")
        value = next(name for name in names if name not in (*space.names, *known))
        header = [*space.names, value]
        return RunFile(
            path, space, header, value, [], Dialect(), {}, data, known, quantity=quantity
        )
    delimiter = delimiter_of(text)
    records = [(row, cells) for row, cells in records_of(text, delimiter, path) if any(cells)]
    if not records:
        raise ValueError(
            f"{path} has separators or quotes and nothing else; empty it, or begin it with a row "
            "of column names."
        )
    (header_row, header), *records = records
    header = header[: width_of(header)]  # without separators at the end of every line
    header = [unshielded(name) for name in header]
    check_header(path, header_row, header)
    value = _value_column(path, header, space, known, quantity)
    for row, cells in records:
        if len(cells) < len(header) or any(cells[len(header) :]):
            raise ValueError(
                f"{path}, row {row}: the row has {len(cells)} cells and the header {len(header)}; "
                f"repair the row, and put quotes around cells with {delimiter!r}."
            )
    columns = [[unshielded(cells[i]) for _, cells in records] for i in range(len(header))]
    # What the user writes in columns of their own says nothing of the numbers.
    ours = [
        column
        for name, column in zip(header, columns, strict=True)
        if name in (*space.names, *known, value)
    ]
    decimal_comma = delimiter != "," and has_decimal_commas(ours)
    if decimal_comma:
        columns = [[with_point(cell) for cell in column] for column in columns]
    named = dict(zip(header, columns, strict=True))
    rows = _rows(path, space, named, value, records)
    cells = {name: named[name] for name in known if name in named}
    whole = TextRun(path.stem, path, [row for row, _ in records], {}, [], cells)
    (features,) = features_of_runs([whole], list(cells))
    dialect = Dialect(
        delimiter,
        decimal_comma,
        "\r\n" if "\r\n" in text else "\n",
        data.startswith(_BYTE_ORDER_MARK),
    )
    cells_of_rows = dict(records)
    return RunFile(
        path, space, header, value, rows, dialect, cells_of_rows, data, known, features, quantity
    )


def _value_column(
    path: Path, header: list[str], space: Space, known: tuple[str, ...], quantity: Quantity
) -> str:
    """The column called like the value of the prior, or as values usually are."""
    missing = [name for name in space.names if name not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {missing[0]!r}, which is a dimension of the prior's space; use "
            "a prior that was learned for this run, or add the column."
        )
    others = [name for name in header if name not in (*space.names, *known)]
    if quantity.name in others:
        return quantity.name
    values = [name for name in others if name.lower() in VALUE_NAMES]
    if len(values) != 1:
        several = f" and {len(values)} that could be it ({', '.join(values)})" if values else ""
        raise ValueError(
            f"{path} has no column {quantity.name!r} for the value{several}; add one called "
            f"{quantity.name!r}."
        )
    return values[0]


def _rows(
    path: Path, space: Space, columns: dict[str, list[str]], value: str, records
) -> list[Row]:
    numbers = [row for row, _ in records]
    if not numbers:
        return []
    run = TextRun(path.stem, path, numbers, columns, columns[value])
    points = [
        values_of(dimension, columns[name], complaint([run], name))
        for name, dimension in zip(space.names, space.dimensions, strict=True)
    ]
    if space.conditions is not None:
        space.encode_columns(points, lambda name: complaint([run], name))
    complain = complaint([run], value)
    told = []
    for index, cell in enumerate(run.values):
        found = number(cell) if has_value(cell) else math.nan if cell else None
        if has_value(cell) and (found is None or not abs(found) <= LARGEST_VALUE):
            raise complain(
                index,
                f"received {shortened(cell)}, which is not a finite number of at most "
                f"{LARGEST_VALUE:g} in size; repair it, write {FAILED!r} if the evaluation failed, "
                "or empty the cell if it is still to come",
            )
        told.append(None if found is None else float(found))
    for i, dimension in enumerate(space.dimensions):
        if isinstance(dimension, Integer):
            points[i] = [None if each is None else int(each) for each in points[i]]
    dicts = space.as_dicts(list(zip(*points, strict=True)))
    return [Row(*each) for each in zip(numbers, dicts, told, strict=True)]


def _lines_of(lines: list[str], delimiter: str, row: int) -> tuple[int, int]:
    """Which lines of the text are the record `row`: a cell in quotes may go over several."""
    reader = csv.reader(iter(lines), delimiter=delimiter, skipinitialspace=True, strict=True)
    ends = [0]
    for _ in reader:
        ends.append(reader.line_num)
    return ends[row - 1], ends[row]
