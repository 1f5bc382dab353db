"""Trials whose parameters are undeclared text: what they hold follows from the text.

A parameter becomes what `metaprior.data.csv` makes of a column with the same cells. Where a space
is given, its dimensions decide how the text is read.
"""

from typing import Any

from metaprior.adapters.histories._declared import Declared, DeclaredChoice, DeclaredNumber
from metaprior.adapters.histories._trials import StudyTrials, UsableTrial
from metaprior.data import Categorical, Dimension, Integer, Space, complaint
from metaprior.data.csv import infer_dimension, number
from metaprior.words import listed

# What stands where a number is missing.
_MISSING = {"", "none", "null", "nan"}


def declared_by_values(
    studies: list[StudyTrials], space: Space | None
) -> tuple[list[StudyTrials], list[str]]:
    """The studies with values in place of text, and sentences on parameters left out.

    - `studies`: the parameters of their trials are text, and declared as nothing.
    """
    trials = [trial for study in studies if not study.reason for trial in study.trials]
    names = list(dict.fromkeys(name for trial in trials for name in trial.params))
    known = {} if space is None else dict(zip(space.names, space.dimensions, strict=True))
    readings: dict[str, dict[str, tuple[Any, Declared]]] = {}
    left_out = []
    for name in names:
        cells = [trial.params[name] for trial in trials if name in trial.params]
        cells = _without_gaps(cells)
        if not cells:
            continue
        try:
            dimension = known.get(name) or infer_dimension(cells, complaint("", name))
        except ValueError:
            left_out.append(repr(name))
            continue
        readings[name] = {cell: _reading(cell, dimension) for cell in set(cells)}
    told = (
        f"Neither numbers nor a few choices, and left out of the space: {listed(left_out, 5)}."
        if left_out
        else ""
    )
    read = [study._replace(trials=[_read(t, readings) for t in study.trials]) for study in studies]
    return read, [told] if told else []


def _without_gaps(cells: list[str]) -> list[str]:
    """The cells without those that say that a number is missing."""
    filled = [cell for cell in cells if cell.lower() not in _MISSING]
    return filled if any(number(cell) is not None for cell in filled) else [c for c in cells if c]


def _reading(cell: str, dimension: Dimension | None) -> tuple[Any, Declared]:
    """The value that a cell holds, and what its parameter was declared to be.

    Of a parameter that never changes the dimension is `None`.
    """
    if isinstance(dimension, Categorical):
        of_text = {_as_text(choice): choice for choice in dimension.choices}
        return of_text.get(_as_text(cell), cell), DeclaredChoice(dimension.choices)
    value = number(cell)
    if value is None:
        return cell, DeclaredChoice((cell,))
    if dimension is None:
        return value, DeclaredNumber(value, value)
    integer = isinstance(dimension, Integer)
    value = int(value) if integer and value == int(value) else float(value)
    step = dimension.step or (1 if integer else None)
    return value, DeclaredNumber(dimension.low, dimension.high, dimension.log, step, integer)


def _as_text(choice: Any) -> str:
    """Choices that are written alike are alike: `True` and `true`."""
    text = str(choice)
    return text.lower() if text.lower() in ("true", "false") else text


def _read(trial: UsableTrial, readings: dict[str, dict[str, tuple[Any, Declared]]]) -> UsableTrial:
    held = {
        name: readings[name][cell]
        for name, cell in trial.params.items()
        if cell in readings.get(name, {})
    }
    return trial._replace(
        params={name: value for name, (value, _) in held.items()},
        declared={name: declared for name, (_, declared) in held.items()},
    )
