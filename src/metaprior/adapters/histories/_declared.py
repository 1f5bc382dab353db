"""What a parameter was declared to be in a trial, and one dimension for what differs.

Several declarations of one parameter, from trials and studies that differ, become one dimension:

- from the lowest to the highest bound, and on to values that lie outside of them (hosts take the
  values that users hand them as they are); all choices, in order of appearance;
- on a log scale if every declaration with more than one value is;
- integer if every declaration is;
- with a step if every declaration with more than one value has it, on one grid with all values.
"""

import math
from collections.abc import Collection
from typing import Any, NamedTuple, TypeAlias

from metaprior.data import Categorical, Choice, Dimension, Integer, Real, as_native
from metaprior.words import listed

# Larger integers are reals in a space.
LARGEST_INTEGER = 2**40


class DeclaredNumber(NamedTuple):
    """A number between two bounds; with a step, only `low`, `low + step`, ... up to `high`."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    integer: bool = False

    @property
    def single(self) -> bool:
        """Whether it has one value only."""
        span = self.high - self.low
        return span == 0.0 or (self.step is not None and span < self.step * (1.0 - 1e-9))


class DeclaredChoice(NamedTuple):
    """One of some choices, as a space holds them.

    - `made`: those that are the text of something else, such as `None`.
    """

    choices: tuple[Choice, ...]
    made: frozenset[Choice] = frozenset()

    @classmethod
    def of(cls, values: Collection[Any]) -> "DeclaredChoice":
        """Of these values, whatever they are."""
        made = (as_choice(value) for value in values if not isinstance(as_native(value), str))
        choices = tuple(as_choice(value) for value in values)
        return cls(choices, frozenset(choice for choice in made if isinstance(choice, str)))


Declared: TypeAlias = DeclaredNumber | DeclaredChoice


class Merged(NamedTuple):
    """One dimension for several declarations, and a description of how these differ."""

    dimension: Dimension
    remarks: list[str]


def is_choice(declared: Declared) -> bool:
    return isinstance(declared, DeclaredChoice)


def as_choice(value: Any) -> Choice:
    """A choice as a space holds it: `None`, NaN and objects become their text."""
    value = as_native(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float)) else str(value)


def merged_dimension(declared: Collection[Declared], values: Collection[Any]) -> Merged:
    """The dimension that holds all `values`, and whatever else the declarations can give.

    - `declared`: all numbers, or all choices.
    - `values`: what was tried, at least two different ones.
    """
    choices = [d for d in declared if isinstance(d, DeclaredChoice)]
    if choices:
        return _merged_choices(choices)
    return _merged_numbers([d for d in declared if isinstance(d, DeclaredNumber)], values)


def _merged_choices(declared: list[DeclaredChoice]) -> Merged:
    choices = dict.fromkeys(choice for d in declared for choice in d.choices)
    same = all(set(d.choices) == set(choices) for d in declared)
    remarks = [] if same else [f"has other choices in other studies: all {len(choices)} are kept"]
    alike = [str(choice) for choice in choices if _is_two(choice, declared)]
    if alike:
        remarks.append(
            f"has values that are not text, and as text are {listed(alike)}: each the same "
            "choice as that text"
        )
    return Merged(Categorical(choices), remarks)


def _is_two(choice: Choice, declared: list[DeclaredChoice]) -> bool:
    """Whether a choice is a text as well as the text of something else."""
    having = [d for d in declared if choice in d.choices]
    texts = any(choice not in d.made or d.choices.count(choice) > 1 for d in having)
    return texts and any(choice in d.made for d in having)


def _merged_numbers(declared: list[DeclaredNumber], values: Collection[Any]) -> Merged:
    remarks = []
    low, high = min(d.low for d in declared), max(d.high for d in declared)
    if min(values) < low or max(values) > high:
        remarks.append("has values outside of its bounds, which are widened")
        low, high = min(low, *values), max(high, *values)
    # A declaration of one value decides neither the scale nor the bounds.
    wide = [d for d in declared if not d.single]
    if len({(d.low, d.high) for d in wide}) > 1:
        remarks.append(f"has bounds that differ: all of [{low:g}, {high:g}] is kept")
    integer = all(d.integer for d in declared)
    if not integer and any(d.integer for d in declared):
        remarks.append("is an integer in some studies and a float in others: taken as real")
    log = bool(wide) and all(d.log for d in wide) and low >= (1 if integer else math.ulp(0.0))
    if not log and any(d.log for d in wide):
        remarks.append("is on a log scale in some studies only: taken as linear")
    step = None if log else _common_step(wide, [low, high, *values])
    if step is None and any(_has_step(d) for d in wide):
        remarks.append("has steps that differ, or values between them: taken without a step")
    if integer and max(abs(low), abs(high)) <= LARGEST_INTEGER:
        step = None if step is None else int(step)
        return Merged(Integer(int(low), int(high), log, step=step), remarks)
    return Merged(Real(float(low), float(high), log, step=step), remarks)


def _has_step(declared: DeclaredNumber) -> bool:
    """Whether a declaration has a step that says more than that it is one of integers."""
    usual = 1 if declared.integer else None
    return declared.step not in (usual, None)


def _common_step(wide: list[DeclaredNumber], values: Collection[Any]) -> float | None:
    """The step of all declarations, if all values, the bounds among them, are on one grid."""
    steps = {each.step for each in wide}
    if len(steps) != 1 or not _has_step(wide[0]):
        return None
    step = float(wide[0].step or 1)
    ends = [bound for d in wide for bound in (d.low, d.high)]
    counts = [(value - min(values)) / step for value in (*values, *ends)]
    return step if all(abs(count - round(count)) < 1e-6 for count in counts) else None
