"""`read_runs`: from CSV files to tasks, with a sentence for whatever is wrong or odd."""

import math
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.data import (
    Bounds,
    Categorical,
    Dimension,
    Integer,
    Points,
    Quantity,
    Real,
    Space,
    Tasks,
    checked_bounds,
    direction_sign,
    require_within,
)
from metaprior.data.csv._cells import (
    TextRun,
    column_of,
    complaint,
    has_value,
    number,
    values_of,
)
from metaprior.data.csv._features import features_of_runs, is_constant, never_changes
from metaprior.data.csv._infer import checked_choice_of_bounds, infer_dimension
from metaprior.data.csv._notes import (
    listed,
    note_on_direction,
    notes_on_counters,
    notes_on_values,
)
from metaprior.data.csv._paths import csv_files
from metaprior.data.csv._roles import Roles, roles_of
from metaprior.data.csv._sheet import Sheet, read_sheet
from metaprior.words import shortened


class RunsRead(NamedTuple):
    """Past runs, and what was found while reading them.

    - `tasks`: for `metaprior.learn`; task `i` is called `names_of_runs[i]`.
    - `space`: the one that was given, or the one that was inferred.
    - `notes`: sentences on what was left out and what looks odd.
    - `value`: the column that holds the value.
    - `num_files`: how many files were read.
    """

    tasks: Tasks
    space: Space
    names_of_runs: list[str]
    notes: list[str]
    value: str
    num_files: int


def read_runs(
    paths: str | Path | Iterable[str | Path],
    *,
    space: Space | None = None,
    value: str | None = None,
    task: str | None = None,
    direction: str = "maximize",
    ignore: Collection[str] = (),
    features: Collection[str] = (),
    value_bounds: Bounds | None = None,
    unit: str | None = None,
    bounds: str = "data",
    fewest: int = 2,
) -> RunsRead:
    """Past runs from CSV files.

    A file is one run, called like the file; or several, if a column names the run of each row. The
    rows of a run are its points, in order; a row without a value, or with the word "failed" for
    one, is a failed evaluation and is left out.

    - `paths`: files, folders (all `*.csv` in them) and patterns, in any mixture.
    - `space`: the dimensions, one column each; inferred from the columns if it is not given.
    - `value`: the column to be optimised; by default the one called y, value, objective, score or
      loss, or else the last column of numbers.
    - `task`: the column that names the run; by default the one called task, run or study, if any.
    - `direction`: whether to `"maximize"` or `"minimize"` the values.
    - `ignore`: columns to leave out.
    - `features`: columns that say something of the whole run, the same in all of its rows; an empty
      cell says nothing. Columns that never change within a run are no dimensions, named or not.
    - `value_bounds`: lowest and highest possible value.
    - `bounds`: of inferred dimensions: those of the `"data"`, or a little `"wider"`.
    - `unit`: of the value; by default as its column says it: `yield_pct`, `force [N]`.
    - `fewest`: how many runs there must be at least: 1 for a run that joins others.
    """
    if isinstance(features, str):
        features = (features,)
    direction_sign(direction)
    checked_choice_of_bounds(bounds)
    sheets = [read_sheet(path) for path in csv_files(paths)]
    roles = roles_of(
        sheets,
        space=space,
        value=value,
        task=task,
        ignore=tuple(ignore),
        features=tuple(features),
    )
    notes = [note for sheet in sheets for note in sheet.notes]
    notes += _note_on_decimal_commas([sheet for sheet in sheets if sheet.decimal_commas])
    notes += [f"The column {name!r} {reason}." for name, reason in roles.beside.items()]
    if roles.guessed:
        notes.append(f"The value is taken from {roles.value!r}, the last column of numbers.")
    notes += note_on_direction(roles.value, direction)
    runs, failures = _without_failures(_text_runs(sheets, roles, features))
    notes += failures
    if len(runs) < fewest:
        raise ValueError(
            f"Learning a prior needs at least {fewest} run{'s' if fewest > 1 else ''} with values, "
            f"received {len(runs)} in {len(sheets)} file(s); give one file per run, or name the "
            "run of each row in a column called 'task'."
        )
    values = _values(runs, roles.value)
    if value_bounds is not None:
        every, complain = np.concatenate(values), complaint(runs, roles.value)
        require_within(checked_bounds(value_bounds), every, complain)
    if space is None:
        space, left_out = _inferred(runs, roles.dimensions, bounds)
        notes += [*left_out, *notes_on_counters(runs, space)]
    points = _points(runs, space)
    notes += notes_on_values(runs, values)
    tasks = Tasks.from_runs(
        zip(points, values, strict=True),
        space=space,
        direction=direction,
        features=features_of_runs(runs, features) if features else None,
        value_bounds=value_bounds,
        names=[run.name for run in runs],
        quantity=Quantity.of_column(roles.value, unit),
    )
    return RunsRead(tasks, space, [run.name for run in runs], notes, roles.value, len(sheets))


def _note_on_decimal_commas(sheets: list[Sheet]) -> list[str]:
    """A sentence on the files whose numbers are written with decimal commas."""
    if not sheets:
        return []
    paths = listed([str(sheet.path) for sheet in sheets])
    return [f"Numbers in {paths} are read with decimal commas."]


def _text_runs(sheets: list[Sheet], roles: Roles, features: Collection[str]) -> list[TextRun]:
    """The runs of all sheets; runs of the same name in two files are two runs."""
    runs = []
    for sheet, task in zip(sheets, roles.tasks, strict=True):
        columns = {name: sheet.columns[name] for name in roles.dimensions}
        known = {name: sheet.columns[name] for name in features if name in sheet.columns}
        values = sheet.columns[roles.value]
        whole = TextRun(sheet.path.stem, sheet.path, sheet.rows, columns, values, known)
        if task is None:
            runs.append(whole)
            continue
        indices: dict[str, list[int]] = {}
        for index, name in enumerate(sheet.columns[task]):
            if not name:
                raise ValueError(
                    f"{sheet.path}, row {sheet.rows[index]}, column {task!r}: the cell is empty; "
                    "name the run that the row belongs to."
                )
            indices.setdefault(name, []).append(index)
        runs += [whole.subset(rows)._replace(name=name) for name, rows in indices.items()]
    count = Counter(run.name for run in runs)
    return [
        run._replace(name=f"{run.path}:{run.name}") if count[run.name] > 1 else run for run in runs
    ]


def _without_failures(runs: list[TextRun]) -> tuple[list[TextRun], list[str]]:
    """The runs without rows that have no value, and a sentence on what was left out."""
    kept, failed = [], []
    empty = []
    for run in runs:
        indices = [index for index, cell in enumerate(run.values) if has_value(cell)]
        failed += [
            f"{run.path}, row {r}"
            for r, cell in zip(run.rows, run.values, strict=True)
            if not has_value(cell)
        ]
        if indices:
            kept.append(run.subset(indices))
        else:
            empty.append(run.name)
    notes = []
    if failed:
        several = f"{len(failed)} rows have" if len(failed) > 1 else "One row has"
        notes.append(
            f"{several} no value ({listed(failed)}): left out, as failed or still to come."
        )
    if empty:
        several = f"{len(empty)} runs have" if len(empty) > 1 else "One run has"
        notes.append(f"{several} no value at all ({listed(empty)}): left out.")
    return kept, notes


def _values(runs: list[TextRun], name: str) -> list[Float[np.ndarray, " _"]]:
    complain = complaint(runs, name)
    cells = [cell for run in runs for cell in run.values]
    numbers = []
    for index, cell in enumerate(cells):
        received = number(cell)
        if received is None or not math.isfinite(received):
            raise complain(
                index,
                f"received {shortened(cell)}, which is not a finite number; repair it, or leave "
                "the cell empty if the evaluation failed",
            )
        numbers.append(received)
    ends = np.cumsum([len(run.values) for run in runs])
    return np.split(np.array(numbers, float), ends[:-1])


def _inferred(runs: list[TextRun], names: list[str], bounds: str) -> tuple[Space, list[str]]:
    """The space that the columns look like, and a sentence on columns that never change, or never
    within a run, and on bounds beyond the data."""
    of_runs = [
        name
        for name in names
        if never_changes([run.columns[name] for run in runs])
        and not is_constant(column_of(runs, name))
    ]
    found = {
        name: infer_dimension(column_of(runs, name), complaint(runs, name), bounds=bounds)
        for name in names
        if name not in of_runs
    }
    dimensions = {name: dimension for name, dimension in found.items() if dimension is not None}
    constant = [name for name in names if name not in (*dimensions, *of_runs)]
    if not dimensions:
        stay = [name for name in names if name in (*constant, *of_runs)]
        within = " within a run" if of_runs else ""
        raise ValueError(
            f"No column of the {len(runs)} runs changes{within} besides the value ({listed(stay)} "
            "stay the same), so there is nothing to choose; give runs over several points."
        )
    notes = [
        f"The column {name!r} never changes within a run, only between runs: left out of the "
        f"space. If it says something about the tasks, give it with --feature {name} "
        "(features=[...] in Python)."
        for name in of_runs
    ]
    notes += [
        f"The column {name!r} is always {shortened(runs[0].columns[name][0])}: left out of the "
        "space."
        for name in constant
    ]
    notes += [
        f"{name}: all values are {_multiples(dimension)}, taken as step={dimension.step:g}."
        for name, dimension in dimensions.items()
        if not isinstance(dimension, Categorical) and dimension.step is not None
    ]
    notes += _notes_on_wider_bounds(runs, dimensions)
    return Space(**dimensions), notes


def _notes_on_wider_bounds(runs: list[TextRun], dimensions: dict[str, Dimension]) -> list[str]:
    """A sentence for each dimension with a bound that is beyond the data."""
    notes = []
    for name, dimension in dimensions.items():
        if isinstance(dimension, Categorical):
            continue
        numbers = [float(cell) for cell in column_of(runs, name)]
        low, high = min(numbers), max(numbers)
        if dimension.low < low or dimension.high > high:
            notes.append(
                f"{name}: the bounds, {dimension.low:g} to {dimension.high:g}, go beyond the data, "
                f"{low:g} to {high:g} (--bounds wider): check that the machine may be set so."
            )
    return notes


def _multiples(dimension: Real | Integer) -> str:
    assert dimension.step is not None
    count = dimension.low / dimension.step
    start = "" if abs(count - round(count)) < 1e-6 else f"{dimension.low:g} plus "
    return f"{start}multiples of {dimension.step:g}"


def _points(runs: list[TextRun], space: Space) -> list[Points]:
    """The points of each run, every cell checked to belong to its dimension."""
    columns = [
        values_of(dimension, column_of(runs, name), complaint(runs, name))
        for name, dimension in zip(space.names, space.dimensions, strict=True)
    ]
    if space.conditions is not None:  # what is where it should not be, by file and row
        space.encode_columns(columns, lambda name: complaint(runs, name))
    # Numbers alone stay an array, which is encoded column by column instead of cell by cell.
    mixed = space.is_categorical.any() or space.conditions is not None
    rows = list(zip(*columns, strict=True)) if mixed else np.stack(columns, axis=1)
    ends = np.cumsum([len(run.rows) for run in runs])
    return [rows[end - len(run.rows) : end] for run, end in zip(runs, ends, strict=True)]
