"""Optuna's distributions as declarations of parameters, and values back into them.

| Optuna | declared, and in a space |
|---|---|
| `FloatDistribution` | a number: `Real` between the bounds, with its step |
| `IntDistribution` | an integer: `Integer` between the bounds, likewise |
| `CategoricalDistribution` | choices: `Categorical`; text for what a space cannot hold |
"""

import math
from collections.abc import Collection
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metaprior.adapters import histories
from metaprior.adapters.histories import (
    Declared,
    DeclaredChoice,
    DeclaredNumber,
    Merged,
    as_choice,
)


def declared(distribution: BaseDistribution) -> Declared:
    """What a distribution declares a parameter to be."""
    if isinstance(distribution, CategoricalDistribution):
        return DeclaredChoice.of(distribution.choices)
    if not isinstance(distribution, (FloatDistribution, IntDistribution)):
        raise TypeError(f"{distribution!r} is no distribution of Optuna that metaprior knows.")
    integer = isinstance(distribution, IntDistribution)
    return DeclaredNumber(
        distribution.low, distribution.high, distribution.log, distribution.step, integer
    )


def merged_dimension(
    distributions: Collection[BaseDistribution], values: Collection[Any]
) -> Merged:
    """The dimension that holds all `values`, and whatever else the distributions can give."""
    return histories.merged_dimension(list(map(declared, distributions)), values)


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
