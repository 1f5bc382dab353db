r"""The kinds of dimension, and the map of each between its own values and the unit interval.

| kind | values | columns | position in the unit cube |
|---|---|---|---|
| `Real` | $v \in [l, h]$ | 1 | $(t(v) - t(l)) / (t(h) - t(l))$ |
| `Integer` | $v \in \{l, \dots, h\}$ | 1 | the same, with $l - 1/2$ and $h + 1/2$ for $l$ and $h$ |
| `Categorical` | one of $c$ choices | $c$ | one-hot |

with $t$ the logarithm for `log=True`, else the identity. The half steps give every integer a bin of
its own, so that a uniform draw rounds to uniform integers. With `step=s` the values are
$l, l + s, \dots, h$, and lie like the integers from 0 to $(h - l) / s$.

Models see a fixed number of columns of a category with more than 32 choices (see `_codes`).

With `when={parent: values, ...}` a dimension exists only where every parent has one of the values
(see `_conditions`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from metaprior.data._grid import (
    LARGEST_INTEGER,
    IntegerGrid,
    checked_step,
    decimals,
    levels_of,
    linear_grid,
    num_steps,
)
from metaprior.data._points import (
    Column,
    Complaint,
    as_native,
    as_number,
    finite_numbers,
    is_finite,
)
from metaprior.data._when import Choice as Choice
from metaprior.data._when import When, as_json, conditions_given, described
from metaprior.words import shortened

# Relative slack at the bounds: values that were computed (10**x, low + step * i) land just outside.
_SLACK = 1e-9
# So many choices have a column each in what models see.
MOST_ONE_HOT = 32
# More make no choices: the cost of a search grows with their square.
MOST_CHOICES = 1000


@dataclass(frozen=True, repr=False)
class Real:
    """A real number between `low` and `high`, both included; `log` spreads orders of magnitude.

    - `step`: only `low`, `low + step`, ... up to `high`.
    - `when`: the values of other dimensions under which this one exists.
    """

    low: float | int  # an int becomes a float
    high: float | int
    log: bool = False
    step: float | int | None = field(default=None, kw_only=True)
    when: Any = field(default=(), kw_only=True)  # a dict of lists becomes a tuple

    def __post_init__(self) -> None:
        low, high = _bounds(self)
        object.__setattr__(self, "low", float(low))
        object.__setattr__(self, "high", float(high))
        object.__setattr__(self, "when", conditions_given(self.when))
        if self.step is not None:
            object.__setattr__(self, "step", float(checked_step(self)))
            return
        start, stop = self._ends()
        if not 0 < stop - start < math.inf:
            problem = "too close together" if stop - start <= 0 else "too far apart"
            raise ValueError(f"The bounds of {self} are {problem} for float64; change them.")

    def __repr__(self) -> str:
        return _described(self)

    @property
    def num_columns(self) -> int:
        return 1

    @property
    def grid(self) -> IntegerGrid | None:
        """Where the values lie; `None` without a step."""
        return None if self.step is None else linear_grid(0, num_steps(self))

    def encode(self, column: Column, complain: Complaint) -> Float[np.ndarray, "m 1"]:
        """Positions in the unit interval; the first value that does not belong raises an error."""
        values = finite_numbers(column, complain)
        low, high = self.low - self._slack(self.low), self.high + self._slack(self.high)
        _refuse((values < low) | (values > high), values, self, complain)
        if self.grid is not None:
            return self.grid.position(levels_of(values, self, complain), np)[:, None]
        values = np.clip(values, self.low, self.high)
        start, stop = self._ends()
        positions = ((np.log(values) if self.log else values) - start) / (stop - start)
        return np.clip(positions, 0.0, 1.0)[:, None]

    def decode(self, unit: Float[np.ndarray, "m 1"]) -> list[float]:
        """Values at positions of the unit interval; the ends give the bounds exactly."""
        position = np.clip(unit[:, 0], 0.0, 1.0)
        if self.grid is not None:
            return [self.value(level) for level in self.grid.nearest_level(position, np)]
        start, stop = self._ends()
        with np.errstate(over="ignore"):  # exp(log(h)) may exceed the largest float; clipped below
            values = start + position * (stop - start)
            values = np.exp(values) if self.log else values
        values = np.clip(values, self.low, self.high)
        values = np.where(position <= 0, self.low, np.where(position >= 1, self.high, values))
        return values.tolist()

    def value(self, level: float | int) -> float:
        """The value at a level of the grid, with no more decimals than bounds and step have."""
        assert self.step is not None
        if level >= num_steps(self):  # without the rounding of a step such as 1/3
            return float(self.high)
        digits = max(decimals(self.low), decimals(self.step))
        return round(self.low + float(level) * self.step, digits)

    def to_json(self) -> dict[str, Any]:
        plain = {"type": "real", "low": self.low, "high": self.high, "log": self.log}
        return plain | _extras(self)

    def _slack(self, bound: float) -> float:
        if self.log:
            return _SLACK * bound
        # The last bits of a large offset count as rounding too: low = 1e9, high = 1e9 + 1.
        return max(_SLACK * (self.high - self.low), 4 * math.ulp(bound))

    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)


@dataclass(frozen=True, repr=False)
class Integer:
    """An integer between `low` and `high`, both included; `log` spreads orders of magnitude.

    - `step`: only `low`, `low + step`, ... up to `high`.
    - `when`: the values of other dimensions under which this one exists.
    """

    low: int
    high: int
    log: bool = False
    step: int | None = field(default=None, kw_only=True)
    when: Any = field(default=(), kw_only=True)  # a dict of lists becomes a tuple

    def __post_init__(self) -> None:
        low, high = _bounds(self)
        for bound in (low, high):
            if bound != int(bound) or abs(bound) > LARGEST_INTEGER:
                raise ValueError(
                    f"A bound of {self} is not an integer of at most {LARGEST_INTEGER} in size: "
                    f"received {shortened(bound)}; round it, or use Real."
                )
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))
        object.__setattr__(self, "when", conditions_given(self.when))
        if self.step is not None:
            step = checked_step(self)
            if step != int(step):
                raise ValueError(f"The step of {self} is not an integer; round it, or use Real.")
            object.__setattr__(self, "step", int(step) if step > 1 else None)

    def __repr__(self) -> str:
        return _described(self)

    @property
    def num_columns(self) -> int:
        return 1

    @property
    def grid(self) -> IntegerGrid:
        if self.log:
            start = math.log(self.low - 0.5)
            return IntegerGrid(True, self.low, self.high, start, math.log(self.high + 0.5) - start)
        return linear_grid(0, num_steps(self))

    def encode(self, column: Column, complain: Complaint) -> Float[np.ndarray, "m 1"]:
        """Positions in the unit interval; the first value that does not belong raises an error."""
        values = finite_numbers(column, complain)
        rounded = np.round(values)
        fractional = np.flatnonzero(abs(values - rounded) > _SLACK * np.maximum(1.0, abs(values)))
        if fractional.size:
            row = int(fractional[0])
            raise complain(row, f"received {values[row]}, which is not an integer; round it")
        _refuse((rounded < self.low) | (rounded > self.high), values, self, complain)
        if self.step is not None:
            return self.grid.position(levels_of(rounded, self, complain), np)[:, None]
        level = rounded if self.log else rounded - self.low
        return self.grid.position(level, np)[:, None]

    def decode(self, unit: Float[np.ndarray, "m 1"]) -> list[int]:
        """The integers in whose bins the positions fall."""
        level = self.grid.nearest_level(np.clip(unit[:, 0], 0.0, 1.0), np)
        return [self.value(k) for k in level]

    def value(self, level: float | int) -> int:
        """The integer at a level of the grid."""
        return int(level) if self.log else int(level) * (self.step or 1) + self.low

    def level(self, value: Any) -> int | None:
        """The level of the grid that `value` has; `None` if it is none of the integers."""
        number = as_number(value)
        if number is None or not self.low <= number <= self.high or number != int(number):
            return None
        level, rest = divmod(int(number) - (0 if self.log else self.low), self.step or 1)
        return None if rest else level

    def to_json(self) -> dict[str, Any]:
        plain = {"type": "integer", "low": self.low, "high": self.high, "log": self.log}
        return plain | _extras(self)


@dataclass(frozen=True, repr=False)
class Categorical:
    """One of two or more choices (text, numbers or bools) without an order.

    - `when`: the values of other dimensions under which this one exists.
    - `one_hot`: whether models see a column for each choice where there are more than 32, rather
      than codes of 24 columns; priors of older versions do. The cost of learning grows with it.
    """

    choices: tuple[Choice, ...]
    when: When
    one_hot: bool
    # Python holds 1, 1.0 and True for equal: without this, so would two spaces that differ in them.
    _types: tuple[type, ...] = field(init=False)

    def __init__(self, choices: Iterable[Choice], *, when: Any = (), one_hot: Any = False) -> None:
        if isinstance(choices, (str, bytes)) or not isinstance(choices, Iterable):
            raise TypeError(f"Categorical needs a list of choices, received {shortened(choices)}.")
        natives = tuple(as_native(choice) for choice in choices)
        for choice in natives:
            if not isinstance(choice, (str, int, float, bool)):
                raise TypeError(
                    f"A choice of Categorical is {shortened(choice)}; give text, numbers or bools."
                )
            if isinstance(choice, float) and not math.isfinite(choice):
                raise ValueError(f"A choice of Categorical is {choice}; name it by a text instead.")
        if len(natives) < 2:
            raise ValueError(
                f"Categorical needs at least 2 choices, received {shortened(list(natives))}; leave "
                "a dimension with one value out of the space."
            )
        if len(set(natives)) < len(natives):
            raise ValueError(
                f"The choices {shortened(list(natives))} of Categorical are not all different (1, "
                "1.0 and True are equal); remove or rename the repeated ones."
            )
        if not isinstance(one_hot, bool):
            raise TypeError(
                f"`one_hot` of Categorical is {shortened(one_hot)}; give True or False."
            )
        if len(natives) > MOST_CHOICES and not one_hot:
            raise ValueError(
                f"Categorical has {len(natives):,} choices, such as {shortened(natives[0])}, and "
                f"{MOST_CHOICES:,} are the most; group the rare ones under one name, or describe "
                "them by numbers in dimensions of their own."
            )
        object.__setattr__(self, "choices", natives)
        object.__setattr__(self, "one_hot", one_hot or len(natives) <= MOST_ONE_HOT)
        object.__setattr__(self, "_types", tuple(type(choice) for choice in natives))
        object.__setattr__(self, "when", conditions_given(when))

    def __repr__(self) -> str:
        one_hot = ", one_hot=True" if self.asks_one_hot else ""
        return f"Categorical({list(self.choices)}{described(self.when)}{one_hot})"

    @property
    def asks_one_hot(self) -> bool:
        """Whether it has a column for each choice where it would not have by default."""
        return self.one_hot and len(self.choices) > MOST_ONE_HOT

    @property
    def num_columns(self) -> int:
        return len(self.choices)

    def encode(self, column: Column, complain: Complaint) -> Float[np.ndarray, "m c"]:
        """One-hot rows; the first value that is not a choice raises an error."""
        index_of = {choice: index for index, choice in enumerate(self.choices)}
        one_hot = np.zeros((len(column), len(self.choices)))
        for row, value in enumerate(column):
            value = as_native(value)
            # A list or a dict is not hashable, so it cannot be looked up.
            index = index_of.get(value) if isinstance(value, (str, int, float)) else None
            if index is None:
                raise complain(
                    row,
                    f"received {shortened(value)}, which is none of the choices "
                    f"{shortened(list(self.choices), 300)}; add it to the dimension or drop the "
                    "point",
                )
            one_hot[row, index] = 1.0
        return one_hot

    def decode(self, unit: Float[np.ndarray, "m c"]) -> list[Choice]:
        """The choice with the largest entry; the first of them where entries tie."""
        return [self.choices[index] for index in np.argmax(unit, axis=1)]

    def to_json(self) -> dict[str, Any]:
        plain = {"type": "categorical", "choices": list(self.choices)}
        coded = {} if self.one_hot else {"one_hot": False}
        return plain | coded | as_json(self.when)


Dimension: TypeAlias = Real | Integer | Categorical


def _bounds(dimension: Real | Integer) -> tuple[int | float, int | float]:
    low, high = as_number(dimension.low), as_number(dimension.high)
    if low is None or high is None:
        raise TypeError(f"The bounds of {dimension} are not both numbers; give two numbers.")
    if not isinstance(dimension.log, bool):
        raise TypeError(f"`log` of {dimension} is not a bool; give True or False.")
    if not (is_finite(low) and is_finite(high)):
        raise ValueError(f"The bounds of {dimension} are not both finite; give finite ones.")
    if not low < high:
        raise ValueError(
            f"The bounds of {dimension} leave nothing to choose; give low < high, or leave a "
            "dimension with one value out of the space."
        )
    if dimension.log and low < (1 if isinstance(dimension, Integer) else math.ulp(0.0)):
        least = "at least 1" if isinstance(dimension, Integer) else "positive"
        raise ValueError(f"`low` of {dimension} must be {least} on a log scale; raise it.")
    return low, high


def _refuse(
    outside: np.ndarray, values: np.ndarray, dimension: Real | Integer, complain: Complaint
) -> None:
    if outside.any():
        row = int(np.argmax(outside))
        raise complain(
            row,
            f"received {values[row]}, which is outside [{dimension.low}, {dimension.high}]; widen "
            "the dimension or drop the point",
        )


def _described(dimension: Real | Integer) -> str:
    log = f", log={_shown(dimension.log)}" if dimension.log else ""
    step = f", step={_shown(dimension.step)}" if dimension.step is not None else ""
    when = described(dimension.when)
    bounds = f"{_shown(dimension.low)}, {_shown(dimension.high)}"
    return f"{type(dimension).__name__}({bounds}{log}{step}{when})"


def _shown(value: Any) -> str:
    return shortened(as_native(value))


def _extras(dimension: Real | Integer) -> dict[str, Any]:
    step = {} if dimension.step is None else {"step": dimension.step}
    return step | as_json(dimension.when)
