"""Typed records from JSON: the annotations of a dataclass say what its fields must hold."""

import dataclasses
import math
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from metaprior.words import shortened

# Expected JSON for each plain annotation, and its name in an error.
_PLAIN: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
}


def read_record(kind: Any, data: Any, where: str) -> Any:
    """The dataclass `kind` with the fields in `data`; missing ones keep their defaults.

    - `where`: name of the record in errors.
    """
    if not isinstance(data, dict):
        raise _damaged(where, data, "named values")
    read = {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            read[field.name] = _read(field.type, data[field.name], f"{where}.{field.name}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"'{where}.{field.name}' is missing")
    return kind(**read)


def _read(kind: Any, value: Any, where: str) -> Any:
    """`value` as the annotation `kind` wants it."""
    if isinstance(kind, UnionType):
        [kind] = [each for each in get_args(kind) if each is not NoneType]
        unknown = value is None or (isinstance(value, float) and not math.isfinite(value))
        return None if unknown else _read(kind, value, where)
    if dataclasses.is_dataclass(kind):
        return read_record(kind, value, where)
    if get_origin(kind) is tuple:
        return _read_tuple(get_args(kind), value, where)
    if get_origin(kind) is list:
        return list(_read_tuple((*get_args(kind), ...), value, where))
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise _damaged(where, value, "named values")
        inside = get_args(kind)[1]
        if inside is Any:
            if not _is_finite(value):
                raise _damaged(where, value, "finite numbers")
            return dict(value)
        return {name: _read(inside, each, f"{where}.{name}") for name, each in value.items()}
    types, expected = _PLAIN[kind]
    if not isinstance(value, types) or isinstance(value, bool) is not (kind is bool):
        raise _damaged(where, value, expected)
    try:
        read = kind(value)
    except OverflowError:
        raise _damaged(where, value, expected) from None
    if kind is float and not math.isfinite(read):
        raise _damaged(where, value, expected)
    return read


def _read_tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _damaged(where, value, "a list")
    if kinds[-1] is Ellipsis:
        return tuple(_read(kinds[0], each, where) for each in value)
    if len(value) != len(kinds):
        raise _damaged(where, value, f"a list of {len(kinds)}")
    return tuple(_read(kind, each, where) for kind, each in zip(kinds, value, strict=True))


def _is_finite(value: Any) -> bool:
    """Whether every number in plain JSON is finite."""
    if isinstance(value, dict | list | tuple):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def _damaged(where: str, value: Any, expected: str) -> ValueError:
    return ValueError(f"'{where}' is {shortened(value)} where {expected} should be")
