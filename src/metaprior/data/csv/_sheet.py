"""One CSV file as named columns of text, and what can be wrong with the file as a whole.

Rows are counted as a spreadsheet does: the first line of the file is row 1, blank ones included.
"""

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

from metaprior.data.csv._cells import NUMBER
from metaprior.data.csv._shield import unshielded
from metaprior.files import read_file
from metaprior.words import shortened

# Beyond this, a file is no record of a run: nothing is learned from points of so many numbers.
MOST_COLUMNS = 2000
DELIMITERS = (",", ";", "\t", "|")

_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")


class Sheet(NamedTuple):
    """The cells of a file, stripped of blanks.

    - `columns`: by name, in the order of the file; all of one length.
    - `rows`: where in the file the cells of each index stand.
    - `notes`: what was done to the file that the user might not expect.
    - `decimal_commas`: whether its numbers are written with them.
    """

    path: Path
    columns: dict[str, list[str]]
    rows: list[int]
    notes: list[str]
    decimal_commas: bool


def read_sheet(path: Path) -> Sheet:
    """The file at `path`; anything that keeps it from being read raises a ValueError."""
    text = decoded(path, bytes_of(path))
    delimiter = delimiter_of(text)
    records = [(row, record) for row, record in records_of(text, delimiter, path) if any(record)]
    if not records:
        raise ValueError(f"{path} is empty; remove it, or write a header and rows into it.")
    (header_row, header), *records = records
    # Without commas at the end of every line.
    header = header[: max(map(width_of, [header, *(record for _, record in records)]))]
    header = [unshielded(name) for name in header]
    check_header(path, header_row, header)
    if not records:
        raise ValueError(f"{path} has a header and no rows; remove it, or add its points.")
    for row, record in records:
        if len(record) < len(header) or any(record[len(header) :]):
            raise ValueError(
                f"{path}, row {row}: the row has {len(record)} cells and the header "
                f"{len(header)}; repair the row, and put quotes around cells with {delimiter!r}."
            )
    cells = [[unshielded(record[i]) for _, record in records] for i in range(len(header))]
    notes, decimal_commas = [], False
    if not header[0]:
        if not _counts(cells[0]):
            raise ValueError(f"{path}, row {header_row}: column 1 has no name; name it.")
        header, cells = header[1:], cells[1:]
        notes.append(f"The first column of {path} has no name and counts rows: it is left out.")
    if delimiter != "," and has_decimal_commas(cells):
        cells = [[with_point(cell) for cell in column] for column in cells]
        decimal_commas = True
    columns = dict(zip(header, cells, strict=True))
    return Sheet(path, columns, [row for row, _ in records], notes, decimal_commas)


def width_of(cells: list[str]) -> int:
    """The number of cells up to the last one that is not empty."""
    return max((i for i, cell in enumerate(cells, start=1) if cell), default=0)


def bytes_of(path: Path) -> bytes:
    """What the file holds."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder where a CSV file was expected; name its files.")
    try:
        return read_file(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"{path} cannot be read: {reason}; repair that or leave it out.") from None


def decoded(path: Path, data: bytes) -> str:
    """The text of `data`, read from `path`, without the mark that some programs begin it with."""
    if b"\0" in data:
        raise ValueError(
            f"{path} is not a text file in UTF-8 (it holds zero bytes); save it as CSV in UTF-8."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, row {row}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as CSV "
            "in UTF-8."
        ) from None


def delimiter_of(text: str) -> str:
    """The character that cuts the header into most cells; the comma where none does.

    Rows would say less: a decimal comma is as frequent in them as a delimiter.
    """
    header = next((line for line in text.splitlines() if line.strip()), "")

    def width(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter, skipinitialspace=True), []))
        except csv.Error:
            return 0

    return max(DELIMITERS, key=width)


def records_of(text: str, delimiter: str, path: Path) -> list[tuple[int, list[str]]]:
    """Row and cells of every record, blank ones included."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    records: list[tuple[int, list[str]]] = []
    try:
        for record in reader:
            records.append((len(records) + 1, [cell.strip() for cell in record]))
    except csv.Error as error:
        raise ValueError(
            f"{path}, row {len(records) + 1}: the row cannot be read as CSV ({error}); check its "
            "quotes."
        ) from None
    return records


def check_header(path: Path, row: int, header: list[str]) -> None:
    """Raise an error for a header that does not name every column, each differently."""
    if len(header) > MOST_COLUMNS:
        raise ValueError(
            f"{path} has {len(header):,} columns, and at most {MOST_COLUMNS:,} are read; remove "
            "those that are neither chosen nor measured."
        )
    if all(map(NUMBER.fullmatch, header)) and any(map(_POINT.fullmatch, header)):
        raise ValueError(
            f"{path}, row {row}: the header consists of numbers; begin the file with a row of "
            "column names."
        )
    for i, name in enumerate(header):
        if not name and i > 0:
            raise ValueError(
                f"{path}, row {row}: column {i + 1} has no name; name it or remove it."
            )
        if header.index(name) < i:
            raise ValueError(
                f"{path}, row {row}: two columns are called {shortened(name)}; rename one."
            )


def _counts(cells: list[str]) -> bool:
    """Whether the cells are consecutive numbers from 0 or 1 on, as an exported index is."""
    numbers = [int(cell) if cell.isdecimal() and len(cell) < 16 else -1 for cell in cells]
    return numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(cells)))


def has_decimal_commas(columns: list[list[str]]) -> bool:
    """Whether fractions are written with commas, and none with a point."""
    cells = [cell for column in columns for cell in column]
    return any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))


def with_point(cell: str) -> str:
    """The cell with a decimal point where it has a decimal comma."""
    return cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell
