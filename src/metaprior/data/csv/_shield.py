"""Cells that a spreadsheet would run as a formula: written with an apostrophe in front.

`=HYPERLINK(...)` in a cell of text is a formula to a spreadsheet, wherever it came from. With an
apostrophe it is text; reading takes one away again. Numbers stay as they are.
"""

import re

from metaprior.data.csv._cells import NUMBER

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def shielded(text: str) -> str:
    """The cell to write for `text`."""
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def unshielded(cell: str) -> str:
    """The text that `shielded` made the cell of; any other cell as it is."""
    inside = cell[1:]
    return inside if cell.startswith("'") and shielded(inside) == cell else cell


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text.replace(",", ".", 1)) is not None
