"""Damage: to bytes, to text, and to values inside JSON and TOML."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.saved import reseal_json

# What people, programs and attackers write where something else belongs.
TOKENS = (
    *("", " ", "nan", "-inf", "1e400", "1e-320", "-0", "1_000", "0x10", "9" * 400, "-" + "9" * 400),
    *("1,5", "1.2.3", "½", "true", "None", "null", "'", '"', '"""', ",", ";", "\t", "|", "\n"),
    *("\r", "\x00", "\ufeff", "\x1b[31m", "\u202e", "=1+1", "+1", "@x", "-1", "[", "]", "{", "}"),
    *("[" * 5000, '{"a":' * 5000, "failed", "1e308", "300000", "a" * 300_000, "\ud7ff", "#"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 300_000, 10**9, 10**18, -(10**400), 10**400, 0.5, -0.0),
    *(1e308, -1e308, 1e-320, 5e-324, float("nan"), float("inf"), float("-inf")),
    *("", "x", "\x00", "\x1b[2J", "../../etc", "=cmd()", [], {}, [[]], [None], {"a": 1}, {"": {}}),
    *([0] * 50_000, "y" * 100_000, {"name": "FixedGP"}, {"process": "GP"}),
)


def choice(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    """One of the options, as it is: NumPy's own choice would make arrays of them."""
    return options[int(rng.integers(len(options)))]


def damaged_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """The bytes with a bit flipped, a piece lost, repeated or put in; or several of these."""
    for _ in range(int(choice(rng, (1, 1, 1, 3)))):
        at, to = sorted(rng.integers(0, len(data) + 1, 2).tolist())
        to = min(to, at + int(choice(rng, (1, 4, 64, 4096))))
        kind = int(rng.integers(7))
        if kind <= 1 and data:
            bit = int(rng.integers(8 * len(data)))
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << (bit % 8)
            data = bytes(flipped)
        elif kind == 2:
            data = data[:at] + data[to:]
        elif kind == 3:
            data = data[:to] + data[at:]
        elif kind == 4:
            data = data[:at]
        elif kind == 5:
            data = data[:at] + choice(rng, TOKENS).encode("utf-8") + data[to:]
        else:
            data = data[:at] + rng.bytes(int(choice(rng, (1, 2, 8, 100)))) + data[to:]
    return data


def damaged_text(rng: np.random.Generator, text: str) -> bytes:
    """The text with cells, words or lines replaced; sometimes damaged as bytes."""
    if rng.random() < 0.3:
        return damaged_bytes(rng, text.encode())
    lines = text.split("\n")
    for _ in range(int(choice(rng, (1, 1, 1, 3)))):
        row = int(rng.integers(len(lines)))
        kind = int(rng.integers(5))
        if kind == 0:
            lines.pop(row)
            lines = lines or [""]
        elif kind == 1:
            lines.insert(row, lines[int(rng.integers(len(lines)))])
        elif kind == 2:
            lines[row] = choice(rng, TOKENS)
        else:
            separator = choice(rng, (",", ";", " ", "=", "\t"))
            cells = lines[row].split(separator)
            cells[int(rng.integers(len(cells)))] = choice(rng, TOKENS)
            lines[row] = separator.join(cells)
    return "\n".join(lines).encode()


def damaged_value(rng: np.random.Generator, value: Any) -> Any:
    """A copy of a JSON value in which something inside is another thing, gone, or deep."""
    value = copy.deepcopy(value)
    for _ in range(int(rng.integers(1, 3))):
        holder, key = _somewhere(rng, value)
        if holder is None:
            return choice(rng, VALUES)
        kind = int(rng.integers(5))
        if kind == 0:
            del holder[key]
        elif kind == 1:
            inner: Any = holder[key]
            for _ in range(int(choice(rng, (1, 3, 900)))):
                inner = {"base": inner} if rng.random() < 0.5 else [inner]
            holder[key] = inner
        else:
            holder[key] = copy.deepcopy(choice(rng, VALUES))
    return value


def as_text(value: Any) -> str:
    """JSON, even of what is nested so deeply that the writer of the standard library gives up."""
    try:
        return json.dumps(value)
    except RecursionError:
        return '{"a":' * 5000 + "1" + "}" * 5000


def forged_json(path: Path, value: Any) -> bool:
    """Write the value to `path` with a right checksum; False for what cannot be written."""
    try:
        path.write_text(json.dumps(value))
        if isinstance(value, dict):
            reseal_json(path, lambda content: content)
    except (RecursionError, TypeError):  # not even a forger can write this
        return False
    return True


def _somewhere(rng: np.random.Generator, value: Any) -> tuple[Any, Any]:
    """A random place inside: what holds it, and its key."""
    places, todo = [], [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            places += [(each, key) for key in each]
            todo += list(each.values())
        elif isinstance(each, list):
            places += [(each, index) for index in range(min(len(each), 20))]
            todo += each[:20]
    return choice(rng, places) if places else (None, None)
