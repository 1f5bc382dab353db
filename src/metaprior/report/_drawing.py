"""Figures as SVG: one small panel each, drawn by matplotlib, coloured by the page.

A figure is as wide as a phone and scales with its column. Colours become variables of the style
sheet, so light, dark and print each have their own; text stays text, in the page's font.
"""

import re
import warnings
from collections.abc import Callable
from io import StringIO
from typing import Any

from metaprior.plots import FAINT, INK, PALETTE
from metaprior.report._html import Html, escaped

LEARNED, BASELINE, RECORDED = PALETTE
PAPER = "#ffffff"
VARIABLES = {
    LEARNED: "learned",
    BASELINE: "baseline",
    RECORDED: "recorded",
    INK: "ink",
    FAINT: "faint",
    PAPER: "paper",
}

# In pixels of a phone's page; matplotlib's SVG has 72 pixels per inch.
WIDTH, HEIGHT = 312, 222
PER_INCH = 72

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "font.family": "sans-serif",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.limits": (-4, 5),
    "axes.formatter.use_mathtext": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    # The user's names may contain dollars and backslashes.
    "text.parse_math": False,
    "text.usetex": False,
    "svg.fonttype": "none",
    # The same prior gives the same page.
    "svg.hashsalt": "metaprior",
}

_REFERENCE = re.compile(r"(?:url\(#|href=\"#)([^)\"]+)")
_TAG = re.compile(r"<[^>]+>")
_FONT = re.compile(r"font:[^;]*?([\d.]+px)[^;]*|font-family:[^;]*;?")


def drawn(draw: Callable[[Any], None], *, ident: str, label: str, height: int = HEIGHT) -> Html:
    """The figure that `draw` makes of empty axes, as SVG for the page.

    - `ident`: unique among the figures of the page.
    - `label`: what the figure shows, for screen readers.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    buffer = StringIO()
    with rc_context(STYLE), warnings.catch_warnings():
        # Glyphs that matplotlib's font lacks are drawn by the browser, which has other fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        layout = ConstrainedLayoutEngine(w_pad=0.05, h_pad=0.05)
        figure = Figure((WIDTH / PER_INCH, height / PER_INCH), dpi=PER_INCH, layout=layout)
        ax = figure.subplots()
        figure.patch.set_visible(False)
        ax.patch.set_visible(False)
        draw(ax)
        figure.savefig(buffer, format="svg")
    return _inline(buffer.getvalue(), ident, label, height)


def _inline(svg: str, ident: str, label: str, height: int) -> Html:
    """The drawing without the parts of a stand-alone file: prologue, metadata, style, ids."""
    content = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    content = re.sub(r"<metadata>.*?</metadata>", "", content, flags=re.DOTALL)
    content = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", content, flags=re.DOTALL)
    content = re.sub(r"<!--.*?-->", "", content, flags=re.DOTALL)
    used = {ident for tag in _TAG.findall(content) for ident in _REFERENCE.findall(tag)}
    content = _TAG.sub(lambda found: _adopted(found[0], ident, used), content)
    content = re.sub(r">\s+<", "><", content).strip()
    return Html(
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escaped(label)}">'
        f"{content}</svg>"
    )


def _adopted(tag: str, ident: str, used: set[str]) -> str:
    """One tag with ids unique to this figure; only tags are changed, since text may look like one.

    - `used`: the ids that are referenced; the others are removed.
    """

    def renamed(found: re.Match[str]) -> str:
        return f' id="{ident}-{found[1]}"' if found[1] in used else ""

    tag = re.sub(r'\sid="([^"]*)"', renamed, tag)
    tag = _REFERENCE.sub(lambda found: found[0].replace("#", f"#{ident}-", 1), tag)
    tag = tag.replace("xlink:href=", "href=")
    return re.sub(r'style="([^"]*)"', lambda found: f'style="{_restyled(found[1])}"', tag)


def _restyled(style: str) -> str:
    """A style attribute with variables for colours and with the page's font."""
    style = _FONT.sub(lambda found: f"font-size: {found[1]}" if found[1] else "", style)
    for colour, variable in VARIABLES.items():
        style = re.sub(colour, f"var(--{variable})", style, flags=re.IGNORECASE)
    return style.strip(" ;")
