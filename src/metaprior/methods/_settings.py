"""A method's settings as JSON has them, and back; a method may wrap another one."""

import dataclasses
from typing import Any

from metaprior.methods._method import AbstractMethod
from metaprior.methods._registry import method_class
from metaprior.processes import AbstractProcess, DescribedProcess, describe

# A guard around an ensemble of a method; what is nested deeper was not written by metaprior.
DEEPEST = 4


def settings_of(method: AbstractMethod) -> dict[str, Any]:
    """The settings of `method` by name; of a process, only what it was."""
    return {field.name: _plain(getattr(method, field.name)) for field in dataclasses.fields(method)}


def _plain(value: Any) -> Any:
    if isinstance(value, AbstractProcess):
        return {"process": describe(value)}
    if isinstance(value, AbstractMethod):
        return {"name": type(value).__name__, **settings_of(value)}
    return value


def method_of(described: dict[str, Any], *, depth: int = 1) -> AbstractMethod:
    """The method with the settings `described`, its name among them."""
    settings = dict(described)
    name = settings.pop("name")
    method = method_class(name)
    if depth > DEEPEST:
        raise ValueError(f"methods are nested more than {DEEPEST} deep")
    for field in dataclasses.fields(method):
        value = settings.get(field.name, field.default)
        # JSON writes a float without decimals as it is, but never a number as text.
        if field.type in (int, float) and type(value) not in (int, field.type):
            raise ValueError(f"{field.name} of {name} is {value!r}, which is not a number")
        if field.name in settings and _is_method(field):
            if not isinstance(value, dict) or "name" not in value:
                raise ValueError(f"{field.name} of {name} is {value!r}, which is not a method")
            settings[field.name] = method_of(value, depth=depth + 1)
        elif isinstance(value, dict):
            settings[field.name] = DescribedProcess(str(value["process"]))
    return method(**settings)


def _is_method(field: dataclasses.Field) -> bool:
    """Whether the setting is itself a method."""
    return isinstance(field.type, type) and issubclass(field.type, AbstractMethod)
