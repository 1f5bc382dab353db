"""A space as a TOML file that people read and edit: one table for each dimension, in order.

[lr]
kind = "real"
low = 0.0001
high = 0.1
log = true

[act]
kind = "categorical"
choices = ["relu", "tanh"]

[leak]
kind = "real"
low = 0.0
high = 0.3
step = 0.05
when = { act = ["relu"] }
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from metaprior.data import Categorical, Dimension, Integer, Real, Space
from metaprior.files import read_file, replace_file
from metaprior.words import cut, shortened

_KINDS = {"real": Real, "integer": Integer, "categorical": Categorical}
_NEEDED = {"real": ("low", "high"), "integer": ("low", "high"), "categorical": ("choices",)}
_OPTIONAL = {
    "real": ("log", "step", "when"),
    "integer": ("log", "step", "when"),
    "categorical": ("when", "one_hot"),
}
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def read_space(path: str | Path) -> Space:
    """The space that a TOML file describes."""
    path = Path(path)
    try:
        tables = tomllib.loads(read_file(path).decode("utf-8-sig"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"The space file {path} cannot be read: {reason}; check it.") from None
    except RecursionError:
        raise ValueError(
            f"The space file {path} is nested too deeply to be read; repair it."
        ) from None
    except ValueError as error:  # of TOML, of UTF-8, or of a number with very many digits
        problem = cut(str(error), 300).removesuffix(".")
        raise ValueError(
            f"The space file {path} is not valid TOML ({problem}); repair it."
        ) from None
    if not tables:
        raise ValueError(f"The space file {path} has no dimension; add one, such as [lr].")
    dimensions = {name: _dimension(path, name, table) for name, table in tables.items()}
    try:
        return Space(**dimensions)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def space_as_toml(space: Space) -> str:
    """The text that `read_space` reads an equal space from."""
    return "\n".join(
        f"[{_key(name)}]\n{_fields(dimension)}"
        for name, dimension in zip(space.names, space.dimensions, strict=True)
    )


def write_space(space: Space, path: str | Path) -> Path:
    """Write `space` to a TOML file."""
    path = Path(path)
    replace_file(path, space_as_toml(space).encode())
    return path


def _dimension(path: Path, name: str, table: Any) -> Dimension:
    where = f"{path}, [{_key(name)}]"
    if not isinstance(table, dict):
        raise ValueError(
            f"{path}: {_key(name)} = {shortened(table)} stands outside of a dimension; put it "
            "under the [name] of one."
        )
    nested = [key for key, value in table.items() if isinstance(value, dict) and key != "when"]
    if nested and "kind" not in table:
        raise ValueError(
            f"{where} holds the table {nested[0]!r}; write a name with a dot in quotes: "
            f'["{name}.{nested[0]}"].'
        )
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        received = shortened(kind) if "kind" in table else "nothing"
        raise ValueError(
            f"{where}: the kind must be one of {_listed(_KINDS)}, received {received}; set it."
        )
    missing = [key for key in _NEEDED[kind] if key not in table]
    if missing:
        raise ValueError(f"{where}: a dimension of kind {kind!r} needs {_listed(missing)}; add it.")
    unknown = [key for key in table if key not in ("kind", *_NEEDED[kind], *_OPTIONAL[kind])]
    if unknown:
        known = _listed((*_NEEDED[kind], *_OPTIONAL[kind]))
        raise ValueError(
            f"{where}: a dimension of kind {kind!r} has no {unknown[0]!r}, only {known}; remove it."
        )
    try:
        return _KINDS[kind](**{key: value for key, value in table.items() if key != "kind"})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _fields(dimension: Dimension) -> str:
    described = dimension.to_json()
    fields = {"kind": described.pop("type"), **described}
    if fields.get("log") is False:  # as in Python, where it is the default
        del fields["log"]
    if isinstance(dimension, Categorical):
        fields.pop("one_hot", None)
        if dimension.asks_one_hot:
            fields["one_hot"] = True
    return "".join(f"{key} = {_value(value)}\n" for key, value in fields.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # A JSON string is a TOML string, but for one control character that JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
