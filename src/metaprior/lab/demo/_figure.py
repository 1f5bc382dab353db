"""The picture of the demo: past runs, beliefs, calibration and regret."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from metaprior.belief import HALF_WIDTH_95
from metaprior.lab.demo._computation import (
    CONTEXT_SIZES,
    FIXED_GP,
    FPACOH,
    RANDOM,
    DemoResults,
)
from metaprior.metrics import coverage
from metaprior.plots import (
    INK,
    PALETTE,
    Belief,
    Colours,
    CoverageCurve,
    Landscape,
    PastQueries,
    RegretCurves,
    draw_belief,
    draw_coverage,
    draw_landscape,
    draw_past_runs,
    draw_regret,
)

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 10.5,
}


def demo_figure(results: DemoResults) -> Figure:
    """The picture of the demo."""
    levels = np.linspace(0.0, 1.0, 41)
    curves = [
        CoverageCurve(name, size, levels, coverage(predictions.cdf[:, i], levels))
        for name, predictions in results.mixture.predictions.items()
        for i, size in enumerate(CONTEXT_SIZES)
    ]
    return panels_figure(
        (FPACOH, FIXED_GP, RANDOM),
        results.mixture.past,
        results.mixture.beliefs,
        curves,
        [RegretCurves(name, regret) for name, regret in results.branin.regret.items()],
        results.branin.landscape,
    )


def panels_figure(
    names: Sequence[str],
    past: PastQueries,
    beliefs: Mapping[str, Sequence[Belief]],
    coverage_curves: Sequence[CoverageCurve],
    regret: Sequence[RegretCurves],
    landscape: Landscape,
) -> Figure:
    """Six panels, 2000 by 1300 pixels when saved.

    - `names`: the names in the records, in the order in which they get their colours.
    - `beliefs`: by name, a belief before and a belief after some observations.
    """
    colours = dict(zip(names, PALETTE, strict=False))
    with rc_context(STYLE):
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.03, hspace=0.03)
        figure = Figure(figsize=(12.5, 8.125), dpi=160, layout=layout)
        rows = figure.add_gridspec(2, 1, height_ratios=[1.0, 1.05])
        _draw_learning(figure.add_subfigure(rows[0]), past, beliefs, colours)
        _draw_results(figure.add_subfigure(rows[1]), coverage_curves, regret, landscape, colours)
        # Ticks are made when first drawn, and should be made in this style.
        figure.draw_without_rendering()
    return figure


def _draw_learning(
    figure: SubFigure, past: PastQueries, beliefs: Mapping[str, Sequence[Belief]], colours: Colours
) -> None:
    """Past runs; beside them, prior above posterior, a column for each model."""
    grid = figure.add_gridspec(2, 1 + len(beliefs))
    ax = figure.add_subplot(grid[:, 0])
    ax.set_title("a  Past runs on 1-d functions")
    draw_past_runs(ax, past)
    every = [belief for pair in beliefs.values() for belief in pair]
    low = min(np.min(belief.mean - HALF_WIDTH_95 * belief.std) for belief in every)
    high = max(np.max(belief.mean + HALF_WIDTH_95 * belief.std) for belief in every)
    room = 0.2 * (high - low)  # for the words below and the legend above
    first: Axes | None = None
    for column, (name, pair) in enumerate(beliefs.items(), start=1):
        for row, (belief, title) in enumerate(zip(pair, ("prior", "posterior"), strict=True)):
            ax = figure.add_subplot(grid[row, column], sharex=first, sharey=first)
            first = first or ax
            draw_belief(ax, belief, colours[name])
            count = len(belief.observed_x)
            note = f"{title}, {count} observations" if count else title
            ax.text(0.03, 0.06, note, transform=ax.transAxes, color=colours[name], weight="bold")
            ax.tick_params(labelbottom=row == 1, labelleft=column == 1)
            if row == 0:
                ax.set_title(f"{'bcdef'[column - 1]}  {name} on an unseen function")
            else:
                ax.set_xlabel("x")
            ax.set_ylim(low - room, high + room)
            if column == 1 and row == 0:
                ax.legend(loc="upper center", ncols=3, frameon=False, borderaxespad=0)


def _draw_results(
    figure: SubFigure,
    coverage_curves: Sequence[CoverageCurve],
    regret: Sequence[RegretCurves],
    landscape: Landscape,
    colours: Colours,
) -> None:
    """Calibration, regret, and where the queries of one run went."""
    calibration_ax, regret_ax, landscape_ax = figure.subplots(1, 3)
    calibration_ax.set_title("d  Are the bands honest?")
    draw_coverage(calibration_ax, coverage_curves, colours)
    regret_ax.set_title("e  Regret on unseen Branin tasks")
    draw_regret(regret_ax, regret, colours)
    count = max(len(points) for points in landscape.queries.values())
    landscape_ax.set_title(f"f  First {count} queries on one task")
    draw_landscape(landscape_ax, landscape, colours)
    landscape_ax.set(xlabel="x1 (grey: prior mean; star: optimum)", ylabel="x2")
