"""Past runs that become part of a sequence: the file of each, as if it had been suggested there."""

from pathlib import Path

from metaprior.data import Categorical, Integer, Quantity, Space, Tasks
from metaprior.data.csv import Point, read_run
from metaprior.lifelong._ledger import Ledger

# Of the name of a run, in bytes: what is added to it for files beside its own must fit, too.
LONGEST_NAME = 200
# A point comes back from the unit cube to about so many digits.
_DIGITS = 12


def names_for(tasks: Tasks) -> list[str]:
    """What the files of the runs are called: as the user calls the runs, where a file can be."""
    found: list[str] = []
    for index in range(len(tasks)):
        given = tasks.names[index] if tasks.names else ""
        plain = _plain(given) or f"run-{index + 1}"
        free = (plain if n == 1 else f"{plain}-{n}" for n in range(1, len(tasks) + 1))
        found.append(next(name for name in free if name not in found))
    return found


def require_keepable(tasks: Tasks) -> None:
    """Raise an error for tasks that cannot be part of any sequence."""
    if tasks.features.names or tasks.value_bounds is not None:
        what = "features of tasks" if tasks.features.names else "bounds of the value"
        raise ValueError(f"A lifelong sequence keeps no {what}; give runs without them.")


def require_like(ledger: Ledger, tasks: Tasks, folder: Path) -> None:
    """Raise an error for tasks that cannot be part of the sequence in `folder`."""
    require_keepable(tasks)
    if tasks.direction != ledger.direction or not tasks.space.matches(ledger.space):
        raise ValueError(
            f"The sequence in {folder} is over {ledger.space}, {ledger.direction}d, and the runs "
            f"over {tasks.space}, {tasks.direction}d; read them with the space and the direction "
            "of the sequence."
        )
    if tasks.quantity not in (Quantity(), ledger.quantity):
        raise ValueError(
            f"The value of the sequence in {folder} is called {ledger.quantity.label!r}, and that "
            f"of the runs {tasks.quantity.label!r}; give both the same name."
        )


def write_past_run(path: Path, tasks: Tasks, index: int, quantity: Quantity) -> None:
    """Write run `index` to the file at `path`; a file that says the same stays as it is.

    - `quantity`: what the sequence calls the value.
    """
    points, values = tasks.run(index)
    points = [_tidied(point, tasks.space) for point in points]
    run = read_run(path, tasks.space, quantity=quantity)
    if not run.data.strip():
        run.append(points, values.tolist())
        return
    known = [(row.point, row.value) for row in run.observed]
    if known != list(zip(points, values.tolist(), strict=True)):
        raise ValueError(
            f"There is another run in {path}; rename the run that is to be added, or name another "
            "folder."
        )


def _plain(name: str) -> str:
    """The name without what a file cannot be called, as short as it must be."""
    marks = [mark if mark.isprintable() and mark not in "/\\:" else "-" for mark in name]
    whole = "".join(marks).strip("-. ")
    return whole.encode()[: LONGEST_NAME - 8].decode(errors="ignore")


def _tidied(point: Point, space: Space) -> Point:
    """The point without the last bits of the way to the unit cube and back."""
    tidied = dict(point)
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        if name in point and not isinstance(dimension, (Categorical, Integer)):
            rounded = float(f"{point[name]:.{_DIGITS}g}")
            if dimension.low <= rounded <= dimension.high:
                tidied[name] = rounded
    return tidied
