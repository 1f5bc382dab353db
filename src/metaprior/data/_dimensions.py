r"""The kinds of dimension, and the map of each between its own values and the unit interval.

| kind | values | columns | position in the unit cube |
|---|---|---|---|
| `Real` | $v \in [l, h]$ | 1 | $(t(v) - t(l)) / (t(h) - t(l))$ |
| `Integer` | $v \in \{l, \dots, h\}$ | 1 | the same, with $l - 1/2$ and $h + 1/2$ for $l$ and $h$ |
| `Categorical` | one of $c$ choices | $c$ | one-hot |

with $t$ the logarithm for `log=True`, else the identity. The half steps give every integer a bin of
its own, so that a uniform draw rounds to uniform integers.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from metaprior.data._points import (
    Column,
    Complaint,
    as_native,
    as_number,
    finite_numbers,
)
from metaprior.words import shortened

Choice: TypeAlias = str | int | float | bool

# Relative slack at the bounds: values that were computed (10**x, low + step * i) land just outside.
_SLACK = 1e-9
# Beyond this, float64 positions no longer tell neighbouring integers apart with room to spare.
_LARGEST_INTEGER = 2**40
# Relative: a position on the edge between two bins belongs to the upper one, whichever way the
# last bit was rounded; NumPy and a compiled function then agree on it.
_TIE = 1e-13


@dataclass(frozen=True, repr=False)
class Real:
    """A real number between `low` and `high`, both included; `log` spreads orders of magnitude."""

    low: float | int  # an int becomes a float
    high: float | int
    log: bool = False

    def __post_init__(self) -> None:
        low, high = _bounds(self)
        object.__setattr__(self, "low", float(low))
        object.__setattr__(self, "high", float(high))
        start, stop = self._ends()
        if not 0 < stop - start < math.inf:
            problem = "too close together" if stop - start <= 0 else "too far apart"
            raise ValueError(f"The bounds of {self} are {problem} for float64; change them.")

    def __repr__(self) -> str:
        return _described(self)

    @property
    def num_columns(self) -> int:
        return 1

    def encode(self, column: Column, complain: Complaint) -> Float[np.ndarray, "m 1"]:
        """Positions in the unit interval; the first value that does not belong raises an error."""
        values = finite_numbers(column, complain)
        low, high = self.low - self._slack(self.low), self.high + self._slack(self.high)
        _refuse((values < low) | (values > high), values, self, complain)
        values = np.clip(values, self.low, self.high)
        start, stop = self._ends()
        positions = ((np.log(values) if self.log else values) - start) / (stop - start)
        return np.clip(positions, 0.0, 1.0)[:, None]

    def decode(self, unit: Float[np.ndarray, "m 1"]) -> list[float]:
        """Values at positions of the unit interval; the ends give the bounds exactly."""
        position = np.clip(unit[:, 0], 0.0, 1.0)
        start, stop = self._ends()
        with np.errstate(over="ignore"):  # exp(log(h)) may exceed the largest float; clipped below
            values = start + position * (stop - start)
            values = np.exp(values) if self.log else values
        values = np.clip(values, self.low, self.high)
        values = np.where(position <= 0, self.low, np.where(position >= 1, self.high, values))
        return values.tolist()

    def to_json(self) -> dict[str, Any]:
        return {"type": "real", "low": self.low, "high": self.high, "log": self.log}

    def _slack(self, bound: float) -> float:
        if self.log:
            return _SLACK * bound
        # The last bits of a large offset count as rounding too: low = 1e9, high = 1e9 + 1.
        return max(_SLACK * (self.high - self.low), 4 * math.ulp(bound))

    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)


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


@dataclass(frozen=True, repr=False)
class Integer:
    """An integer between `low` and `high`, both included; `log` spreads orders of magnitude."""

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        low, high = _bounds(self)
        for bound in (low, high):
            if bound != int(bound) or abs(bound) > _LARGEST_INTEGER:
                raise ValueError(
                    f"A bound of {self} is not an integer of at most {_LARGEST_INTEGER} in size: "
                    f"received {bound!r}; round it, or use Real."
                )
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))

    def __repr__(self) -> str:
        return _described(self)

    @property
    def num_columns(self) -> int:
        return 1

    @property
    def grid(self) -> IntegerGrid:
        first, last = (self.low, self.high) if self.log else (0, self.high - self.low)
        scale = math.log if self.log else float
        start = scale(first - 0.5)
        return IntegerGrid(self.log, first, last, start, scale(last + 0.5) - start)

    def encode(self, column: Column, complain: Complaint) -> Float[np.ndarray, "m 1"]:
        """Positions in the unit interval; the first value that does not belong raises an error."""
        values = finite_numbers(column, complain)
        rounded = np.round(values)
        fractional = np.flatnonzero(abs(values - rounded) > _SLACK * np.maximum(1.0, abs(values)))
        if fractional.size:
            row = int(fractional[0])
            raise complain(row, f"received {values[row]}, which is not an integer; round it")
        _refuse((rounded < self.low) | (rounded > self.high), values, self, complain)
        level = rounded if self.log else rounded - self.low
        return self.grid.position(level, np)[:, None]

    def decode(self, unit: Float[np.ndarray, "m 1"]) -> list[int]:
        """The integers in whose bins the positions fall."""
        level = self.grid.nearest_level(np.clip(unit[:, 0], 0.0, 1.0), np)
        offset = 0 if self.log else self.low
        return [int(k) + offset for k in level]

    def to_json(self) -> dict[str, Any]:
        return {"type": "integer", "low": self.low, "high": self.high, "log": self.log}


@dataclass(frozen=True, repr=False)
class Categorical:
    """One of two or more choices (text, numbers or bools) without an order."""

    choices: tuple[Choice, ...]
    # Python holds 1, 1.0 and True for equal: without this, so would two spaces that differ in them.
    _types: tuple[type, ...] = field(init=False)

    def __init__(self, choices: Iterable[Choice]) -> None:
        if isinstance(choices, (str, bytes)) or not isinstance(choices, Iterable):
            raise TypeError(f"Categorical needs a list of choices, received {choices!r}.")
        natives = tuple(as_native(choice) for choice in choices)
        for choice in natives:
            if not isinstance(choice, (str, int, float, bool)):
                raise TypeError(
                    f"A choice of Categorical is {choice!r}; give text, numbers or bools."
                )
            if isinstance(choice, float) and not math.isfinite(choice):
                raise ValueError(f"A choice of Categorical is {choice}; name it by a text instead.")
        if len(natives) < 2:
            raise ValueError(
                f"Categorical needs at least 2 choices, received {list(natives)}; leave a "
                "dimension with one value out of the space."
            )
        if len(set(natives)) < len(natives):
            raise ValueError(
                f"The choices {list(natives)} of Categorical are not all different (1, 1.0 and "
                "True are equal); remove or rename the repeated ones."
            )
        object.__setattr__(self, "choices", natives)
        object.__setattr__(self, "_types", tuple(type(choice) for choice in natives))

    def __repr__(self) -> str:
        return f"Categorical({list(self.choices)})"

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
                    f"{list(self.choices)}; add it to the dimension or drop the point",
                )
            one_hot[row, index] = 1.0
        return one_hot

    def decode(self, unit: Float[np.ndarray, "m c"]) -> list[Choice]:
        """The choice with the largest entry; the first of them where entries tie."""
        return [self.choices[index] for index in np.argmax(unit, axis=1)]

    def to_json(self) -> dict[str, Any]:
        return {"type": "categorical", "choices": list(self.choices)}


Dimension: TypeAlias = Real | Integer | Categorical


def _bounds(dimension: Real | Integer) -> tuple[int | float, int | float]:
    low, high = as_number(dimension.low), as_number(dimension.high)
    if low is None or high is None:
        raise TypeError(f"The bounds of {dimension} are not both numbers; give two numbers.")
    if not isinstance(dimension.log, bool):
        raise TypeError(f"`log` of {dimension} is not a bool; give True or False.")
    if not (math.isfinite(low) and math.isfinite(high)):
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
    log = f", log={dimension.log}" if dimension.log else ""
    return f"{type(dimension).__name__}({dimension.low}, {dimension.high}{log})"
