"""Records from arrays with named axes: one row for each entry."""

import numpy as np
from jaxtyping import Float, Shaped

from metaprior.lab.studies._jobs import Columns


def rows(
    axes: dict[str, Shaped[np.ndarray, " _"] | list[int] | range],
    metrics: dict[str, Float[np.ndarray, "..."]],
) -> Columns:
    """Columns of a record: the coordinates of every entry along `axes`, and its metrics.

    - `axes`: coordinates by name, in the order of the axes of the metrics. A metric that lacks the
      last axes has the same value all along them.
    """
    shape = tuple(len(values) for values in axes.values())
    coordinates = np.meshgrid(*(np.asarray(values) for values in axes.values()), indexing="ij")
    columns = {name: grid.ravel() for name, grid in zip(axes, coordinates, strict=True)}
    for name, metric in metrics.items():
        missing = (1,) * (len(shape) - metric.ndim)
        columns[name] = np.broadcast_to(metric.reshape(*metric.shape, *missing), shape).ravel()
    return columns
