"""Wraps the prose of Markdown files at 100 columns: `python tools/wrap_docs.py FILES`.

Headings, tables, code, formulas on their own lines, HTML and mkdocstrings directives stay as they
are. Inline code, inline formulas and the targets of links are never broken.
"""

import re
import sys
import textwrap
from pathlib import Path

COLUMNS = 100
# A line that is not prose: heading, table, directive, HTML, a block's options, a quoted picture.
NOT_PROSE = re.compile(r"#|\||:::|<|!\[|options:|members:|show_root|\\\[|\\\]|\$\$|---")
ITEM = re.compile(r"(\s*)([-*]|\d+\.) ")
WHOLE = re.compile(r"`[^`]+`|\\\(.+?\\\)|\]\([^)]*\)")
# A word that would begin a list or a heading if it came first in a line.
NOT_FIRST = re.compile(r" (?=(?:[-+*#]|\d+\.)(?: |$))")
GLUE = "\0"


def wrapped(text: str) -> str:
    """`text` with every paragraph and list item wrapped."""
    lines: list[str] = []
    paragraph: list[str] = []
    fenced = in_formula = False

    def flush() -> None:
        if paragraph:
            lines.extend(_fill(paragraph))
            paragraph.clear()

    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced = not fenced
        if stripped.startswith(("\\[", "$$")) and not stripped.endswith(("\\]", "$$")):
            in_formula = True
        if fenced or in_formula or not stripped or NOT_PROSE.match(stripped) or stripped == "```":
            flush()
            lines.append(line)
            if in_formula and stripped.endswith(("\\]", "$$")):
                in_formula = False
            continue
        indent = len(line) - len(line.lstrip())
        if ITEM.match(line) or (paragraph and indent < _hanging(paragraph[0])):
            flush()
        paragraph.append(line)
    flush()
    return "\n".join(lines) + "\n"


def _hanging(first: str) -> int:
    """The indentation of the lines that continue a paragraph."""
    item = ITEM.match(first)
    return item.end() if item else len(first) - len(first.lstrip())


def _fill(paragraph: list[str]) -> list[str]:
    first = paragraph[0]
    hanging = _hanging(first)
    start, words = first[:hanging], [first[hanging:], *(line.strip() for line in paragraph[1:])]
    text = " ".join(words)
    text = WHOLE.sub(lambda found: found[0].replace(" ", GLUE), text)
    text = NOT_FIRST.sub(GLUE, text)
    return [
        line.replace(GLUE, " ")
        for line in textwrap.wrap(
            text,
            COLUMNS,
            initial_indent=start,
            subsequent_indent=" " * hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        path.write_text(wrapped(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
