"""Ask and tell with a run file: what a technician does between two measurements."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from metaprior.belief import Prior
from metaprior.bo import Best, Expectation, Optimizer, StoppingHint, require_prior
from metaprior.data import LARGEST_VALUE, Features
from metaprior.data.csv import Row, RunFile, read_run
from metaprior.files import as_path, locked
from metaprior.words import shortened

# Suggested values have so many significant digits: machines are not set more finely.
DIGITS = 3
# A value this many standard deviations from what is expected is a slip of the pen, most often.
FAR = 8.0
# A prior that has learned nothing knows what is plausible after so many values only.
FEWEST_VALUES = 5


class RunStatus(NamedTuple):
    """Where a run stands.

    - `best`: the best observation, in the user's units; `None` before the first.
    - `observed`, `failed`: how many points; `pending`: rows that wait for a value.
    - `trust`: the weight of the members that learned from past runs, from 0 to 1; `None` if the
      prior has no weights.
    - `stopping`: whether it is worth going on; `None` before the first value.
    """

    best: Best | None
    observed: int
    failed: int
    pending: list[Row]
    trust: float | None
    stopping: StoppingHint | None


class Suggestions(NamedTuple):
    """The next points of a run.

    - `rows`: where each was written; `expected`: what is expected there, in the same order.
    - `stopping`: whether it is worth going on; `None` before the first value.
    """

    rows: list[Row]
    expected: list[Expectation]
    stopping: StoppingHint | None


def suggest(
    prior: Prior, path: str | Path, n: int = 1, *, seed: int = 0, features: Features | None = None
) -> Suggestions:
    """The next `n` points of the run in the file, appended to it with empty value cells.

    Real values without a step have three significant digits. The same file and the same seed give
    the same points. Rows without a value are pending, and the suggestions avoid them.

    - `features`: features of the task; they become columns of the file when the run begins,
      and is read from there later on.
    """
    path = as_path(path)
    with locked(path):
        run = _run_of(prior, path)
        if features:
            prior.for_task(features)  # raises before anything is written
            run = run.about(features)
        optimizer = _optimizer(prior, run, seed)
        after = run.append(optimizer.ask(n, digits=DIGITS))
    rows = after.rows[len(run.rows) :]
    expected = [optimizer.expectation(row.point) for row in rows]
    return Suggestions(rows, expected, optimizer.stopping())


def tell(
    prior: Prior,
    path: str | Path,
    value: float | str | None,
    *,
    row: int | None = None,
    sure: bool = False,
) -> Row:
    """Write a value into the first row of the file that has none, and return that row.

    - `value`: a number, or the text of one, with a decimal point or comma; `None` if the evaluation
      failed.
    - `row`: the row to write it into instead, counted as a spreadsheet does: the header is row 1.
    - `sure`: whether to accept a value far from what is expected, which is an error otherwise.
    """
    path = as_path(path)
    with locked(path):
        run = _run_of(prior, path)
        number_of_row = _waiting_row(run, row)
        told = None if value is None else _value(value, run, prior.value_bounds)
        if told is not None and not sure:
            _require_plausible(prior, run, number_of_row, told)
        run = run.fill(number_of_row, told)
    return next(each for each in run.rows if each.number == number_of_row)


def status(prior: Prior, path: str | Path) -> RunStatus:
    """Where the run in the file stands; nothing is written."""
    run = _run_of(prior, path)
    optimizer = _optimizer(prior, run, seed=0)
    return RunStatus(
        optimizer.best,
        len(run.observed),
        len(run.failed),
        run.pending,
        optimizer.trust,
        optimizer.stopping(),
    )


def _run_of(prior: Prior, path: str | Path) -> RunFile:
    require_prior(prior)
    return read_run(path, prior.space, features=prior.features.names, quantity=prior.quantity)


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


def _require_plausible(prior: Prior, run: RunFile, row: int, value: float) -> None:
    """Raise an error for a value that is far from what is expected at its point."""
    if not prior.trained_on and len(run.observed) < FEWEST_VALUES:
        return
    (point,) = (each.point for each in run.rows if each.number == row)
    expected = _optimizer(prior, run, seed=0).expectation(point)
    if abs(value - expected.value) > FAR * expected.std:
        said = prior.quantity.with_unit(f"{expected.value:.4g} +- {expected.std:.2g}")
        raise ValueError(
            f"The value {value:g} is far from the {said} expected in row {row}; check it, and say "
            "--yes if it is right (sure=True in Python)."
        )


def _value(value: float | str, run: RunFile, value_bounds: tuple[float, float] | None) -> float:
    is_number = not isinstance(value, (str, bool))
    try:
        received = float(value) if is_number else run.parsed(str(value))
    except (OverflowError, TypeError):
        received = None
    # Larger ones could be written, and not be computed with.
    if received is None or not abs(received) <= LARGEST_VALUE:
        raise ValueError(
            f"The value {shortened(value)} is not a finite number of at most {LARGEST_VALUE:g} in "
            "size; give one, or say that the evaluation failed (--failed)."
        )
    if value_bounds is not None and not value_bounds[0] <= received <= value_bounds[1]:
        raise ValueError(
            f"The value {shortened(value)} is not between the bounds {value_bounds[0]:g} and "
            f"{value_bounds[1]:g} that the prior was learned with; check it, or say that the "
            "evaluation failed (--failed)."
        )
    return received
