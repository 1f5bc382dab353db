"""Dimensions as they are written in saved priors."""

from collections.abc import Mapping
from typing import Any

from metaprior.data._dimensions import Categorical, Dimension, Integer, Real
from metaprior.words import shortened

_KINDS = {"real": Real, "integer": Integer, "categorical": Categorical}
_FIELDS = {
    "real": {"low", "high", "log"},
    "integer": {"low", "high", "log"},
    "categorical": {"choices"},
}
# Fields that a dimension need not have: plain ones are written as they always were.
_OPTIONAL = {
    "real": {"step", "when"},
    "integer": {"step", "when"},
    "categorical": {"when", "one_hot"},
}


def dimension_from_json(index: int, entry: Any) -> tuple[str, Dimension]:
    """Name and dimension that entry `index` of a written space describes."""
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(
            f"Entry {index} of the space is {shortened(entry)}; its 'type' must be one of "
            f"{list(_KINDS)}."
        )
    arguments = {key: value for key, value in entry.items() if key not in ("name", "type")}
    name = entry.get("name")
    given = set(arguments) - _OPTIONAL[kind]
    if not isinstance(name, str) or given != _FIELDS[kind]:
        raise ValueError(
            f"Entry {index} of the space is {shortened(entry)}; a dimension of type {kind!r} "
            f"needs a name and exactly {sorted(_FIELDS[kind])}; it may have "
            f"{sorted(_OPTIONAL[kind])}."
        )
    if kind == "categorical":  # older versions know of no codes
        arguments = {"one_hot": True} | arguments
    try:
        return name, _KINDS[kind](**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Entry {index} ({name!r}) of the space is invalid: {error}") from None
