"""The panels that figures are made of: each draws one record, or a list of them, into axes.

Nothing here knows a method: records carry names, and the caller gives each name its colour.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:  # an extra: names of colours and records are there without it
    Axes = Any

# Okabe and Ito's colours, which people with any colour vision can tell apart.
PALETTE = ("#0072B2", "#D55E00", "#767676")
Colours = Mapping[str, str]

INK = "#222222"
FAINT = "#8c8c8c"
DASHED = (0, (3, 1.5))
# That of `metaprior.belief`, which is above this package.
_HALF_WIDTH_95 = 1.959963984540054
# Regret below this is zero to the eye, and zero has no place on a logarithmic axis.
SMALLEST_REGRET = 1e-6


class PastQueries(NamedTuple):
    """Functions of a 1-d family on a grid, and all queries that past runs made."""

    x: Float[np.ndarray, " grid"]
    functions: Float[np.ndarray, "n grid"]
    query_x: Float[np.ndarray, " q"]
    query_y: Float[np.ndarray, " q"]


class Belief(NamedTuple):
    """A prediction of a 1-d function on a grid, the function, and what was observed of it.

    The function may be left out, where the prediction is of no particular one; functions drawn
    from the prediction may be given.
    """

    x: Float[np.ndarray, " grid"]
    mean: Float[np.ndarray, " grid"]
    std: Float[np.ndarray, " grid"]
    truth: Float[np.ndarray, " grid"] | None
    observed_x: Float[np.ndarray, " m"]
    observed_y: Float[np.ndarray, " m"]
    samples: Float[np.ndarray, "s grid"] | None = None


class CoverageCurve(NamedTuple):
    """How often the intervals of each level held the truth, given some number of points."""

    name: str
    num_observed: int
    levels: Float[np.ndarray, " levels"]
    covered: Float[np.ndarray, " levels"]


class RegretCurves(NamedTuple):
    """Simple regret after each query, of one policy on several tasks."""

    name: str
    regret: Float[np.ndarray, "tasks queries"]


class Landscape(NamedTuple):
    """A function of two variables on a grid, its point of interest, and queries by name."""

    x1: Float[np.ndarray, " columns"]
    x2: Float[np.ndarray, " rows"]
    value: Float[np.ndarray, "rows columns"]
    best: Float[np.ndarray, " 2"]
    queries: Mapping[str, Float[np.ndarray, "q 2"]]


def draw_past_runs(ax: Axes, past: PastQueries, *, scale: float = 1.0) -> None:
    """Functions as thin lines, queries as dots.

    - `scale`: of lines and dots; smaller in small panels.
    """
    ax.plot(past.x, past.functions.T, color=FAINT, linewidth=0.9 * scale)
    size, edge = 4 * scale, 0.4 * scale
    ax.plot(past.query_x, past.query_y, "o", color=INK, markersize=size, mec="white", mew=edge)
    ax.set_xlim(past.x[0], past.x[-1])
    ax.locator_params(nbins=5)
    ax.set(xlabel="x", ylabel="f(x)")


def draw_belief(ax: Axes, belief: Belief, colour: str, *, scale: float = 1.0) -> None:
    """Mean, 95 % band, drawn functions, the true function and the observations.

    - `scale`: of lines and points; smaller in small panels.
    """
    half_width = _HALF_WIDTH_95 * belief.std
    lower, upper = belief.mean - half_width, belief.mean + half_width
    _fill_band(ax, belief.x, lower, upper, colour)
    if belief.samples is not None:
        for i, sample in enumerate(belief.samples):
            label = "_nolegend_" if i else "samples"  # one entry for all of them
            ax.plot(belief.x, sample, color=colour, lw=0.7 * scale, alpha=0.7, label=label)
    _draw_mean(ax, belief.x, belief.mean, colour, scale)
    if belief.truth is not None:
        width = 1.3 * scale
        ax.plot(belief.x, belief.truth, color=INK, lw=width, linestyle=DASHED, label="truth")
    if len(belief.observed_x):
        x, y, size = belief.observed_x, belief.observed_y, 6 * scale
        ax.plot(x, y, "o", color=INK, markersize=size, zorder=5, label="observed")
    ax.set_xlim(belief.x[0], belief.x[-1])
    ax.locator_params(nbins=5)


def draw_band(
    ax: Axes,
    x: Float[np.ndarray, " grid"],
    mean: Float[np.ndarray, " grid"],
    lower: Float[np.ndarray, " grid"],
    upper: Float[np.ndarray, " grid"],
    colour: str,
) -> None:
    """Mean and 95 % band, whose ends are given."""
    _fill_band(ax, x, lower, upper, colour)
    _draw_mean(ax, x, mean, colour, 1.0)
    ax.set_xlim(x[0], x[-1])
    ax.locator_params(nbins=5)


def _fill_band(ax: Axes, x, lower, upper, colour: str) -> None:
    ax.fill_between(x, lower, upper, color=colour, alpha=0.22, linewidth=0, label="95 % band")


def _draw_mean(ax: Axes, x, mean, colour: str, scale: float) -> None:
    ax.plot(x, mean, color=colour, linewidth=2.0 * scale, label="mean")


def draw_coverage(ax: Axes, curves: Sequence[CoverageCurve], colours: Colours) -> None:
    """Coverage against confidence level; calibrated predictions lie on the diagonal.

    The line from the most observations is solid, the others are dashed.
    """
    from matplotlib.ticker import PercentFormatter

    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, zorder=0)
    most = max(curve.num_observed for curve in curves)
    for curve in curves:
        plural = "" if curve.num_observed == 1 else "s"
        ax.plot(
            curve.levels,
            curve.covered,
            color=colours[curve.name],
            linewidth=2.2,
            linestyle="-" if curve.num_observed == most else DASHED,
            label=f"{curve.name}, {curve.num_observed} point{plural}",
        )
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence level", ylabel="truth inside the band")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    ax.text(0.04, 0.96, "too cautious", color=FAINT, style="italic", va="top")
    ax.text(0.96, 0.42, "over-confident", color=FAINT, style="italic", ha="right")
    ax.legend(loc="lower right", frameon=False, handlelength=2.2, borderaxespad=0.2)


def draw_regret(ax: Axes, curves: Sequence[RegretCurves], colours: Colours) -> None:
    """Median over the tasks on a logarithmic axis, with the middle half of them as a band."""
    for curve in curves:
        regret = np.maximum(curve.regret, SMALLEST_REGRET)
        t = np.arange(1, regret.shape[1] + 1)
        low, middle, high = np.quantile(regret, [0.25, 0.5, 0.75], axis=0)
        colour = colours[curve.name]
        ax.fill_between(t, low, high, color=colour, alpha=0.18, linewidth=0, step="post")
        ax.step(t, middle, where="post", color=colour, linewidth=2.2, label=curve.name)
    ax.set_yscale("log")
    ax.set_xlim(1, max(curve.regret.shape[1] for curve in curves))
    ax.set(xlabel="queries", ylabel="simple regret: median, middle half")
    ax.legend(loc="best", frameon=False)


def draw_landscape(ax: Axes, landscape: Landscape, colours: Colours) -> None:
    """The function in shades of grey, the best point as a star, queries numbered in order."""
    # Equal areas in equal shades: a few extreme values would take all of them otherwise.
    levels = np.unique(np.quantile(landscape.value, np.linspace(0.0, 1.0, 13)))
    if len(levels) > 1:  # a flat landscape is one shade: that of the paper
        shades = [str(shade) for shade in np.linspace(0.6, 1.0, len(levels) - 1)]
        ax.contourf(landscape.x1, landscape.x2, landscape.value, levels=levels, colors=shades)
    for layer, (name, points) in enumerate(landscape.queries.items(), start=4):
        for number, point in enumerate(points, start=1):
            ax.text(
                point[0],
                point[1],
                str(number),
                color="white",
                fontsize=9,
                ha="center",
                va="center",
                zorder=layer,
                bbox={"boxstyle": "circle,pad=0.2", "fc": colours[name], "ec": "white", "lw": 0.8},
            )
    ax.plot(*landscape.best, "*", color="#F0E442", mec=INK, markersize=18, clip_on=False, zorder=9)
    ax.locator_params(nbins=5)
    ax.set_xlim(landscape.x1[0], landscape.x1[-1])
    ax.set_ylim(landscape.x2[0], landscape.x2[-1])
