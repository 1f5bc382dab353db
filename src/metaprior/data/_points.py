"""Reading points in their usual forms: dicts, frames, arrays, rows.

The result is always one column of raw values per name of the space; each dimension then checks and
encodes its own column.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from metaprior.words import listed, shortened

# Of the names of dimensions, in an error.
MOST_NAMED = 20

# A list of dicts, a pandas frame, a 2-d array, a list of rows, or, in one dimension, plain numbers.
Points: TypeAlias = Iterable[Any]
Column: TypeAlias = Sequence[Any] | np.ndarray
# What is wrong in which row, as an error that also says which task and which dimension.
Complaint: TypeAlias = Callable[[int, str], ValueError]


def complaint(where: str, name: str) -> Complaint:
    """An error maker for the column `name` of the points called `where` (may be empty)."""
    prefix = f"{where}, " if where else ""
    return lambda row, problem: ValueError(f"{prefix}row {row}, {name}: {problem}.")


def read_columns(
    points: Points, names: tuple[str, ...], *, where: str, may_lack: frozenset[str] = frozenset()
) -> list[Column]:
    """The values of `points`, one column for each of `names`, not yet checked.

    - `where`: what the points are called in an error, such as `"task 3"`; may be empty.
    - `may_lack`: the names that a point need not have; `None` stands in their columns then.
    """
    prefix = f"{where}: " if where else ""
    if isinstance(points, (str, bytes, Mapping)):
        raise ValueError(
            f"{prefix}received a single {type(points).__name__}, which is not a collection of "
            "points; give a list of dicts, one per point."
        )
    if hasattr(points, "columns") and hasattr(points, "to_dict"):
        return _columns_of_frame(points, names, prefix, may_lack)
    if hasattr(points, "__array__"):
        return _columns_of_array(np.asarray(points), names, where, may_lack)
    try:
        rows = list(points)
    except TypeError:
        raise ValueError(
            f"{prefix}received {shortened(points)}, which is not a collection of points; give "
            "a list of dicts, one per point, or a 2-d array."
        ) from None
    return _columns_of_rows(rows, names, where, may_lack)


def is_missing(value: Any) -> bool:
    """Whether nothing stands at this place: `None`, NaN, or what a frame has instead."""
    # pandas has values of its own for it, of which only the names are known here.
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, (float, np.floating)) and bool(np.isnan(value)))
    )


def as_number(value: Any) -> int | float | None:
    """`value` as a Python number, or `None` if it is not one; a bool is not a number here."""
    value = as_native(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value


def as_native(value: Any) -> Any:
    """`value` as a Python object: NumPy and JAX scalars become Python ones."""
    is_array_scalar = getattr(value, "shape", None) == () and hasattr(value, "item")
    return value.item() if is_array_scalar else value


def is_finite(number: int | float) -> bool:
    """Whether a number is one in float64, too: not so whole numbers of very many digits."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def finite_numbers(column: Column, complain: Complaint) -> Float[np.ndarray, " m"]:
    """The column as float64, every entry finite; the first entry that is not raises an error."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        numbers = column.astype(np.float64)
    else:
        numbers = np.array([_to_float(v, row, complain) for row, v in enumerate(column)], float)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise complain(
            int(bad[0]),
            f"received {shortened(as_native(column[bad[0]]))}; drop the point or repair it",
        )
    return numbers


def _to_float(value: Any, row: int, complain: Complaint) -> float:
    number = as_number(value)
    if number is None:
        raise complain(
            row,
            f"received {shortened(as_native(value))}, which is not a number; give a number, "
            "and mix numbers with text in dicts or object arrays only",
        )
    try:
        return float(number)
    except OverflowError:  # a Python int beyond the range of floats
        return float("inf") if number > 0 else float("-inf")


def _columns_of_frame(
    frame: Any, names: tuple[str, ...], prefix: str, may_lack: frozenset[str]
) -> list[Column]:
    if len(frame) == 0:
        return [[] for _ in names]
    columns = list(frame.columns)
    repeated = {repr(column) for column in columns if columns.count(column) > 1}
    if repeated:
        raise ValueError(
            f"{prefix}the frame has more than one column named {', '.join(sorted(repeated))}; "
            "keep one of them."
        )
    _check_names(columns, names, f"{prefix}the frame", may_lack)
    table = frame.to_dict("list")
    return [table[name] if name in table else [None] * len(frame) for name in names]


def _columns_of_array(
    array: np.ndarray, names: tuple[str, ...], where: str, may_lack: frozenset[str]
) -> list[Column]:
    if array.ndim > 0 and len(array) == 0:
        return [[] for _ in names]
    if array.ndim == 1 and array.dtype == object:  # dicts, or rows, in an array
        return _columns_of_rows(list(array), names, where, may_lack)
    if array.ndim == 1 and len(names) == 1:
        return [array]
    if array.ndim != 2 or array.shape[1] != len(names):
        prefix = f"{where}: " if where else ""
        raise ValueError(
            f"{prefix}received points of shape {array.shape} for a space of {len(names)} "
            f"dimension(s); give one row for each point and the columns {_listed(names)}."
        )
    return list(array.T)


def _columns_of_rows(
    rows: list[Any], names: tuple[str, ...], where: str, may_lack: frozenset[str]
) -> list[Column]:
    prefix = f"{where}, " if where else ""
    if rows and isinstance(rows[0], Mapping):
        for index, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ValueError(
                    f"{prefix}row {index}: received {shortened(row)} among dicts; give every "
                    f"point as a dict of {_listed(names)}."
                )
            if len(row) != len(names) or any(name not in row for name in names):
                _check_names(list(row), names, f"{prefix}row {index}", may_lack)
        return [[row.get(name) for row in rows] for name in names]
    if len(names) == 1 and not any(map(_is_row, rows)):
        return [rows]
    for index, row in enumerate(rows):
        if not _is_row(row) or len(row) != len(names):
            raise ValueError(
                f"{prefix}row {index}: received {shortened(row)}, which is not a point of "
                f"{len(names)} dimension(s); give a dict, or values in the order {_listed(names)}."
            )
    return [[row[column] for row in rows] for column in range(len(names))]


def _is_row(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1


def _check_names(
    received: list[Any], names: tuple[str, ...], subject: str, may_lack: frozenset[str]
) -> None:
    missing = [name for name in names if name not in received and name not in may_lack]
    extra = [name for name in received if name not in names]
    problems = [f"lacks {_listed(missing)}"] if missing else []
    problems += [f"has the unknown {_listed(extra)}"] if extra else []
    if problems:
        where_they_exist = " where they exist" if may_lack else ""
        raise ValueError(
            f"{subject} {' and '.join(problems)}; give exactly {_listed(names)} for each "
            f"point{where_they_exist}."
        )


def _listed(names: Iterable[Any]) -> str:
    return listed([shortened(name) for name in names], MOST_NAMED)


def checked_seed(seed: Any) -> int:
    """`seed`, if randomness can begin with it."""
    native = as_native(seed)
    if isinstance(native, bool) or not isinstance(native, int) or native < 0:
        raise ValueError(f"The seed is {shortened(seed)}; give a whole number of at least 0.")
    return native
