"""Numbers on a grid: where they lie in the unit interval, and steps that fit their bounds."""

import math
from decimal import Decimal
from types import ModuleType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from metaprior.data._points import Complaint, as_number, is_finite

# Beyond this, float64 positions no longer tell neighbouring integers apart with room to spare.
LARGEST_INTEGER = 2**40
# Relative: a position on the edge between two bins belongs to the upper one, whichever way the
# last bit was rounded; NumPy and a compiled function then agree on it.
_TIE = 1e-13
# Relative to a step: values that were computed lie this near to the grid.
_ON_THE_GRID = 1e-6


class IntegerGrid(NamedTuple):
    r"""Where integers lie in the unit interval; of one dimension, or of many columns at once.

    An integer is named by its level: the integer itself on a log scale, else its distance from
    `low`, which keeps large offsets out of the arithmetic. Level $k$ lies at
    $(t(k) - \mathrm{start}) / \mathrm{width}$.
    """

    log: Any
    first: Any
    last: Any
    start: Any
    width: Any

    def position(self, level: Any, xp: ModuleType) -> Any:
        """The position of `level`, computed with `xp`, which is NumPy or its JAX twin."""
        # The inner `where` keeps the logarithm of a linear level, which may be 0, from being taken.
        coordinate = xp.where(self.log, xp.log(xp.where(self.log, level, 1.0)), level)
        return (coordinate - self.start) / self.width

    def nearest_level(self, unit: Any, xp: ModuleType) -> Any:
        """The level in whose bin the position `unit` falls."""
        coordinate = self.start + unit * self.width
        value = xp.where(self.log, xp.exp(xp.where(self.log, coordinate, 0.0)), coordinate)
        return xp.clip(xp.floor((value + 0.5) * (1 + _TIE)), self.first, self.last)


@runtime_checkable
class Stepped(Protocol):
    """Numbers from `low` to `high`, every `step`."""

    @property
    def low(self) -> Any: ...
    @property
    def high(self) -> Any: ...
    @property
    def log(self) -> bool: ...
    @property
    def step(self) -> Any: ...


def checked_step(dimension: Stepped) -> int | float:
    """The step as a number that fits the bounds."""
    step = as_number(dimension.step)
    if step is None or not is_finite(step) or not 0 < step:
        raise ValueError(f"The step of {dimension} is not a positive number; give one.")
    if dimension.log and step != 1:
        raise ValueError(f"{dimension} has a step on a log scale; leave out one of the two.")
    count = (dimension.high - dimension.low) / step
    if count > LARGEST_INTEGER:
        raise ValueError(f"The step of {dimension} is too small beside its bounds; leave it out.")
    if abs(count - round(count)) > _ON_THE_GRID or round(count) < 1:
        last = dimension.low + math.floor(count) * step
        raise ValueError(
            f"The step of {dimension} does not fit its bounds: from {dimension.low} it leads to "
            f"{last:g} and past {dimension.high}; change the step or a bound."
        )
    return step


def num_steps(dimension: Stepped) -> int:
    return round((dimension.high - dimension.low) / (dimension.step or 1))


def linear_grid(first: int, last: int) -> IntegerGrid:
    start = first - 0.5
    return IntegerGrid(False, first, last, start, last + 0.5 - start)


def levels_of(
    values: Float[np.ndarray, " m"], dimension: Stepped, complain: Complaint
) -> Float[np.ndarray, " m"]:
    """The level of each value; the first that is not on the grid raises an error."""
    assert dimension.step is not None
    level = np.round((values - dimension.low) / dimension.step)
    # The last bits of a large offset count as rounding too.
    slack = np.maximum(_ON_THE_GRID * dimension.step, 4 * np.spacing(np.abs(values)))
    off = np.flatnonzero(np.abs(dimension.low + level * dimension.step - values) > slack)
    if off.size:
        row = int(off[0])
        raise complain(
            row,
            f"received {values[row]}, which is not {dimension.low} plus a multiple of "
            f"{dimension.step}; round it, or drop the point",
        )
    return level


def decimals(number: float) -> int:
    """How many digits follow the point in the shortest decimal that is `number`."""
    exponent = Decimal(repr(float(number))).normalize().as_tuple().exponent
    return max(0, -int(exponent))
