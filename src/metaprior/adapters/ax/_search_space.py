"""Whether the search space of an experiment is one that a prior knows."""

from typing import Any

from ax.core.parameter import (
    ChoiceParameter,
    FixedParameter,
    Parameter,
    ParameterType,
    RangeParameter,
)
from ax.core.search_space import SearchSpace

from metaprior.data import Categorical, Dimension, Integer, Space, complaint
from metaprior.words import listed


def require_space(space: Space, search_space: SearchSpace) -> None:
    """Raise a ValueError that says what to change, unless every point of `search_space` lies in
    `space`, and is searched on the scale that the prior was learned on."""
    if space.conditions is not None:
        conditional = [n for n, d in zip(space.names, space.dimensions, strict=True) if d.when]
        raise ValueError(
            f"Dimension {conditional[0]!r} of the prior exists only under a condition, which Ax's "
            "models cannot see; use `metaprior.Optimizer(prior)` or Optuna for this prior."
        )
    if search_space.is_hierarchical:
        raise ValueError(
            "The experiment has parameters that depend on others, which the prior does not know; "
            "configure it without `dependent_parameters`."
        )
    names = ", ".join(map(repr, space.names))
    for name in search_space.tunable_parameters:
        if name not in space.names:
            raise ValueError(
                f"The experiment has the parameter {name!r}, which the prior does not know (it "
                f"knows {names}); fix its value, or learn a prior from runs that have it."
            )
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        parameter = search_space.parameters.get(name)
        if parameter is None:
            raise ValueError(
                f"The experiment lacks the parameter {name!r} of the prior; add it, if need be as "
                "a choice of one value."
            )
        fault = _fault(dimension, parameter)
        if fault:
            raise ValueError(f"The parameter {name!r} {fault}.")


def _fault(dimension: Dimension, parameter: Parameter) -> str:
    """What is wrong with a parameter, as the end of a sentence; empty if nothing is."""
    if isinstance(parameter, FixedParameter):
        return _outside(dimension, [parameter.value])
    if isinstance(dimension, Categorical):
        if not isinstance(parameter, ChoiceParameter):
            choices = listed(list(map(repr, dimension.choices)), 5)
            return (
                f"is a range in the experiment and one of {choices} in the prior; configure it "
                "with a ChoiceParameterConfig"
            )
        return _outside(dimension, parameter.values)
    if isinstance(parameter, ChoiceParameter):
        if not parameter.is_numeric:
            return (
                "is a choice of text in the experiment and a number in the prior; configure it "
                "with a RangeParameterConfig"
            )
        if not parameter.is_ordered:
            return (
                "is a choice without order in the experiment and a number in the prior; configure "
                "it with is_ordered=True"
            )
        return _outside(dimension, parameter.values)
    if not isinstance(parameter, RangeParameter):
        return "is derived from others in the experiment; configure it as a range or a choice"
    if isinstance(dimension, Integer) and parameter.parameter_type != ParameterType.INT:
        return (
            "is a float in the experiment and an integer in the prior; configure it with "
            'parameter_type="int"'
        )
    if parameter.logit_scale or parameter.log_scale != dimension.log:
        scale = "log" if dimension.log else "linear"
        return (
            f"is not on the scale that the prior was learned on; configure it with "
            f'scaling="{scale}"'
        )
    low, high = parameter.lower, parameter.upper
    if low < dimension.low or high > dimension.high:
        return (
            f"goes from {low:g} to {high:g} in the experiment and from {dimension.low:g} to "
            f"{dimension.high:g} in the prior; configure bounds within those of the prior"
        )
    return ""


def _outside(dimension: Dimension, values: list[Any]) -> str:
    """Which of the values the prior does not know."""
    for value in values:
        try:
            dimension.encode([value], complaint("", ""))
        except ValueError:
            known = (
                listed(list(map(repr, dimension.choices)), 5)
                if isinstance(dimension, Categorical)
                else f"from {dimension.low:g} to {dimension.high:g}"
            )
            return (
                f"can be {value!r} in the experiment, which the prior does not know (it knows "
                f"{known}); leave that value out"
            )
    return ""
