"""Slices through a prediction: mean and 95 % band along one dimension, the others fixed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.data import Categorical, Dimension, Space
from metaprior.plots._panels import INK, PALETTE, draw_band
from metaprior.words import cut, number, power_of_ten

GRID = 49
# Up to this many values or choices are drawn as points with error bars, each with a label.
MOST_CHOICES = 8
MOST_SLICES = 12
# Longest labels that fit horizontally, and rotated.
LABEL, STANDING_LABEL = 7, 12


# Mean and both ends of the 95 % band, each an array with one number per point.
Bands = tuple[np.ndarray, np.ndarray, np.ndarray]
Predicted = Callable[[list[dict[str, Any]]], Bands]


class Slice(NamedTuple):
    """A prediction along one dimension at `values`, drawn at `places` on the axis.

    - `lower`, `upper`: ends of the 95 % band; like the mean, within the bounds of the value.
    """

    name: str
    dimension: Dimension
    values: list[Any]
    places: Float[np.ndarray, " k"]
    mean: Float[np.ndarray, " k"]
    lower: Float[np.ndarray, " k"]
    upper: Float[np.ndarray, " k"]

    @property
    def influence(self) -> float:
        """Range of the mean along the dimension."""
        return float(np.ptp(self.mean))

    @property
    def is_discrete(self) -> bool:
        return _is_discrete(self.dimension)


def middle_of(space: Space) -> dict[str, Any]:
    """The midpoint of all dimensions; the first choice of categorical ones."""
    return {
        name: dimension.choices[0]
        if isinstance(dimension, Categorical)
        else dimension.decode(np.full((1, 1), 0.5))[0]
        for name, dimension in zip(space.names, space.dimensions, strict=True)
    }


def slices_through(
    predict: Predicted, space: Space, point: Mapping[str, Any], names: Sequence[str]
) -> list[Slice]:
    """Predictions of an observation along each of the named dimensions, through `point`; what
    that lacks is at its midpoint or first choice, and what a dimension needs to exist is so.

    - `predict`: mean and band of an observation at each of many points.
    """
    dimensions = dict(zip(space.names, space.dimensions, strict=True))
    values = {name: _values_along(dimensions[name]) for name in names}
    everything = {**middle_of(space), **point}
    points = [
        _existing({**_where_it_exists(everything, name, dimensions), name: value}, space)
        for name in names
        for value in values[name]
    ]
    bands = predict(points)
    slices, start = [], 0
    for name in names:
        stop = start + len(values[name])
        places = places_of(dimensions[name], values[name])
        mean, lower, upper = (y[start:stop] for y in bands)
        along = Slice(name, dimensions[name], values[name], places, mean, lower, upper)
        slices.append(along)
        start = stop
    return slices


def _where_it_exists(
    point: Mapping[str, Any], name: str, dimensions: Mapping[str, Dimension]
) -> dict[str, Any]:
    """The point, with what the dimension `name` depends on changed so that it exists."""
    changed = dict(point)
    for parent, values in dimensions[name].when:
        if changed[parent] not in values:
            changed[parent] = values[0]
        changed = _where_it_exists(changed, parent, dimensions)
    return changed


def _existing(point: dict[str, Any], space: Space) -> dict[str, Any]:
    """The point without values of dimensions that do not exist there."""
    return {name: point[name] for name in space.existing(point)}


def places_of(dimension: Dimension, values: Sequence[Any]) -> Float[np.ndarray, " k"]:
    """Positions of values on the axis of their dimension; NaN for choices that are not shown."""
    if isinstance(dimension, Categorical):
        place = {choice: float(i) for i, choice in enumerate(dimension.choices[:MOST_CHOICES])}
        return np.array([place.get(value, np.nan) for value in values], float)
    numbers = np.array(values, float)
    return np.log10(numbers) if dimension.log and not _is_discrete(dimension) else numbers


def draw_slice(slice_: Slice, limits: tuple[float, float], ax: Any) -> None:
    """Mean and band: a line, or points with error bars where there are few values."""
    if slice_.is_discrete:
        ax.errorbar(
            slice_.places,
            slice_.mean,
            yerr=np.stack([slice_.mean - slice_.lower, slice_.upper - slice_.mean]),
            fmt="o",
            color=PALETTE[0],
            markersize=6,
            linewidth=2.2,
            capsize=4,
        )
        room = 0.5 if len(slice_.places) > 1 else 1.0
        ax.set_xlim(slice_.places[0] - room, slice_.places[-1] + room)
    else:
        draw_band(ax, slice_.places, slice_.mean, slice_.lower, slice_.upper, PALETTE[0])
    _label_places(slice_, ax)
    ax.set_ylim(*limits)
    ax.locator_params(axis="y", nbins=4)


def limits_of(slices: Sequence[Slice], values: Sequence[float] = ()) -> tuple[float, float]:
    """A range that contains the bands of all slices and `values`, with a margin."""
    low = min([*(float(np.min(s.lower)) for s in slices), *values])
    high = max([*(float(np.max(s.upper)) for s in slices), *values])
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _is_discrete(dimension: Dimension) -> bool:
    if isinstance(dimension, Categorical):
        return True
    return dimension.grid is not None and dimension.grid.last - dimension.grid.first < MOST_CHOICES


def _values_along(dimension: Dimension) -> list[Any]:
    if isinstance(dimension, Categorical):
        return list(dimension.choices[:MOST_CHOICES])
    if dimension.grid is not None and _is_discrete(dimension):
        levels = range(int(dimension.grid.first), int(dimension.grid.last) + 1)
        return [dimension.value(level) for level in levels]
    values = dimension.decode(np.linspace(0.0, 1.0, GRID)[:, None])
    return sorted(set(values))  # neighbouring places may be the same integer


def _label_places(slice_: Slice, ax: Any) -> None:
    dimension = slice_.dimension
    if slice_.is_discrete:
        labels = [str(value) for value in slice_.values]
        standing = max(map(len, labels)) > LABEL or len(labels) > 6
        limit = STANDING_LABEL if standing and isinstance(dimension, Categorical) else LABEL
        ax.set_xticks(slice_.places, [cut(label, limit) for label in labels])
        if standing and isinstance(dimension, Categorical):
            ax.tick_params(axis="x", rotation=35)
            for tick in ax.get_xticklabels():
                tick.set(ha="right", rotation_mode="anchor")
    elif not isinstance(dimension, Categorical) and dimension.log:
        ticks = _log_ticks(float(slice_.places[0]), float(slice_.places[-1]))
        ax.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
    else:
        ax.locator_params(axis="x", nbins=5)
    ax.tick_params(colors=INK)


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Positions (base-10 logarithms) and labels of at most six ticks."""
    decades = range(int(np.ceil(low - 1e-9)), int(np.floor(high + 1e-9)) + 1)
    if len(decades) >= 3:
        every = -(-len(decades) // 5)
        return [(float(e), power_of_ten(e)) for e in decades[::every]]
    steps = [
        (float(np.log10(digit)) + e, number(digit * 10.0**e, 1))
        for e in range(int(np.floor(low)), int(np.ceil(high)) + 1)
        for digit in (1, 2, 5)
    ]
    inside = [step for step in steps if low - 1e-9 <= step[0] <= high + 1e-9]
    if len(inside) >= 2:
        return inside[:: -(-len(inside) // 5)]
    return [(place, number(10.0**place)) for place in (low, high)]
