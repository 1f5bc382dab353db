"""Figures of a study: one panel per environment, one legend for all of them."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from metaprior.lab.plots._estimates import MeanCurve
from metaprior.lab.plots._looks import Look
from metaprior.plots import FAINT, SMALLEST_REGRET

# Inches: one column, one and a half, and the whole width of the page.
WIDTHS = (3.4, 4.9, 7.0)
LABEL_WIDTH = 1.15
NUM_MARKERS = 6


def panels(
    titles: Sequence[str], looks: Mapping[str, Look], *, columns: int = 3, height: float = 1.85
) -> tuple[Figure, list[Axes]]:
    """A figure with a titled panel for each of `titles` and the legend of `looks` below them."""
    columns = min(columns, len(titles))
    rows = math.ceil(len(titles) / columns)
    width = WIDTHS[min(columns, 3) - 1]
    legend_rows = math.ceil(len(looks) / max(2, int(width / LABEL_WIDTH)))
    legend_height = 0.16 * legend_rows + 0.12
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.03, hspace=0.04)
    figure = Figure(figsize=(width, rows * height + legend_height), layout=layout)
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(len(titles))]
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
    handles = [Line2D([], [], label=look.label, **_line(look)) for look in looks.values()]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=math.ceil(len(handles) / legend_rows),
        handlelength=2.8,
        columnspacing=1.4,
    )
    return figure, axes


def label_outer(axes: Sequence[Axes], x: str, y: str, *, columns: int = 3) -> None:
    """Words below the lowest panel of each column and beside the first panel of each row."""
    columns = min(columns, len(axes))
    for i, ax in enumerate(axes):
        if i + columns >= len(axes):
            ax.set_xlabel(x)
        if i % columns == 0:
            ax.set_ylabel(y)


def draw_curves(
    ax: Axes,
    curves: Mapping[str, MeanCurve],
    looks: Mapping[str, Look],
    *,
    floor: float = -np.inf,
) -> None:
    """Means as lines with a few markers, intervals as bands; the first method lies on top.

    Nothing is drawn below `floor`: what is lower is drawn there.
    """
    for place, (name, found) in enumerate(curves.items()):
        look, layer = looks[name], 20 - place
        known = np.isfinite(found.half_width)
        ax.fill_between(
            found.x,
            np.maximum(found.mean - found.half_width, floor),
            np.maximum(found.mean + found.half_width, floor),
            where=known.tolist(),
            color=look.colour,
            alpha=0.13,
            linewidth=0,
            zorder=layer - 0.5,
        )
        every = max(1, len(found.x) // NUM_MARKERS)
        # Markers of different methods beside each other rather than on top of each other.
        ax.plot(
            found.x,
            np.maximum(found.mean, floor),
            markevery=(place * every // max(len(curves), 1), every),
            zorder=layer,
            **_line(look),
        )
    ends = [found.x[[0, -1]] for found in curves.values()]
    low, high = min(x[0] for x in ends), max(x[1] for x in ends)
    ax.set_xlim(low, high if high > low else low + 1)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def draw_log_regret(ax: Axes, curves: Mapping[str, MeanCurve], looks: Mapping[str, Look]) -> None:
    """Curves of regret on a logarithmic axis, which ends a little below the smallest mean.

    Zero, and intervals that reach it, are drawn at the lower end of the axis.
    """
    means = np.concatenate([found.mean for found in curves.values()])
    upper = np.concatenate([_upper(found) for found in curves.values()])
    positive = means[means > SMALLEST_REGRET]
    floor = 0.6 * (positive.min() if len(positive) else SMALLEST_REGRET)
    top = max(1.25 * np.max(upper[np.isfinite(upper)], initial=0.0), 10 * floor)
    draw_curves(ax, curves, looks, floor=floor)
    ax.set_yscale("log")
    ax.set_ylim(floor, top)
    ax.yaxis.set_major_locator(LogLocator(numticks=6))
    ax.yaxis.set_minor_formatter(NullFormatter())


def mark_every(ax: Axes, places: Sequence[float]) -> None:
    """Thin vertical lines."""
    for place in places:
        ax.axvline(place, color=FAINT, linewidth=0.4, alpha=0.5, zorder=0)


def _upper(found: MeanCurve) -> np.ndarray:
    """The upper edge of the band, or the mean where there is no band."""
    return found.mean + np.where(np.isfinite(found.half_width), found.half_width, 0.0)


def _line(look: Look) -> dict:
    return {
        "color": look.colour,
        "linestyle": look.dashes,
        "linewidth": look.width,
        "marker": look.marker,
        "markerfacecolor": look.colour,
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
    }
