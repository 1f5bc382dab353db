"""Conditions as a dimension holds them: parents, and the values that they must have."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from metaprior.data._points import as_native
from metaprior.words import shortened

Choice: TypeAlias = str | int | float | bool
# What a dimension holds; people give a dict of lists.
When: TypeAlias = tuple[tuple[str, tuple[Choice, ...]], ...]


def conditions_given(when: Any) -> When:
    """The conditions in `when` as a value; the space checks them against its dimensions."""
    if when is None or when == ():
        return ()
    named: list[tuple[str, Any]] = []
    pairs = when.items() if isinstance(when, Mapping) else when
    for pair in pairs if isinstance(pairs, Iterable) else [None]:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(
                f"`when` is {shortened(when)}; give the values under which the dimension exists, "
                'by the name of another one, such as when={"booster": ["gbtree", "dart"]}.'
            )
        named.append(pair)
    for name, values in named:
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise TypeError(f"`when` has {shortened(values)} for {name!r}; give a list of values.")
    found = tuple((name, tuple(as_native(value) for value in values)) for name, values in named)
    empty = [name for name, values in found if not values]
    if empty:
        raise ValueError(
            f"`when` has no value for {empty[0]!r}, so that the dimension never exists; give one."
        )
    return found


def described(when: Any) -> str:
    """The condition as an argument of a dimension; empty for one that always exists."""
    return f", when={as_dict(when)}" if isinstance(when, tuple) and when else ""


def as_dict(when: When) -> dict[str, list[Choice]]:
    """The condition as people give it."""
    return {name: list(values) for name, values in when}


def as_json(when: Any) -> dict[str, Any]:
    """The condition as a field of a dimension's JSON; none for one that always exists."""
    return {"when": as_dict(when)} if when else {}
