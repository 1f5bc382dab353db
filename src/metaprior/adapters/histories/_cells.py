"""Logged values as the cells of a table: text, nested values by their path."""

import json
import math
from collections.abc import Mapping
from typing import Any

from metaprior.data import as_native


def flat(values: Mapping[str, Any], separator: str) -> dict[str, Any]:
    """Nested values by the path to them: `{"a": {"b": 1}}` is `{"a.b": 1}` with a dot."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            inner = flat(value, separator)
            found |= {f"{name}{separator}{rest}": each for rest, each in inner.items()}
        else:
            found[str(name)] = value
    return found


def as_cell(value: Any) -> str:
    """A value as a CSV file has it; nothing and NaN are empty."""
    value = as_native(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return json.dumps(value, default=str)
    return str(value).strip()
