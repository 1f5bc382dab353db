"""What an optimiser was told, and its file: a run survives a restart in Python, too."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.data import as_native, direction_sign
from metaprior.files import as_path, parse_json, read_file, replace_file, require_seal, sealed
from metaprior.words import cut, shortened

# Version 1 had no checksum.
FORMAT, FORMAT_VERSION = "metaprior-run", 2
OBSERVED, FAILED, STOPPED = "observed", "failed", "stopped"
_LARGEST = 10**300
# What is raised for JSON values of the wrong type, size or depth.
_UNSUITABLE = (
    *(ArithmeticError, AttributeError, LookupError),
    *(RecursionError, TypeError, ValueError),
)


class Told(NamedTuple):
    """One answer, in the order of the answers.

    - `value`: `None` for a failure; of a query that was stopped early, a limit, if it is known.
    """

    point: dict[str, Any]
    value: float | None
    stopped: bool

    @property
    def state(self) -> str:
        return STOPPED if self.stopped else FAILED if self.value is None else OBSERVED

    @classmethod
    def of(cls, point: dict[str, Any], number: float, stopped: bool) -> "Told":
        """The record of what was told; `number`: NaN for none."""
        return cls(dict(point), None if math.isnan(number) else number, stopped)


class SavedRun(NamedTuple):
    """A run as its file holds it.

    - `space`, `direction`: of the optimiser that wrote it, as JSON: those of the next one must be
      the same.
    - `told`: all answers; `pending`: queries under way, encoded.
    - `seed`, `num_asked`: where the random numbers stand.
    - `features`: features of the task.
    """

    space: dict[str, Any]
    direction: str
    told: list[Told]
    pending: list[list[float]]
    seed: int
    num_asked: int
    features: dict[str, Any]

    def write(self, path: str | Path) -> Path:
        """Write the run to `path`, all or nothing."""
        path = as_path(path)
        told = [
            {"point": _plain(each.point), "value": each.value, "stopped": each.stopped}
            for each in self.told
        ]
        fields = {**self._asdict(), "told": told, "features": _plain(self.features)}
        data = {"format": FORMAT, "format_version": FORMAT_VERSION, **fields}
        replace_file(path, (json.dumps(sealed(data), indent=2, allow_nan=False) + "\n").encode())
        return path

    @classmethod
    def read(cls, path: str | Path) -> "SavedRun":
        """The run in the file at `path`."""
        path = as_path(path)
        try:
            with damage_of_run(path):
                return cls._from_json(parse_json(read_file(path)))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"The run {path} cannot be read: {reason}; check it.") from None

    @classmethod
    def _from_json(cls, data: Any) -> "SavedRun":
        if data["format"] != FORMAT or data["format_version"] not in (1, FORMAT_VERSION):
            raise ValueError(
                f"its format is {shortened(data['format'])} {shortened(data['format_version'])}"
            )
        if data["format_version"] != 1:
            require_seal(data)
        fields = {name: data[name] for name in cls._fields}
        direction_sign(data["direction"])
        told = [Told(dict(t["point"]), t["value"], _switch(t["stopped"])) for t in data["told"]]
        pending = [[float(number) for number in row] for row in data["pending"]]
        if not all(0.0 <= number <= 1.0 for row in pending for number in row):
            raise ValueError("a pending query is not inside the space")
        for name in ("seed", "num_asked"):
            if type(data[name]) is not int or not 0 <= data[name] < _LARGEST:
                raise ValueError(f"`{name}` is {shortened(data[name])}")
        features = dict(data["features"])
        return cls(**{**fields, "told": told, "pending": pending, "features": features})


@contextmanager
def damage_of_run(path: str | Path) -> Iterator[None]:
    """What goes wrong inside says that the file at `path` is damaged."""
    try:
        yield
    except OSError:
        raise
    except _UNSUITABLE as error:
        problem = cut(f"{type(error).__name__}: {error}", 300).removesuffix(".")
        raise ValueError(
            f"{path} is no run that Optimizer.save wrote, or it is damaged ({problem}); "
            "restore it from a copy."
        ) from None


def _plain(point: dict[str, Any]) -> dict[str, Any]:
    return {name: as_native(value) for name, value in point.items()}


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{shortened(value)} is not true or false")
    return value
