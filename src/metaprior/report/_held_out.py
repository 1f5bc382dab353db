"""Figures of what was measured on held-out runs: coverage, predictions by context, replay."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.data import Quantity
from metaprior.findings import HeldOutScores, PredictionScores, Replay, Series
from metaprior.plots import FAINT
from metaprior.report._definitions import spread_in_words
from metaprior.report._drawing import BASELINE, LEARNED, RECORDED, drawn
from metaprior.report._html import Html
from metaprior.words import cut, number, value

# Square, so that the diagonal is one.
COVERAGE_HEIGHT = 300
# A log-likelihood this far below the best of the panel is cut off: one grossly over-confident model
# would flatten all other lines.
MOST_NATS = 12.0


class PanelCurve(NamedTuple):
    """One line of a panel, with its name in the key."""

    name: str
    x: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]
    colour: str
    dashes: Any


class Figure(NamedTuple):
    """A drawing with its title and caption."""

    title: str
    drawing: Html
    caption: str


_LEARNED = (LEARNED, "-")
_BASELINE = (BASELINE, (0, (5, 2)))
_RECORDED = (RECORDED, (0, (1.5, 1.5)))


def held_out_figures(held_out: HeldOutScores, quantity: Quantity, baseline: str) -> list[Figure]:
    """Coverage, log-likelihood and error, where they were measured.

    - `baseline`: name of the model that the prior is compared with.
    """
    figures = []

    def compared(
        x: Sequence[int | float], of: Callable[[PredictionScores], Series], unit: float = 1.0
    ) -> list[PanelCurve]:
        both = (("learned prior", held_out.learned), (baseline, held_out.baseline))
        looks = (_LEARNED, _BASELINE)
        found = zip(both, looks, strict=True)
        curves = (_curve(name, x, of(model), look, unit) for (name, model), look in found)
        return [curve for curve in curves if curve]

    coverage = compared(held_out.levels, lambda model: model.coverage)
    if coverage:
        drawing = drawn(
            partial(_draw_coverage, coverage),
            ident="coverage",
            label=f"Coverage against confidence level. {_last_values(coverage)}",
            height=COVERAGE_HEIGHT,
        )
        caption = (
            "Share of observations inside the band of each confidence level. A calibrated model "
            "lies on the diagonal."
        )
        figures.append(Figure("Is the uncertainty calibrated?", drawing, caption))
    likelihood = compared(held_out.contexts, lambda model: model.log_likelihood_by_context)
    if likelihood:
        cut_off = _highest(likelihood) - _lowest(likelihood) > MOST_NATS
        drawing = drawn(
            partial(_draw_by_context, likelihood, "log-likelihood in nats", MOST_NATS),
            ident="likelihood",
            label=f"Log-likelihood by number of points seen. {_last_values(likelihood)}",
        )
        below = " Much lower values are cut off." if cut_off else ""
        caption = (
            f"Mean log density of the remaining points of a held-out run, of values divided by "
            f"{spread_in_words(held_out, quantity)}; higher is better.{below}"
        )
        figures.append(Figure("How likely are the observations?", drawing, caption))
    error = compared(
        held_out.contexts, lambda model: model.error_by_context, held_out.spread or 1.0
    )
    if error:
        if held_out.spread is None:
            unit = "in units of the past values' spread"
        else:
            unit = f"in {quantity.unit}" if quantity.unit else f"of {cut(quantity.name, 24)}"
        drawing = drawn(
            partial(_draw_by_context, error, f"error {unit}", None),
            ident="error",
            label=f"Prediction error by number of points seen, {unit}. {_last_values(error)}",
        )
        caption = f"Root mean squared error of the same predictions, {unit}; lower is better."
        figures.append(Figure("How far off are the predictions?", drawing, caption))
    return figures


def replay_curves(replay: Replay, baseline: str) -> list[PanelCurve]:
    """How fast each model finds the best value of a held-out run."""
    found = (
        ("learned prior", replay.learned, _LEARNED),
        (baseline, replay.baseline, _BASELINE),
        ("recorded order", replay.recorded, _RECORDED),
    )
    return [curve for name, y, look in found if (curve := _curve(name, replay.steps, y, look))]


def replay_figure(curves: Sequence[PanelCurve]) -> Figure | None:
    """The curves as a figure; `None` if there are none."""
    if not curves:
        return None
    drawing = drawn(
        partial(_draw_replay, curves),
        ident="replay",
        label=f"Regret against evaluations. {_last_values(curves)}",
    )
    caption = (
        "Regret of the best value so far: 0 is the best value of the run, 1 its median. Mean over "
        "held-out runs, each replayed from its own points."
    )
    return Figure("How fast is the best of a run found?", drawing, caption)


def _curve(
    name: str, x: Sequence[int | float], y: Series, look: tuple[str, Any], unit: float = 1.0
) -> PanelCurve | None:
    """One line; `None` if none of it was measured, and NaN where it was not."""
    measured = unit * np.array(y, float)
    if not np.isfinite(measured).any():
        return None
    return PanelCurve(name, np.array(x, float), measured, *look)


def _draw_coverage(curves: Sequence[PanelCurve], ax: Any) -> None:
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, zorder=0)
    for curve in curves:
        # Coverage is 0 at level 0 and 1 at level 1.
        x, y = np.array([0, *curve.x, 1]), np.array([0, *curve.y, 1])
        ax.plot(x, y, color=curve.colour, linestyle=curve.dashes, linewidth=2.2)
    ax.set(
        xlim=(0, 1), ylim=(0, 1), xlabel="confidence level", ylabel="observations inside the band"
    )
    shares = np.linspace(0, 1, 6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(shares, [f"{100 * share:.0f} %" for share in shares])
    ax.text(0.04, 0.96, "too cautious", color=FAINT, style="italic", va="top")
    ax.text(0.97, 0.05, "over-confident", color=FAINT, style="italic", ha="right")


def _draw_by_context(curves: Sequence[PanelCurve], words: str, most: float | None, ax: Any) -> None:
    # Small contexts matter most: ticks are evenly spaced, whatever the numbers.
    places = np.arange(len(curves[0].x))
    for curve in curves:
        ax.plot(
            places,
            curve.y,
            color=curve.colour,
            linestyle=curve.dashes,
            marker="o",
            markersize=4,
            linewidth=2.2,
        )
    shown = _spread_out(len(places), 8)
    ax.set_xticks(places[shown], [f"{curves[0].x[i]:g}" for i in shown])
    ax.set(xlabel="points of the run seen", ylabel=words)
    ax.locator_params(axis="y", nbins=5)
    highest, lowest = _highest(curves), _lowest(curves)
    if most is not None and highest - lowest > most:
        ax.set_ylim(highest - most, highest + 0.06 * most)


def _draw_replay(curves: Sequence[PanelCurve], ax: Any) -> None:
    for curve in curves:
        ax.step(
            curve.x,
            curve.y,
            where="post",
            color=curve.colour,
            linestyle=curve.dashes,
            linewidth=2.2,
        )
    ax.set(xlabel="evaluations", ylabel="regret (median 1, best 0)")
    ax.set_ylim(bottom=min(0.0, _lowest(curves)))
    ax.set_xlim(left=float(curves[0].x[0]))
    ax.locator_params(nbins=6, integer=False)
    ax.xaxis.get_major_locator().set_params(integer=True)


def _spread_out(count: int, most: int) -> list[int]:
    """At most `most` of `count` places, including the first and the last."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, most))})


def _highest(curves: Sequence[PanelCurve]) -> float:
    return max(float(np.nanmax(curve.y)) for curve in curves)


def _lowest(curves: Sequence[PanelCurve]) -> float:
    return min(float(np.nanmin(curve.y)) for curve in curves)


def _last_values(curves: Sequence[PanelCurve]) -> str:
    """The right end of each line, in words."""
    ends = [
        f"{curve.name}: {number(float(curve.y[-1]))} at {value(float(curve.x[-1]))}"
        for curve in curves
    ]
    return "; ".join(ends) + "."
