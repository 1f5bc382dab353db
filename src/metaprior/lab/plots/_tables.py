"""Tables of estimates, as Markdown to read and as LaTeX to print (with the package booktabs)."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

MISSING = "–"
# Outside these, numbers are written with a power of ten.
SMALLEST_FIXED, LARGEST_FIXED = 1e-3, 1e5
MOST_DECIMALS = 4


class Estimate(NamedTuple):
    """A mean over `count` samples, and the half-width of its 95 % interval.

    The half-width is infinite where one sample says nothing about it.
    """

    mean: float
    half_width: float
    count: int


class Bold(NamedTuple):
    """A cell that stands out."""

    cell: str | Estimate


Cell = str | Estimate | Bold


class ResultTable(NamedTuple):
    """A title, a header, rows of cells of which the first names the row, and a note below.

    `label` is what LaTeX refers to. With `decimals`, all numbers have so many; without, each has
    as many as its interval deserves.
    """

    title: str
    label: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    decimals: int | None = None


class _Digits(NamedTuple):
    """An estimate in digits, both numbers to be multiplied by a power of ten."""

    mean: str
    half_width: str
    exponent: int


def markdown(table: ResultTable) -> str:
    """The table in the Markdown of GitHub, under its title."""
    rows = [[_in_markdown(cell, table.decimals) for cell in row] for row in table.rows]
    marks = [":--", *(["--:"] * (len(table.header) - 1))]
    body = "\n".join(f"| {' | '.join(row)} |" for row in (table.header, marks, *rows))
    parts = [f"**{table.title}**", body, table.note]
    return "\n\n".join(part for part in parts if part) + "\n"


def latex(table: ResultTable) -> str:
    """The table as a float across both columns."""
    cells = [[_in_latex(cell, table.decimals) for cell in row] for row in table.rows]
    lines = [
        r"\begin{table*}",
        r"\centering\scriptsize",
        rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
        r"\toprule",
        " & ".join(_escaped(text) for text in table.header) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in cells),
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{_escaped(' '.join(filter(None, [table.title + '.', table.note])))}}}",
        rf"\label{{tab:{table.label}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def estimate_text(estimate: Estimate, decimals: int | None = None) -> str:
    """An estimate without markup: `0.0953 ± 0.0062`, `(1.30 ± 0.21)e-5`."""
    digits = _digits(estimate, decimals)
    if digits is None:
        return MISSING
    text = digits.mean + (f" ± {digits.half_width}" if digits.half_width else "")
    if not digits.exponent:
        return text
    return f"({text})e{digits.exponent}" if digits.half_width else f"{text}e{digits.exponent}"


def _in_markdown(cell: Cell, decimals: int | None) -> str:
    if isinstance(cell, Bold):
        return f"**{_in_markdown(cell.cell, decimals)}**"
    return estimate_text(cell, decimals) if isinstance(cell, Estimate) else cell.replace("|", r"\|")


def _in_latex(cell: Cell, decimals: int | None) -> str:
    if isinstance(cell, Bold):
        inner = _in_latex(cell.cell, decimals)
        return rf"$\mathbf{{{inner[1:-1]}}}$" if inner.startswith("$") else rf"\textbf{{{inner}}}"
    if isinstance(cell, str):
        return _escaped(cell)
    digits = _digits(cell, decimals)
    if digits is None:
        return "--"
    text = digits.mean + (rf" \pm {digits.half_width}" if digits.half_width else "")
    if not digits.exponent:
        return f"${text}$"
    inside = f"({text})" if digits.half_width else text
    return rf"${inside} \cdot 10^{{{digits.exponent}}}$"


def _digits(estimate: Estimate, decimals: int | None) -> _Digits | None:
    """Unless told, two significant digits of the half-width decide how many the mean has."""
    mean, half_width, _ = estimate
    if not math.isfinite(mean):
        return None
    known = math.isfinite(half_width)
    if decimals is not None:
        return _Digits(*_fixed(mean, half_width, decimals), 0)
    size = max(abs(mean), half_width if known else 0.0)
    fixed_point = size == 0 or SMALLEST_FIXED <= size < LARGEST_FIXED
    exponent = 0 if fixed_point else _magnitude(size)
    mean, half_width = mean / 10.0**exponent, half_width / 10.0**exponent
    if known and half_width > 0:
        decimals = 1 - _magnitude(half_width)
    else:
        decimals = 2 - _magnitude(mean) if mean else 0
    decimals = min(max(decimals, 0), MOST_DECIMALS)
    return _Digits(*_fixed(mean, half_width, decimals), exponent)


def _fixed(mean: float, half_width: float, decimals: int) -> tuple[str, str]:
    known = math.isfinite(half_width)
    return f"{mean:.{decimals}f}", f"{half_width:.{decimals}f}" if known else ""


def _magnitude(number: float) -> int:
    return math.floor(math.log10(abs(number)))


def _escaped(text: str) -> str:
    """Text with what LaTeX takes for commands escaped."""
    text = re.sub(r"([&%$#_{}])", r"\\\1", text)
    for character, command in (("±", r"$\pm$"), ("–", "--"), ("“", "``"), ("”", "''")):
        text = text.replace(character, command)
    return text
