"""Which column is the value, which names the run, and that all files have the same others."""

from collections.abc import Collection
from typing import NamedTuple

from metaprior.data import Space
from metaprior.data.csv._beside import beside_the_point
from metaprior.data.csv._cells import number
from metaprior.data.csv._features import is_constant, never_changes
from metaprior.data.csv._sheet import Sheet
from metaprior.words import listed, shortened

# Of the columns of a file, in an error.
MOST_NAMED = 20
TASK_NAMES = ("task", "run", "study")
VALUE_NAMES = ("y", "value", "objective", "score", "loss")


class Roles(NamedTuple):
    """What the columns are.

    - `value`: the column to be optimised; `tasks`: for each sheet, the column that names the run,
      or `None` if the sheet is one run; `dimensions`: all others, in order.
    - `guessed`: whether the value is the last column of numbers, since no name was known.
    - `beside`: why each column that only says something beside the point is left out.
    """

    value: str
    tasks: list[str | None]
    dimensions: list[str]
    guessed: bool
    beside: dict[str, str]


def roles_of(
    sheets: list[Sheet],
    *,
    space: Space | None,
    value: str | None,
    task: str | None,
    ignore: Collection[str],
    features: Collection[str] = (),
) -> Roles:
    """The roles of the columns of all sheets.

    Columns that the caller names, and dimensions of `space`, are not guessed. Those of `features`
    have no role here, and need not be in all of the sheets.
    """
    known = () if space is None else space.names
    for name in features:
        others = {"the space": known, "--ignore": ignore, "--value": (value,), "--task": (task,)}
        for other, taken in others.items():
            if name in taken:
                raise ValueError(
                    f"The column {shortened(name)} is named by --feature and by {other}; name it "
                    "in one place."
                )
    for option, name in (("value", value), ("task", task)):
        if name is not None and name in (*known, *ignore):
            other = "the space" if name in known else "--ignore"
            raise ValueError(
                f"The column {shortened(name)} is named by --{option} and by {other}; name it in "
                "one place."
            )
    if value is not None and value == task:
        raise ValueError(
            f"The column {shortened(value)} is both --value and --task; name two columns."
        )
    for name in (*((task,) if task is not None else ()), *ignore, *features):
        if not any(name in sheet.columns for sheet in sheets):
            raise ValueError(
                f"No file has a column {shortened(name)}; name one of those in {sheets[0].path}: "
                f"{_listed(sheets[0].columns)}."
            )
    tasks = [_task_column(sheet, task, {*known, *ignore, *features, value}) for sheet in sheets]
    left = [
        [name for name in sheet.columns if name not in (*ignore, *features, column)]
        for sheet, column in zip(sheets, tasks, strict=True)
    ]
    guessed = False
    if value is None:
        value, guessed = _value_column(sheets, [n for n in left[0] if n not in known])
    for sheet in sheets:
        if value not in sheet.columns:
            source = "" if sheet is sheets[0] else f", which {sheets[0].path} has"
            raise ValueError(
                f"{sheet.path} has no column {shortened(value)} for the value{source}; add it, or "
                f"name one of {_listed(sheet.columns)} with --value (value=... in Python)."
            )
    dimensions = [[name for name in names if name != value] for names in left]
    beside = _beside(sheets, tasks, dimensions, known)
    dimensions = [[name for name in names if name not in beside] for names in dimensions]
    if space is None:
        _check_same(sheets, dimensions)
        return Roles(value, tasks, dimensions[0], guessed, beside)
    _check_space(sheets, tasks, dimensions, space)
    return Roles(value, tasks, list(space.names), guessed, beside)


def _beside(
    sheets: list[Sheet],
    tasks: list[str | None],
    dimensions: list[list[str]],
    known: Collection[str],
) -> dict[str, str]:
    """The columns that are no dimensions whatever the others are, and why, in words."""
    found = {}
    for name in dict.fromkeys(name for names in dimensions for name in names):
        if name not in known:
            runs = [
                run
                for sheet, task in zip(sheets, tasks, strict=True)
                for run in _cells(sheet, task, name)
            ]
            share = sum(name in sheet.columns for sheet in sheets) / len(sheets)
            reason = beside_the_point(runs, share=share)
            if reason is not None:
                found[name] = reason
    return found


def _task_column(sheet: Sheet, task: str | None, taken: Collection[str | None]) -> str | None:
    if task is not None:
        return task if task in sheet.columns else None
    found = [name for name in sheet.columns if name.lower() in TASK_NAMES and name not in taken]
    if len(found) > 1:
        raise ValueError(
            f"{sheet.path}: {_listed(found)} could each name the run; say which with --task "
            "(task=... in Python)."
        )
    return found[0] if found else None


def _value_column(sheets: list[Sheet], names: list[str]) -> tuple[str, bool]:
    """The column of values, and whether it was found by its place instead of its name."""
    named = [name for name in names if name.lower() in VALUE_NAMES]
    if len(named) > 1:
        raise ValueError(
            f"{sheets[0].path}: {_listed(named)} could each be the value; say which with --value "
            "(value=... in Python)."
        )
    if named:
        return named[0], False
    for name in reversed(names):
        # Most, not all: a damaged cell must be an error, not make another column the value.
        cells = [cell for sheet in sheets for cell in sheet.columns.get(name, []) if cell]
        if sum(number(cell) is not None for cell in cells) > len(cells) / 2:
            return name, True
    raise ValueError(
        f"{sheets[0].path} has no column of numbers for the value; say which column holds it with "
        "--value (value=... in Python)."
    )


def _check_same(sheets: list[Sheet], dimensions: list[list[str]]) -> None:
    first = sheets[0].path
    if not dimensions[0]:
        raise ValueError(
            f"{first} has no column besides the value; add the dimensions, one column each."
        )
    for sheet, names in zip(sheets, dimensions, strict=True):
        missing = [name for name in dimensions[0] if name not in names]
        if missing:
            raise ValueError(
                f"{sheet.path} has no column {shortened(missing[0])}, which {first} has; "
                "add it, or leave one of the files out."
            )
        extra = [name for name in names if name not in dimensions[0]]
        if extra:
            raise ValueError(
                f"{sheet.path} has the column {shortened(extra[0])}, which {first} lacks; "
                "remove it, or leave it out with --ignore (ignore=... in Python)."
            )


def _check_space(
    sheets: list[Sheet], tasks: list[str | None], dimensions: list[list[str]], space: Space
) -> None:
    for sheet, names in zip(sheets, dimensions, strict=True):
        missing = [name for name in space.names if name not in names]
        if missing:
            raise ValueError(
                f"{sheet.path} has no column {shortened(missing[0])}, which is a dimension of "
                "the space; add it, or remove the dimension."
            )
    # A space inferred from the same files leaves out what never changes, or never within a run:
    # such columns may stay in the files.
    for sheet, names in zip(sheets, dimensions, strict=True):
        for name in names:
            if name not in space.names and not _is_left_out(sheets, tasks, name):
                raise ValueError(
                    f"{sheet.path} has the column {shortened(name)}, which is not in the space; "
                    "add it to the space, or leave it out with --ignore (ignore=... in Python)."
                )


def _is_left_out(sheets: list[Sheet], tasks: list[str | None], name: str) -> bool:
    """Whether a space that is inferred from the files has no dimension for a column."""
    runs = [
        run for sheet, task in zip(sheets, tasks, strict=True) for run in _cells(sheet, task, name)
    ]
    return is_constant([cell for run in runs for cell in run]) or never_changes(runs)


def _cells(sheet: Sheet, task: str | None, name: str) -> list[list[str]]:
    """The cells of a column, run by run; none if the sheet lacks it."""
    if name not in sheet.columns:
        return []
    names = [""] * len(sheet.rows) if task is None else sheet.columns[task]
    runs: dict[str, list[str]] = {}
    for run, cell in zip(names, sheet.columns[name], strict=True):
        runs.setdefault(run, []).append(cell)
    return list(runs.values())


def _listed(names: Collection[str]) -> str:
    return listed(list(map(shortened, names)), MOST_NAMED)
