"""A method's settings as JSON has them, and back; a method may wrap another one."""

import dataclasses
from typing import Any, get_args, get_type_hints

from metaprior.gp import AbstractKernel, kernel_of, kernel_settings
from metaprior.methods._method import AbstractMethod
from metaprior.methods._registry import method_class
from metaprior.processes import AbstractProcess, DescribedProcess, describe

# A guard around an ensemble of a method; deeper nesting was not written by metaprior.
DEEPEST = 4

# A float may come back from JSON as an int, but a number never as text.
JSON_TYPES: dict[Any, tuple[type, ...]] = {int: (int,), float: (int, float), bool: (bool,)}


def settings_of(method: AbstractMethod) -> dict[str, Any]:
    """The settings of `method` by name; of a process, only what it was."""
    return {field.name: _plain(getattr(method, field.name)) for field in dataclasses.fields(method)}


def _plain(value: Any) -> Any:
    if isinstance(value, AbstractProcess):
        return {"process": describe(value)}
    if isinstance(value, AbstractKernel):
        return kernel_settings(value)
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
    # Annotations are text in a module that postpones their evaluation.
    types = get_type_hints(method)
    for field in dataclasses.fields(method):
        value, kind = settings.get(field.name, field.default), types[field.name]
        if kind in JSON_TYPES and type(value) not in JSON_TYPES[kind]:
            what = "true or false" if kind is bool else "a number"
            raise ValueError(f"{field.name} of {name} is {value!r}, which is not {what}")
        if field.name in settings and _is_method(kind):
            if not isinstance(value, dict) or "name" not in value:
                raise ValueError(f"{field.name} of {name} is {value!r}, which is not a method")
            settings[field.name] = method_of(value, depth=depth + 1)
        elif AbstractKernel in get_args(kind) and value is not None:
            settings[field.name] = kernel_of(value)
        elif isinstance(value, dict) or (value is not None and AbstractProcess in get_args(kind)):
            if not isinstance(value, dict) or "process" not in value:
                raise ValueError(f"{field.name} of {name} is {value!r}, which is not a process")
            settings[field.name] = DescribedProcess(str(value["process"]))
    return method(**settings)


def _is_method(kind: Any) -> bool:
    """Whether a setting of this type is itself a method."""
    return isinstance(kind, type) and issubclass(kind, AbstractMethod)
