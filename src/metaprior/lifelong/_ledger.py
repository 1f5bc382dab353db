"""The ledger of a lifelong sequence in a folder: one JSON file, always whole."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from metaprior.data import Quantity, Space, direction_sign
from metaprior.files import parse_json, read_file, replace_file, require_seal, sealed
from metaprior.findings import read_record
from metaprior.lifelong._versions import Version
from metaprior.words import cut, shortened

FORMAT = "metaprior-lifelong"
# Version 1 had no checksum.
FORMAT_VERSION = 2
LEDGER = "lifelong.json"


@dataclass(frozen=True)
class Ledger:
    """The state of a sequence.

    - `finished`: names of the runs that are over, in that order.
    - `versions`: all that were learned; `current`: the number of the one in use, if any.
    - `restorations`: how often a version was restored.
    - `quantity`: what the value is called, and its unit.
    """

    space: Space
    direction: str
    finished: tuple[str, ...] = ()
    versions: tuple[Version, ...] = ()
    current: int | None = None
    restorations: int = 0
    quantity: Quantity = Quantity()

    def version(self, number: int) -> Version:
        for version in self.versions:
            if version.number == number:
                return version
        known = ", ".join(str(version.number) for version in self.versions) or "none"
        raise ValueError(f"There is no version {number}; name one of those there are: {known}.")

    @property
    def in_use(self) -> Version | None:
        return None if self.current is None else self.version(self.current)

    @property
    def is_up_to_date(self) -> bool:
        """Whether a version, kept or not, has been learned from all finished runs."""
        return any(set(self.finished) <= set(version.runs) for version in self.versions)

    @property
    def next_number(self) -> int:
        return 1 + max((version.number for version in self.versions), default=0)

    def with_finished(self, names: Sequence[str]) -> "Ledger":
        """With these runs finished, too."""
        new = [name for name in names if name not in self.finished]
        return replace(self, finished=(*self.finished, *new))

    def with_version(self, version: Version, *, since: "Ledger") -> "Ledger":
        """With one more version, which is in use from now on if it is kept.

        - `since`: the ledger when its learning began; what was restored after that stays in use.
        """
        takes_over = version.kept and self.restorations == since.restorations
        current = version.number if takes_over else self.current
        return replace(self, versions=(*self.versions, version), current=current)


def write_ledger(folder: Path, ledger: Ledger) -> None:
    """Write the ledger of the sequence in `folder`, all or nothing."""
    text = json.dumps(sealed(_as_json(ledger)), indent=2, allow_nan=False) + "\n"
    replace_file(folder / LEDGER, text.encode())


def read_ledger(folder: Path) -> Ledger:
    """The ledger of the sequence in `folder`."""
    path = folder / LEDGER
    try:
        data = parse_json(read_file(path))
        found = (data["format"], data["format_version"])
        if found not in ((FORMAT, 1), (FORMAT, FORMAT_VERSION)):
            raise ValueError(f"its format and version are {shortened(found)}")
        if found[1] != 1:
            require_seal(data)
        space, direction = Space.from_json(data["space"]), data["direction"]
        direction_sign(direction)
        versions = tuple(map(Version.from_json, data["versions"]))
        written = read_record(_Written, data, "lifelong")
        quantity = Quantity.from_json(data.get("quantity"))
        known = {"versions": versions, "quantity": quantity}
        return _sound(Ledger(space, direction, **known, **asdict(written)))
    except FileNotFoundError:
        raise ValueError(
            f"There is no lifelong sequence in {folder}: {LEDGER} is missing; begin one by giving "
            "its space (--space space.toml)."
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"{path} cannot be read ({reason}); repair that.") from None
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        problem = cut(f"{type(error).__name__}: {error}", 300).removesuffix(".")
        raise ValueError(f"{path} is damaged ({problem}); restore it from a copy.") from None


@dataclass(frozen=True)
class _Written:
    """The plain fields of a ledger, as JSON has them."""

    finished: tuple[str, ...]
    current: int | None
    restorations: int = 0


def _sound(ledger: Ledger) -> Ledger:
    """The ledger, if what it says fits together."""
    numbers = [version.number for version in ledger.versions]
    if len(set(numbers)) < len(numbers) or min(numbers, default=1) < 1:
        raise ValueError(f"its versions are numbered {shortened(numbers)}")
    if ledger.current is not None and ledger.current not in numbers:
        raise ValueError(f"it uses version {shortened(ledger.current)}, which it does not have")
    return ledger


def _as_json(ledger: Ledger) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "space": ledger.space.to_json(),
        "direction": ledger.direction,
        "quantity": ledger.quantity.to_json(),
        "current": ledger.current,
        "restorations": ledger.restorations,
        "finished": list(ledger.finished),
        "versions": [version.to_json() for version in ledger.versions],
    }
