"""Ask and tell with a run file: what a technician does between two measurements."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metaprior.belief import Prior
from metaprior.bo import Best, Optimizer
from metaprior.data import Features, Real, Space
from metaprior.data.csv import Point, Row, RunFile, read_run
from metaprior.files import locked

# Suggested values are rounded to a millionth of their range: machines are not set more finely.
DIGITS = 6


class RunStatus(NamedTuple):
    """Where a run stands.

    - `best`: the best observation, in the user's units; `None` before the first.
    - `observed`, `failed`: how many points; `pending`: rows that wait for a value.
    - `trust`: in the learned prior, from 0 to 1; `None` for a prior without a guard.
    """

    best: Best | None
    observed: int
    failed: int
    pending: list[Row]
    trust: float | None


def suggest(
    prior: Prior, path: str | Path, n: int = 1, *, seed: int = 0, features: Features | None = None
) -> list[Row]:
    """The next `n` points of the run in the file, appended to it with empty value cells.

    The same file and the same seed give the same points. Rows without a value are pending, and
    the suggestions avoid them.

    - `features`: what is known of the task; it becomes columns of the file when the run begins,
      and is read from there later on.
    """
    path = Path(path)
    with locked(path):
        run = _run_of(prior, path)
        if features:
            prior.for_task(features)  # raises before anything is written
            run = run.about(features)
        points = _optimizer(prior, run, seed).ask(n)
        after = run.append([rounded(point, prior.space) for point in points])
    return after.rows[len(run.rows) :]


def tell(
    space: Space,
    path: str | Path,
    value: float | str | None,
    *,
    row: int | None = None,
    features: Sequence[str] = (),
    value_bounds: tuple[float, float] | None = None,
) -> Row:
    """Write a value into the first row of the file that has none, and return that row.

    - `value`: a number, or the text of one as this file writes it; `None` if the evaluation failed.
    - `row`: the row to write it into instead, counted as a spreadsheet does: the header is row 1.
    - `features`: names of features of tasks, for which the file may have columns.
    - `value_bounds`: what a value cannot be beyond.
    """
    path = Path(path)
    with locked(path):
        run = read_run(path, space, features=features)
        number_of_row = _waiting_row(run, row)
        run = run.fill(number_of_row, None if value is None else _value(value, run, value_bounds))
    return next(each for each in run.rows if each.number == number_of_row)


def status(prior: Prior, path: str | Path) -> RunStatus:
    """Where the run in the file stands; nothing is written."""
    run = _run_of(prior, path)
    optimizer = _optimizer(prior, run, seed=0)
    return RunStatus(
        optimizer.best, len(run.observed), len(run.failed), run.pending, optimizer.trust
    )


def rounded(point: Point, space: Space) -> Point:
    """The point with as many digits as matter, its reals still inside their bounds."""
    named = zip(space.names, space.dimensions, strict=True)
    return {
        name: _rounded(point[name], dimension)
        if isinstance(dimension, Real) and dimension.step is None
        else point[name]
        for name, dimension in named
        if name in point
    }


def _rounded(value: float, dimension: Real) -> float:
    if dimension.log:
        width = math.log(dimension.high) - math.log(dimension.low)
        decimals = max(math.ceil(DIGITS - math.log10(width)), 0)
        value = float(f"{value:.{decimals}e}")
    else:
        value = round(value, math.ceil(DIGITS - math.log10(dimension.high - dimension.low)))
    return min(max(value, float(dimension.low)), float(dimension.high))


def _run_of(prior: Prior, path: str | Path) -> RunFile:
    return read_run(path, prior.space, features=prior.features.names)


def _optimizer(prior: Prior, run: RunFile, seed: int) -> Optimizer:
    """An optimiser told all rows of the file."""
    # A seed per row: two rows of one run must not start from the same random numbers.
    mixed = np.random.SeedSequence([seed, len(run.rows)]).generate_state(1)[0]
    optimizer = Optimizer(prior, features=run.features or None, seed=int(mixed))
    for row in run.rows:
        if row.value is not None:
            optimizer.tell(row.point, row.value)
    # Last: telling a point ends the wait for it, and a pending row may repeat a told one.
    optimizer.expect([row.point for row in run.pending])
    return optimizer


def _waiting_row(run: RunFile, row: int | None) -> int:
    waiting = [each.number for each in run.pending]
    if row is None:
        if not waiting:
            raise ValueError(
                f"{run.path} has no row that waits for a value; get one with `metaprior suggest`, "
                "or add a row to the file."
            )
        return waiting[0]
    if row not in waiting:
        known = {each.number: each.value for each in run.rows}
        what = f"has the value {known[row]:g} already" if row in known else "does not exist"
        listed = f"rows that wait: {', '.join(map(str, waiting))}" if waiting else "no row waits"
        raise ValueError(
            f"{run.path}: row {row} {what} ({listed}); name another row, or edit the file."
        )
    return row


def _value(value: float | str, run: RunFile, value_bounds: tuple[float, float] | None) -> float:
    received = run.parsed(value) if isinstance(value, str) else float(value)
    if received is None or not math.isfinite(received):
        raise ValueError(
            f"The value {value!r} is not a finite number; give one, or say that the evaluation "
            "failed (--failed)."
        )
    if value_bounds is not None and not value_bounds[0] <= received <= value_bounds[1]:
        raise ValueError(
            f"The value {value!r} is not between the bounds {value_bounds[0]:g} and "
            f"{value_bounds[1]:g} that the prior was learned with; check it, or say that the "
            "evaluation failed (--failed)."
        )
    return received
