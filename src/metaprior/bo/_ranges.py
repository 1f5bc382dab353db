"""Ranges: what a task allows of one dimension, without regard to what a prior knows of it."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from metaprior.data import Categorical, Choice, Dimension, Integer, Real

# Relative to a step: values that were computed lie this near to the grid.
_ON_THE_GRID = 1e-6
# Relative to a range: values that were computed lie this far outside.
_ROUNDING = 1e-9
# A grid finer than this is as good as none.
_MOST_STEPS = 2**31


class Line(NamedTuple):
    """A value, or its logarithm, at a position of the unit interval: `start + position * width`."""

    start: float
    width: float
    log: bool


@dataclass(frozen=True)
class Numbers:
    """Numbers from `low` to `high`, both included: all of them, or every `step` from `low` on.

    On a log scale the only step is 1: integers.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def count(self) -> int:
        """How many numbers there are on the grid."""
        assert self.step is not None
        return round((self.high - self.low) / self.step) + 1

    @property
    def dimension(self) -> Dimension:
        """The same without units: bounds that move nothing but the map are not in it."""
        if self.step is None:
            return Real(0.0, 1.0)
        if self.log:
            return Integer(int(self.low), int(self.high), log=True)
        return Integer(0, self.count - 1)

    @property
    def coarse(self) -> "Numbers":
        """The same without a grid that is as good as none."""
        return replace(self, step=None) if self.step and self.count > _MOST_STEPS else self

    def within(self, dimension: Dimension) -> "Numbers | None":
        """Those that are values of `dimension`, one at least; `None` if there are none."""
        if isinstance(dimension, Categorical):
            return None
        if isinstance(dimension, Integer) and (self.step is None or self.step != int(self.step)):
            return None
        if self.step is None:
            low, high = max(self.low, float(dimension.low)), min(self.high, float(dimension.high))
            return Numbers(low, high, self.log) if low <= high else None
        first = max(0, math.ceil((dimension.low - self.low) / self.step - _ON_THE_GRID))
        last = math.floor((min(self.high, dimension.high) - self.low) / self.step + _ON_THE_GRID)
        if first > last:
            return None
        low, high = (self.low + i * self.step for i in (first, last))
        return Numbers(low, high, self.log, self.step if last - first < _MOST_STEPS else None)

    @property
    def only(self) -> float | None:
        """The one number that there is; `None` if there are more."""
        return self.low if self.low == self.high else None

    def coordinate(self, value: Any) -> float | int | None:
        """The value of `dimension` that stands for `value`; `None` for what is none of these."""
        if isinstance(value, str) or not math.isfinite(value) or (self.log and value <= 0):
            return None
        if self.step is None:
            start, width, _ = self.line
            position = ((math.log(value) if self.log else value) - start) / width
            inside = -_ROUNDING <= position <= 1.0 + _ROUNDING
            return min(max(position, 0.0), 1.0) if inside else None
        level = round((value - self.low) / self.step)
        off = abs(self.low + level * self.step - value) > _ON_THE_GRID * self.step
        if off or not 0 <= level < self.count:
            return None
        return int(self.low) + level if self.log else level

    def value(self, coordinate: float | int) -> float:
        """The number that a value of `dimension` stands for."""
        if self.step is not None:
            return float(coordinate) if self.log else self.low + coordinate * self.step
        start, width, _ = self.line
        value = start + coordinate * width
        return min(max(math.exp(value) if self.log else value, self.low), self.high)

    @property
    def line(self) -> Line:
        """Where the numbers lie in the unit interval of `dimension`."""
        if self.step is None:
            start, stop = (math.log(b) if self.log else b for b in (self.low, self.high))
            return Line(start, stop - start, self.log)
        if self.log:
            return line_of(self.dimension)
        return Line(self.low - self.step / 2, self.step * self.count, False)


@dataclass(frozen=True)
class Options:
    """Some of the choices of a categorical dimension."""

    choices: tuple[Choice, ...]

    @property
    def dimension(self) -> Dimension:
        return Categorical(range(len(self.choices)))

    def within(self, dimension: Dimension) -> "Options | None":
        """Those that `dimension` has too, one at least; `None` if there are none."""
        if not isinstance(dimension, Categorical):
            return None
        # 1 and True are equal, but not the same choice.
        known = {(type(choice), choice) for choice in dimension.choices}
        both = tuple(choice for choice in self.choices if (type(choice), choice) in known)
        return Options(both) if both else None

    @property
    def only(self) -> Choice | None:
        """The one choice that there is; `None` if there are more."""
        return self.choices[0] if len(self.choices) == 1 else None

    def coordinate(self, value: Any) -> int | None:
        return self.choices.index(value) if value in self.choices else None

    def value(self, coordinate: Any) -> Choice:
        return self.choices[coordinate]


Range: TypeAlias = Numbers | Options


def whole_range(dimension: Dimension) -> Range:
    """Everything that `dimension` allows."""
    if isinstance(dimension, Categorical):
        return Options(dimension.choices)
    step = dimension.step or (1 if isinstance(dimension, Integer) else None)
    step = None if step is None else float(step)
    return Numbers(float(dimension.low), float(dimension.high), dimension.log, step)


def surplus(numbers: Numbers, dimension: Dimension) -> tuple[float, float] | None:
    """The part of the unit interval of `numbers` that is in the bounds of `dimension`, if there are
    numbers outside of it; else `None`.

    An end that no number lies beyond is the end of the interval.
    """
    assert not isinstance(dimension, Categorical)
    low, high = float(dimension.low), float(dimension.high)
    slack = _ROUNDING * (high - low)
    below, above = numbers.low < low - slack, numbers.high > high + slack
    if not (below or above):
        return None
    start, width, log = numbers.line
    # There are no logarithms of the bounds of a linear range that starts at 0 or below.
    ends = [math.log(max(end, numbers.low)) if log else end for end in (low, high)]
    first, last = ((end - start) / width for end in ends)
    return first if below else min(first, 0.0), last if above else max(last, 1.0)


def new_choices(options: Options, dimension: Dimension) -> list[Choice]:
    """Choices that `dimension` does not have; 1 and True are not the same."""
    known = options.within(dimension)
    return [c for c in options.choices if known is None or c not in known.choices]


def covers(part: Range, every: Range) -> bool:
    """Whether a part of a range, by its `within`, is all of it."""
    if isinstance(every, Options) or isinstance(part, Options):
        return isinstance(part, Options) and part == every
    slack = _ROUNDING * (every.high - every.low)
    if every.step is not None:
        slack += _ON_THE_GRID * every.step
    return abs(part.low - every.low) <= slack and abs(part.high - every.high) <= slack


def line_of(dimension: Dimension) -> Line:
    """How a dimension of a space lies in its unit interval."""
    assert not isinstance(dimension, Categorical)
    if isinstance(dimension, Real) or dimension.step is not None:
        numbers = whole_range(dimension)
        assert isinstance(numbers, Numbers)
        return numbers.line
    grid = dimension.grid
    return Line(grid.start if dimension.log else grid.start + dimension.low, grid.width, grid.log)
