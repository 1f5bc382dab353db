"""A method's settings as JSON has them, and back."""

import dataclasses
from typing import Any

from metaprior.methods import AbstractMethod, known_methods
from metaprior.processes import AbstractProcess, DescribedProcess, describe


def settings_of(method: AbstractMethod) -> dict[str, Any]:
    """The settings of `method` by name; of a process, only what it was."""
    settings = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
    return {
        name: {"process": describe(value)} if isinstance(value, AbstractProcess) else value
        for name, value in settings.items()
    }


def method_of(described: dict[str, Any]) -> AbstractMethod:
    """The method with the settings `described`, its name among them."""
    settings = dict(described)
    name = settings.pop("name")
    known = known_methods()
    if name not in known:
        raise ValueError(f"unknown method {name!r}; known are {sorted(known)}")
    for field in dataclasses.fields(known[name]):
        value = settings.get(field.name, field.default)
        # JSON writes a float without decimals as it is, but never a number as text.
        if field.type in (int, float) and type(value) not in (int, field.type):
            raise ValueError(f"{field.name} of {name} is {value!r}, which is not a number")
        if isinstance(value, dict):
            settings[field.name] = DescribedProcess(str(value["process"]))
    return known[name](**settings)
