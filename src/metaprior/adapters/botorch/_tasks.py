"""Past runs in tensors as tasks."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from metaprior.adapters.botorch._coordinates import AbstractCoordinates, UnitCube
from metaprior.adapters.botorch._inputs import require_inside, require_run
from metaprior.data import Bounds, Quantity, Space, Tasks
from metaprior.words import shortened


def tasks(
    runs: Iterable[Any],
    coordinates: AbstractCoordinates | Space,
    *,
    direction: str = "maximize",
    features: Iterable[Any] | None = None,
    value_bounds: Bounds | None = None,
    names: Iterable[str] | None = None,
    quantity: Quantity | None = None,
) -> Tasks:
    """Past runs in tensors as tasks, for `metaprior.learn`.

    - `runs`: one pair `(X, Y)` per task: points (n, d) and values (n, 1), in the user's units and
      not standardised.
    - `coordinates`: where the points lie: `UserUnits(space)`, `UnitCube(space)`, or a space, which
      stands for its unit cube. Integers and categories are moved to valid values.
    - `direction`: whether to `"maximize"` the values, as BoTorch does, or to `"minimize"` them.
    - the other arguments: see `Tasks.from_runs`.
    """
    where = UnitCube(coordinates) if isinstance(coordinates, Space) else coordinates
    return Tasks.from_runs(
        [_run(i, run, where.double()) for i, run in enumerate(runs)],
        space=where.space,
        direction=direction,
        features=features,
        value_bounds=value_bounds,
        names=names,
        quantity=quantity,
    )


def _run(index: int, run: Any, coordinates: AbstractCoordinates) -> tuple[list[Any], Any]:
    """A run as points by name and an array of values."""
    pair = list(run) if isinstance(run, (tuple, list)) else []
    if len(pair) != 2 or not all(isinstance(each, Tensor) for each in pair):
        raise ValueError(
            f"Run {index} is {shortened(run)}; give a pair of tensors (X, Y), points (n, d) and "
            "values (n, 1)."
        )
    x, y = (each.detach().double().cpu() for each in pair)
    prefix = f"run {index}: "
    require_run(x, y, prefix=prefix)
    require_inside(f"{prefix}X", x, coordinates)
    low, high = coordinates.bounds.to(x)
    return coordinates.points(x.clamp(low, high)), y[:, 0].numpy()
