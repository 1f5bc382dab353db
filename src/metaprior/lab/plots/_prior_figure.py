"""Priors of functions of one variable: before and after observations, and away from data."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from metaprior.belief import HALF_WIDTH_95
from metaprior.lab.plots._looks import METHODS, OURS, PRINT_STYLE, looks_of
from metaprior.plots import (
    FAINT,
    INK,
    Belief,
    PastQueries,
    draw_belief,
    draw_past_runs,
)

WIDTH = 7.0
# Lines and points are made for panels of twice this size.
SCALE = 0.6


def prior_and_posterior(
    curves: Mapping[str, tuple[Belief, Belief]], past: PastQueries | None = None
) -> Figure:
    """The paper's first figure: for each method, its prior above its posterior.

    - `curves`: by name of the method, what it believes before and after a few observations.
    - `past`: what the methods learned from, drawn beside them.
    """
    looks = looks_of(curves)
    low, high = _limits([belief for pair in curves.values() for belief in pair])
    with rc_context(PRINT_STYLE):
        figure = _figure(height=3.1)
        grid = figure.add_gridspec(2, len(curves) + (past is not None))
        if past is not None:
            ax = figure.add_subplot(grid[:, 0])
            draw_past_runs(ax, past, scale=SCALE)
            ax.set_title("Past runs")
        for column, (name, pair) in enumerate(curves.items(), start=int(past is not None)):
            for row, (belief, words) in enumerate(zip(pair, ("prior", "posterior"), strict=True)):
                ax = figure.add_subplot(grid[row, column])
                draw_belief(ax, belief, looks[name].colour, scale=SCALE)
                ax.set_ylim(low, high)
                # Labels at the ends would meet those of the next panel.
                ax.xaxis.set_major_locator(MaxNLocator(4, prune="both"))
                first = column == int(past is not None)
                ax.tick_params(labelbottom=row == 1, labelleft=first)
                ax.set_ylabel(words if first else "")
                if row == 0:
                    ax.set_title(looks[name].label)
                else:
                    ax.set_xlabel("x")
        _add_legend(figure, figure.axes[-1])
        # Ticks are made when first drawn, and should be made in this style.
        figure.draw_without_rendering()
    return figure


def hyper_prior_figure(
    panels: Mapping[str, tuple[Belief, Belief]], data: Sequence[tuple[np.ndarray, np.ndarray]]
) -> Figure:
    """What different hyper-priors make of the same runs: hyper-prior above, learned prior below.

    - `panels`: by title, the hyper-prior and the prior that was learned with it.
    - `data`: the runs `(x, y)` that all of them learned from; nothing is known beyond their ends.
    """
    low, high = _limits([belief for pair in panels.values() for belief in pair])
    start = min(float(np.min(x)) for x, _ in data)
    end = max(float(np.max(x)) for x, _ in data)
    colour = METHODS[OURS].colour
    with rc_context(PRINT_STYLE):
        figure = _figure(height=3.3)
        axes = figure.subplots(2, len(panels), sharex=True, sharey=True, squeeze=False)
        for column, (title, (hyper_prior, learned)) in zip(axes.T, panels.items(), strict=True):
            column[0].set_title(title)
            draw_belief(column[0], hyper_prior, FAINT, scale=SCALE)
            draw_belief(column[1], learned, colour, scale=SCALE)
            column[1].axvspan(start, end, color=INK, alpha=0.06, linewidth=0, zorder=0)
            for x, y in data:
                column[1].plot(x, y, ".", color=INK, markersize=2.2, markeredgewidth=0, zorder=6)
            column[1].set_xlabel("x")
        axes[0, 0].set(ylabel="hyper-prior", ylim=(low, high))
        axes[1, 0].set_ylabel("learned prior")
        middle = (start + end) / 2
        axes[1, 0].text(middle, high, "data", ha="center", va="top", color=INK)
        _add_legend(figure, axes[1, 0])
        figure.draw_without_rendering()
    return figure


def _figure(height: float) -> Figure:
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.02, hspace=0.02)
    return Figure(figsize=(WIDTH, height), dpi=200, layout=layout)


def _limits(beliefs: Sequence[Belief]) -> tuple[float, float]:
    """A range that holds all bands and all observations, with a little room."""
    lows = [np.min(belief.mean - HALF_WIDTH_95 * belief.std) for belief in beliefs]
    highs = [np.max(belief.mean + HALF_WIDTH_95 * belief.std) for belief in beliefs]
    low, high = float(min(lows)), float(max(highs))
    room = 0.05 * (high - low)
    return low - room, high + room


def _add_legend(figure: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
