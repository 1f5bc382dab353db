"""Conversion between Optuna's distributions and the dimensions of a space.

| Optuna | space |
|---|---|
| `FloatDistribution` | `Real` between the bounds, with its step |
| `IntDistribution` | `Integer` between the bounds, likewise |
| `CategoricalDistribution` | `Categorical`, with text in place of what a space cannot hold |

Several distributions of one parameter, from trials and studies that differ, become one dimension:

- from the lowest to the highest bound, and on to values that lie outside of them (Optuna takes
  enqueued values as they are); all choices, in order of appearance;
- on a log scale if every distribution with more than one value is;
- integer if every distribution is;
- with a step if every distribution with more than one value has it, on one grid with all values.
"""

import math
from collections.abc import Collection
from typing import Any, NamedTuple, TypeAlias

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metaprior.data import Categorical, Choice, Dimension, Integer, Real, as_native

Number: TypeAlias = FloatDistribution | IntDistribution

# Larger integers are reals in a space.
LARGEST_INTEGER = 2**40


class Merged(NamedTuple):
    """One dimension for several distributions, and a description of how these differ."""

    dimension: Dimension
    remarks: list[str]


def is_categorical(distribution: BaseDistribution) -> bool:
    return isinstance(distribution, CategoricalDistribution)


def as_choice(value: Any) -> Choice:
    """A choice as a space holds it: `None`, NaN and objects become their text."""
    value = as_native(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float)) else str(value)


def merged_dimension(
    distributions: Collection[BaseDistribution], values: Collection[Any]
) -> Merged:
    """The dimension that holds all `values`, and whatever else the distributions can give.

    - `distributions`: all numbers, or all categorical.
    - `values`: what was tried, at least two different ones.
    """
    categorical = [d for d in distributions if isinstance(d, CategoricalDistribution)]
    if categorical:
        return _merged_choices(categorical)
    numbers = [d for d in distributions if isinstance(d, (FloatDistribution, IntDistribution))]
    return _merged_numbers(numbers, values)


def nearest_value(value: Any, distribution: BaseDistribution) -> Any:
    """The value of `distribution` nearest to `value`, which is one of the dimension."""
    if isinstance(distribution, CategoricalDistribution):
        wanted = as_choice(value)
        for choice in distribution.choices:
            if as_choice(choice) == wanted:
                return choice
        raise ValueError(f"{value!r} is none of the choices {list(distribution.choices)}; add it.")
    if not isinstance(distribution, (FloatDistribution, IntDistribution)):
        raise TypeError(f"{distribution!r} is no distribution of Optuna that metaprior knows.")
    low, high, step = distribution.low, distribution.high, distribution.step
    value = min(max(value, low), high)
    if step is not None:
        # The slack lets the last step count although the division may have rounded it down.
        last = math.floor((high - low) / step + 1e-8)
        value = min(low + min(round((value - low) / step), last) * step, high)
    return round(value) if isinstance(distribution, IntDistribution) else float(value)


def _merged_choices(distributions: list[CategoricalDistribution]) -> Merged:
    choices = dict.fromkeys(as_choice(choice) for d in distributions for choice in d.choices)
    same = all({as_choice(choice) for choice in d.choices} == set(choices) for d in distributions)
    remarks = [] if same else [f"has other choices in other studies: all {len(choices)} are kept"]
    return Merged(Categorical(choices), remarks)


def _merged_numbers(distributions: list[Number], values: Collection[Any]) -> Merged:
    remarks = []
    low, high = min(d.low for d in distributions), max(d.high for d in distributions)
    if min(values) < low or max(values) > high:
        remarks.append("has values outside of its bounds, which are widened")
        low, high = min(low, *values), max(high, *values)
    # A distribution of one value decides neither the scale nor the bounds.
    wide = [d for d in distributions if not d.single()]
    if len({(d.low, d.high) for d in wide}) > 1:
        remarks.append(f"has bounds that differ: all of [{low:g}, {high:g}] is kept")
    integer = all(isinstance(d, IntDistribution) for d in distributions)
    if not integer and any(isinstance(d, IntDistribution) for d in distributions):
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


def _has_step(distribution: Number) -> bool:
    """Whether a distribution has a step that says more than that it is one of integers."""
    usual = 1 if isinstance(distribution, IntDistribution) else None
    return distribution.step not in (usual, None)


def _common_step(wide: list[Number], values: Collection[Any]) -> float | None:
    """The step of all distributions, if all values, the bounds among them, are on one grid."""
    steps = {distribution.step for distribution in wide}
    if len(steps) != 1 or not _has_step(wide[0]):
        return None
    step = float(wide[0].step or 1)
    ends = [bound for d in wide for bound in (d.low, d.high)]
    counts = [(value - min(values)) / step for value in (*values, *ends)]
    return step if all(abs(count - round(count)) < 1e-6 for count in counts) else None
