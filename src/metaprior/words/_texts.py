"""Names, lists and values of any kind, short enough for one line."""

import unicodedata
from collections.abc import Sequence
from typing import Any

# Characters that turn the direction of what follows, so that a name reads as another one.
_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
ELLIPSIS = "…"


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 run`, `3 runs`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def cut(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def shortened(value: Any, limit: int = 60) -> str:
    """`repr(value)` on one line of at most `limit` characters, for errors."""
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def listed(names: Sequence[str], limit: int = 3) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def visible(text: str) -> str:
    """`text` with control characters written out, so that they cannot steer a terminal.

    These are the codes that move the cursor, set colours or titles, and those that turn the
    direction of writing; line ends and tabs stay.
    """
    return "".join(_written_out(character) for character in text)


def _written_out(character: str) -> str:
    is_control = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    is_steering = is_control or unicodedata.bidirectional(character) in _TURNS
    return repr(character)[1:-1] if is_steering and character not in "\n\t" else character
