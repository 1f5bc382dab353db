"""Queries that a person can set: real values of a few significant digits."""

import itertools
import math
from collections.abc import Collection
from typing import Any

from metaprior.data import Real, Space

# Every way of rounding is compared in so many dimensions; in the others, the nearest one is taken.
MOST_DIMENSIONS = 6
# Of the last digit of zero, which has any number of them.
ANY = 400


def roundings(
    point: dict[str, Any], space: Space, digits: int, *, exactly: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The points around `point` whose real values have `digits` significant digits.

    They are digits of the value or of the range of its dimension, whichever is finer: 93.2 between
    0 and 100, and 1003.2 between 1000 and 1010. Values with a step are settable as they are. The
    first of the points is the nearest.

    - `exactly`: dimensions whose values stay as they are.
    """
    named = zip(space.names, space.dimensions, strict=True)
    reals = [
        (name, dimension)
        for name, dimension in named
        if name in point
        and name not in exactly
        and isinstance(dimension, Real)
        and dimension.step is None
    ]
    ends = [_ends(float(point[name]), dimension, digits) for name, dimension in reals]
    several = [both if i < MOST_DIMENSIONS else both[:1] for i, both in enumerate(ends)]
    names = [name for name, _ in reals]
    return [
        {**point, **dict(zip(names, values, strict=True))} for values in itertools.product(*several)
    ]


def _ends(value: float, dimension: Real, digits: int) -> list[float]:
    """The settable values on both sides of `value`, the nearer one first; inside the bounds."""
    low, high = float(dimension.low), float(dimension.high)
    finest = min(_exponent(abs(value), digits), _exponent(high - low, digits))
    unit = value / 10.0**finest if finest > -300 else math.nan
    if not math.isfinite(unit) or abs(unit) > 2**52:
        return [value]  # finer than floats are
    sides = sorted({math.floor(unit), math.ceil(unit)}, key=lambda side: abs(side - unit))
    # Through text: 3 times a tenth is not 0.3.
    numbers = [float(f"{side}e{finest}") for side in sides]
    inside = [min(max(number, low), high) for number in numbers]
    return list(dict.fromkeys(inside))


def _exponent(size: float, digits: int) -> int:
    """The power of ten of the last of `digits` significant digits of a number of this size."""
    return ANY if size == 0 else math.floor(math.log10(size)) - digits + 1
