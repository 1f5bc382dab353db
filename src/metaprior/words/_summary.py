"""An object in a few lines: a title and named facts, for a terminal and for a notebook."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from metaprior.words._texts import cut

_WIDTH = 96


class Summary(NamedTuple):
    """What an object is, and the facts about it that fit on a line each."""

    title: str
    facts: Sequence[tuple[str, str]]

    def as_text(self) -> str:
        """One line for the title and one for each fact."""
        lines = [cut(f"{name}: {fact}", _WIDTH - 2) for name, fact in self.facts]
        return "\n  ".join([cut(self.title, _WIDTH), *lines])

    def as_html(self) -> str:
        """A table with one row per fact."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(fact)}</td></tr>" for name, fact in self.facts
        )
        return f"<table><caption>{escape(self.title)}</caption>{rows}</table>"
