"""A job of a study: a JSON specification, the function that runs it, and a name made of both.

The name is a hash of everything that decides the result, so that a job that has finished is known
by its file, on any machine, and a job that differs in one number is another job.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Shaped

# Part of every name: records of another format are records of other jobs. Version 2 moved the
# functions that run jobs to `metaprior.lab.studies` and renamed a method.
FORMAT_VERSION = 2
NAME_DIGITS = 16
KIND = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")

Columns = dict[str, Shaped[np.ndarray, " rows"]]


@dataclass(frozen=True)
class Job:
    """One piece of a study; two jobs are equal when their names are.

    - `kind`: the function that runs the job, as `"module:function"`, importable wherever jobs
      run. It is part of the name: give the path that will still be there next year.
    - `specification`: its only argument: what JSON can hold, and nothing else.
    - `text`: both, and the format version, as canonical JSON: what the name is the hash of.
    """

    kind: str = field(compare=False)
    specification: dict[str, Any] = field(compare=False)
    text: str = field(init=False, repr=False)

    def __post_init__(self):
        if not KIND.fullmatch(self.kind):
            raise ValueError(
                f"The kind of a job is 'module:function', got {self.kind!r}; name a function at "
                "the top of a module that workers can import."
            )
        if not isinstance(self.specification, dict):
            kind = type(self.specification).__name__
            raise TypeError(f"The specification of a job is a dict, got a {kind}; wrap it in one.")
        whole = {
            "format": FORMAT_VERSION,
            "kind": self.kind,
            "specification": self.specification,
        }
        object.__setattr__(self, "text", canonical_json(whole))
        # A copy: later changes to the caller's original must not separate a job from its name.
        object.__setattr__(self, "specification", self._fresh_specification())

    @staticmethod
    def from_text(text: str) -> "Job":
        """The job whose `text` this is."""
        whole = json.loads(text)
        if not isinstance(whole, dict) or not {"format", "kind", "specification"} <= whole.keys():
            raise ValueError("its description is not that of a job")
        if whole["format"] != FORMAT_VERSION:
            raise ValueError(
                f"it has format version {whole['format']!r}, and this metaprior reads version "
                f"{FORMAT_VERSION}"
            )
        return Job(whole["kind"], whole["specification"])

    @property
    def name(self) -> str:
        """16 hex digits, the same on every machine."""
        return sha256(self.text.encode()).hexdigest()[:NAME_DIGITS]

    def run(self) -> Columns:
        """Call the function of the job, here and now."""
        returned = _function_of(self.kind)(self._fresh_specification())
        return _columns(returned, self.kind)

    def _fresh_specification(self) -> dict[str, Any]:
        return json.loads(self.text)["specification"]


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: keys in order, no spaces, floats exact, ASCII only.

    Numbers keep their type: 1 and 1.0 are different specifications.
    """
    _refuse_other_than_json(value, "")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _refuse_other_than_json(value: Any, where: str) -> None:
    """`json` turns the key 1 into "1" and NaN into no JSON at all; neither may enter a name."""
    place = where or "The value"
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(
                    f"{place} has the key {key!r} of type {type(key).__name__}; "
                    "JSON has strings for keys: write it as one."
                )
            _refuse_other_than_json(item, f"{where}.{key}" if where else key)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            _refuse_other_than_json(item, f"{place}[{i}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{place} is {value}, which JSON cannot hold; use null or a number.")
    elif not (value is None or isinstance(value, bool | int | str)):
        raise TypeError(
            f"{place} is of type {type(value).__name__}, which JSON cannot hold; use numbers, "
            "strings, booleans, null, lists and dicts."
        )


def _function_of(kind: str):
    module_name, function_name = kind.split(":")
    try:
        return getattr(import_module(module_name), function_name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise ValueError(
            f"There is no {kind} to run here ({error}); install or import what defines it wherever "
            "jobs run."
        ) from error


def _columns(returned: Any, kind: str) -> Columns:
    """What a job returned, as NumPy columns of one length."""
    if not isinstance(returned, Mapping) or not returned:
        raise TypeError(
            f"{kind} returned {type(returned).__name__}, not columns; return a dict with at least "
            "one array, by name."
        )
    columns = {str(name): np.asarray(column) for name, column in returned.items()}
    shapes = {name: column.shape for name, column in columns.items()}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        found = ", ".join(f"{name}: {list(shape)}" for name, shape in shapes.items())
        raise ValueError(
            f"{kind} returned columns of shapes {found}; return one-dimensional arrays of one "
            "length."
        )
    return columns
