"""What an optimiser was told, and its file: a run survives a restart in Python, too."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.data import as_native
from metaprior.files import replace_file
from metaprior.words import shortened

FORMAT, FORMAT_VERSION = "metaprior-run", 1
OBSERVED, FAILED, STOPPED = "observed", "failed", "stopped"


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
    - `features`: what is known of the task.
    """

    space: dict[str, Any]
    direction: str
    told: list[Told]
    pending: list[list[float]]
    seed: int
    num_asked: int
    features: dict[str, Any]

    def write(self, path: Path) -> None:
        """Write the run to `path`, all or nothing."""
        told = [
            {"point": _plain(each.point), "value": each.value, "stopped": each.stopped}
            for each in self.told
        ]
        fields = {**self._asdict(), "told": told, "features": _plain(self.features)}
        data = {"format": FORMAT, "format_version": FORMAT_VERSION, **fields}
        replace_file(path, (json.dumps(data, indent=2, allow_nan=False) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> "SavedRun":
        """The run in the file at `path`."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT or data["format_version"] != FORMAT_VERSION:
                raise ValueError(f"its format is {shortened(data['format'])}")
            fields = {name: data[name] for name in cls._fields}
            told = [Told(dict(t["point"]), t["value"], bool(t["stopped"])) for t in data["told"]]
            pending = [[float(number) for number in row] for row in data["pending"]]
            return cls(**{**fields, "told": told, "pending": pending})
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"The run {path} cannot be read: {reason}; check it.") from None
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            problem = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(".")
            raise ValueError(
                f"{path} is no run that Optimizer.save wrote, or it is damaged ({problem}); "
                "restore it from a copy."
            ) from None


def _plain(point: dict[str, Any]) -> dict[str, Any]:
    return {name: as_native(value) for name, value in point.items()}
