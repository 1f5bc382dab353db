"""Notes on what looks odd in runs that can be read; nothing is repaired."""

import numpy as np
from jaxtyping import Float

from metaprior.data import Integer, Space
from metaprior.data.csv._cells import TextRun
from metaprior.words import listed

# Values this many times larger than those of the other runs are noted.
LARGER = 1000.0
# Words in the name of a value that is usually minimised.
_LOW_IS_GOOD = ("loss", "error", "cost", "regret", "rmse", "mse", "mae", "nll")


def notes_on_values(runs: list[TextRun], values: list[Float[np.ndarray, " _"]]) -> list[str]:
    """Sentences on runs without change, rows that repeat others, and runs of another scale."""
    return [
        *_on_constant_runs(runs, values),
        *_on_repeated_rows(runs, values),
        *_on_larger_runs(runs, values),
    ]


def note_on_direction(value: str, direction: str) -> list[str]:
    """A sentence if the name of the value suggests minimising it."""
    if direction == "maximize" and any(word in value.lower() for word in _LOW_IS_GOOD):
        return [
            f"The value is called {value!r} and is maximised: if smaller is better, give "
            '--direction minimize (direction="minimize" in Python).'
        ]
    return []


def notes_on_counters(runs: list[TextRun], space: Space) -> list[str]:
    """A sentence for each dimension that only counts the points of every run."""
    counters = [
        name
        for name, dimension in zip(space.names, space.dimensions, strict=True)
        if isinstance(dimension, Integer) and all(_counts(run.columns[name]) for run in runs)
    ]
    return [
        f"The column {name!r} counts up by one in every run: if it is no dimension, leave it out "
        "with --ignore (ignore=... in Python)."
        for name in counters
    ]


def _counts(cells: list[str]) -> bool:
    if not all(cells):  # a dimension that does not exist at every point
        return False
    numbers = [int(cell) for cell in cells]
    return len(cells) > 2 and numbers == list(range(numbers[0], numbers[0] + len(cells)))


def _on_constant_runs(runs: list[TextRun], values: list[Float[np.ndarray, " _"]]) -> list[str]:
    long = [(run.name, y) for run, y in zip(runs, values, strict=True) if len(y) > 1]
    constant = [name for name, y in long if np.ptp(y) == 0]
    never = np.ptp(np.concatenate(values)) == 0 or (long and len(constant) == len(long))
    if never:
        raise ValueError(
            f"The value never changes within any of the {len(runs)} runs (first: {runs[0].path}, "
            f"row {runs[0].rows[0]}), so there is nothing to learn; check that the right "
            "column is the value."
        )
    if not constant:
        return []
    several = f"{len(constant)} runs" if len(constant) > 1 else "one run"
    return [f"The value never changes in {several} ({listed(constant)}); kept, but of little use."]


def _on_repeated_rows(runs: list[TextRun], values: list[Float[np.ndarray, " _"]]) -> list[str]:
    places = []
    for run, y in zip(runs, values, strict=True):
        seen = set()
        points = zip(*run.columns.values(), strict=True)
        for row, record in zip(run.rows, zip(points, y.tolist(), strict=True), strict=True):
            if record in seen:
                places.append(f"{run.path}, row {row}")
            seen.add(record)
    if not places:
        return []
    several = f"{len(places)} rows repeat" if len(places) > 1 else "One row repeats"
    first = "first: " if len(places) > 1 else ""
    return [f"{several} an earlier row of the same run ({first}{places[0]}); kept."]


def _on_larger_runs(runs: list[TextRun], values: list[Float[np.ndarray, " _"]]) -> list[str]:
    sizes = np.array([np.max(np.abs(y)) for y in values])
    usual = float(np.median(sizes))
    if usual == 0:
        return []
    return [
        f"The values of run {runs[i].name} ({runs[i].path}) are about {sizes[i] / usual:.0e} times "
        "as large as those of the others: check that they have the same unit."
        for i in np.flatnonzero(sizes >= LARGER * usual)
    ]
