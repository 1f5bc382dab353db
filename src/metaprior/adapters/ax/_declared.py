"""What parameters of an Ax experiment are declared to be.

| Ax | declared, and in a space |
|---|---|
| `RangeParameter` | a number, on its scale; integers have the type `INT` |
| `ChoiceParameter` of ordered numbers | a number, with a step if they are evenly spaced |
| other `ChoiceParameter` | choices |
| `FixedParameter` | its one value |
| `DerivedParameter` | nothing: it follows from others |
"""

from typing import Any

from ax.core.parameter import (
    ChoiceParameter,
    FixedParameter,
    Parameter,
    ParameterType,
    RangeParameter,
)

from metaprior.adapters.histories import Declared, DeclaredChoice, DeclaredNumber, as_choice

# Choices are evenly spaced if no step differs by more than this share of it.
_SLACK = 1e-6


def declared(parameter: Parameter) -> Declared | None:
    """What a parameter is declared to be; `None` if it cannot be chosen."""
    integer = parameter.parameter_type == ParameterType.INT
    if isinstance(parameter, RangeParameter):
        low, high = parameter.lower, parameter.upper
        step = 1 if integer else None
        return DeclaredNumber(low, high, bool(parameter.log_scale), step, integer)
    if isinstance(parameter, FixedParameter):
        value: Any = parameter.value
        if _is_number(value):
            return DeclaredNumber(value, value, integer=isinstance(value, int))
        return DeclaredChoice((as_choice(value),))
    if not isinstance(parameter, ChoiceParameter):
        return None
    values: list[Any] = list(parameter.values)
    if parameter.is_ordered and all(map(_is_number, values)):
        step = None if parameter.log_scale else _step_of(sorted(values))
        step = step or (1 if integer else None)
        return DeclaredNumber(min(values), max(values), bool(parameter.log_scale), step, integer)
    return DeclaredChoice(tuple(as_choice(value) for value in values))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _step_of(values: list[float]) -> float | None:
    """The distance between neighbours, if it is always the same."""
    gaps = [high - low for low, high in zip(values, values[1:], strict=False)]
    if not gaps or max(gaps) - min(gaps) > _SLACK * max(gaps):
        return None
    return gaps[0]
