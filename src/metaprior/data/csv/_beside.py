"""Columns that say something beside the point: dates, remarks, what is empty or in few files."""

import re
from collections.abc import Sequence

from metaprior.data.csv._cells import BOOLS, number
from metaprior.data.csv._features import never_changes

_DATE = r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))"
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?(Z|[+-]\d{2}:?\d{2})?"
_WHEN = re.compile(rf"{_DATE}|{_TIME}|{_DATE}[T ]{_TIME}", re.IGNORECASE)

# Text that is in more of the files than this may be a dimension that others lack.
MOST_WITH_REMARKS = 0.5
# What fewer of the files have is nothing that was chosen in the others: a reading beside the run.
FEWEST_WITH_DIMENSION = 0.5


def beside_the_point(runs: Sequence[Sequence[str]], *, share: float) -> str | None:
    """Why a column is left out whatever the other columns are, in words; `None` if it is not.

    - `runs`: its cells, run by run, of the files that have it; `share`: of the files, those.
    """
    cells = [cell for run in runs for cell in run]
    filled = [cell for cell in cells if cell]
    if not filled:
        return "is empty: left out"
    if all(map(_WHEN.fullmatch, filled)) and not never_changes(runs):
        return "holds dates or times: left out"
    texts = sum(number(cell) is None and cell.lower() not in BOOLS for cell in filled)
    if texts == len(filled) and len(filled) < len(cells) / 2:
        return "holds remarks on some of the rows: left out"
    if share < 1 and never_changes(runs):
        return "is not in all of the files, and never changes within a run: left out"
    if share <= MOST_WITH_REMARKS and texts > len(filled) / 2:
        return "holds text, and is in a few of the files only: left out"
    if share < FEWEST_WITH_DIMENSION:
        return "is in a few of the files only: left out; if it is a dimension, add it to the others"
    return None
