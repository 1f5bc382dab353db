"""Names, lists and values of any kind, short enough for one line."""

from collections.abc import Sequence
from typing import Any

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
