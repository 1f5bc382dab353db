"""What the value of a run is called, and its unit: as the user writes them."""

import re
from dataclasses import dataclass
from typing import Any

from metaprior.words import shortened

# What a column is called where nothing else is known.
VALUE = "value"
# Square brackets, or round ones after a blank: `f(x)` is in no unit.
_IN_BRACKETS = re.compile(r"(?:\[([^\[\]]{1,16})\]|\s\(([^()]{1,16})\))\s*$")
_SUFFIXES = {"pct": "%", "percent": "%"}


@dataclass(frozen=True)
class Quantity:
    """The value that a run measures.

    - `name`: of its column, as the user's files have it.
    - `unit`: of its numbers; empty if it is not known, or has none.
    """

    name: str = VALUE
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("The value has no name; give one, such as 'yield'.")

    @classmethod
    def of_column(cls, name: str, unit: str | None = None) -> "Quantity":
        """The quantity in a column of this name, such as `yield_pct` or `yield [%]`.

        - `unit`: if the name does not say it.
        """
        if unit is not None:
            return cls(name, unit.strip())
        suffix = name.lower().rpartition("_")[2]
        return cls(name, _unit_in(name) or _SUFFIXES.get(suffix, ""))

    @property
    def label(self) -> str:
        """Name and unit, for an axis: `yield_pct in %`, `yield [%]`."""
        is_said = self.unit in ("", _unit_in(self.name))
        return self.name if is_said else f"{self.name} in {self.unit}"

    def with_unit(self, number: str) -> str:
        """A number in words with the unit behind it: `81.2 %`."""
        return f"{number} {self.unit}" if self.unit else number

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "unit": self.unit}

    @classmethod
    def from_json(cls, data: Any) -> "Quantity":
        """The quantity that `to_json` wrote; the nameless one of files that say nothing of it."""
        if data is None:
            return cls()
        name, unit = data["name"], data["unit"]
        if not (isinstance(name, str) and isinstance(unit, str)):
            raise ValueError(f"'quantity' is {shortened(data)} where a name and a unit should be")
        return cls(name, unit)


def _unit_in(name: str) -> str:
    """The unit at the end of a name in brackets; empty if there is none."""
    found = _IN_BRACKETS.search(name)
    return (found[1] or found[2]).strip() if found else ""
