"""Figures of what was measured on held-out runs: coverage, predictions by context, replay."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.plots import FAINT
from metaprior.report._drawing import LEARNED, RECORDED, VANILLA, drawn
from metaprior.report._findings import HeldOut, Predictions, Replay
from metaprior.report._html import Html
from metaprior.words import number, value

# Square, so that the diagonal is one.
COVERAGE_HEIGHT = 300
# A log-likelihood this far below the best of the panel is off the page: one grossly over-confident
# model would press all others into one line.
MOST_NATS = 12.0


class Curve(NamedTuple):
    """One line of a panel, with its name in the key."""

    name: str
    x: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]
    colour: str
    dashes: Any


class Figure(NamedTuple):
    """A drawing, the words above it and those below."""

    title: str
    drawing: Html
    caption: str


_LOOKS = {
    "learned prior": (LEARNED, "-"),
    "vanilla GP": (VANILLA, (0, (5, 2))),
    "as recorded": (RECORDED, (0, (1.5, 1.5))),
}


def held_out_figures(held_out: HeldOut) -> list[Figure]:
    """Coverage, log-likelihood and error, as far as they were measured."""
    figures = []
    coverage = _compared(held_out, held_out.levels, lambda model: model.coverage)
    if coverage:
        drawing = drawn(
            partial(_draw_coverage, coverage),
            ident="coverage",
            label=f"Coverage against confidence level. {_last_values(coverage)}",
            height=COVERAGE_HEIGHT,
        )
        caption = (
            "How often the truth lay inside the band of each level. Honest bands lie on the "
            "diagonal."
        )
        figures.append(Figure("Are the bands honest?", drawing, caption))
    likelihood = _compared(
        held_out, held_out.contexts, lambda model: model.log_likelihood_by_context
    )
    if likelihood:
        cut_off = _highest(likelihood) - _lowest(likelihood) > MOST_NATS
        drawing = drawn(
            partial(_draw_by_context, likelihood, "log-likelihood", MOST_NATS),
            ident="likelihood",
            label=f"Log-likelihood by number of points seen. {_last_values(likelihood)}",
        )
        cut = " What lies far below is cut off." if cut_off else ""
        caption = (
            f"Of the next points of a held-out run, given its first ones: higher is better.{cut}"
        )
        figures.append(Figure("How likely is the truth?", drawing, caption))
    error = _compared(held_out, held_out.contexts, lambda model: model.error_by_context)
    if error:
        drawing = drawn(
            partial(_draw_by_context, error, "root mean squared error", None),
            ident="error",
            label=f"Prediction error by number of points seen. {_last_values(error)}",
        )
        caption = "Of the same predictions: lower is better."
        figures.append(Figure("How far off are the predictions?", drawing, caption))
    return figures


def replay_figure(replay: Replay) -> Figure | None:
    """How fast each way of choosing comes to the best value of a held-out run."""
    found = (
        ("learned prior", replay.learned),
        ("vanilla GP", replay.vanilla),
        ("as recorded", replay.recorded),
    )
    curves = [curve for name, y in found if (curve := _curve(name, replay.steps, y))]
    if not curves:
        return None
    drawing = drawn(
        partial(_draw_replay, curves),
        ident="replay",
        label=f"Regret against evaluations. {_last_values(curves)}",
        height=260,
    )
    caption = (
        "Distance of the best value so far from the best of the run: 0 is there, 1 is the run's "
        "median value. Mean over held-out runs, each made again from its own points."
    )
    return Figure("How fast is the best of a run found?", drawing, caption)


def _compared(
    held_out: HeldOut,
    x: Float[np.ndarray, " points"],
    of: Callable[[Predictions], Float[np.ndarray, " points"] | None],
) -> list[Curve]:
    both = (("learned prior", held_out.learned), ("vanilla GP", held_out.vanilla))
    return [curve for name, model in both if (curve := _curve(name, x, of(model)))]


def _curve(
    name: str, x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"] | None
) -> Curve | None:
    if y is None or not np.isfinite(y).any():
        return None
    return Curve(name, x, y, *_LOOKS[name])


def _draw_coverage(curves: Sequence[Curve], ax: Any) -> None:
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, zorder=0)
    for curve in curves:
        # The empty and the full band need no measuring.
        x, y = np.array([0, *curve.x, 1]), np.array([0, *curve.y, 1])
        ax.plot(x, y, color=curve.colour, linestyle=curve.dashes, linewidth=2.2)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence level", ylabel="truth inside the band")
    shares = np.linspace(0, 1, 6)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(shares, [f"{100 * share:.0f} %" for share in shares])
    ax.text(0.04, 0.96, "too cautious", color=FAINT, style="italic", va="top")
    ax.text(0.97, 0.05, "over-confident", color=FAINT, style="italic", ha="right")


def _draw_by_context(curves: Sequence[Curve], words: str, most: float | None, ax: Any) -> None:
    # Few points matter most: places are equally far apart, whatever the numbers.
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
    ax.set(xlabel="points of the run that were seen", ylabel=words)
    ax.locator_params(axis="y", nbins=5)
    highest, lowest = _highest(curves), _lowest(curves)
    if most is not None and highest - lowest > most:
        ax.set_ylim(highest - most, highest + 0.06 * most)


def _draw_replay(curves: Sequence[Curve], ax: Any) -> None:
    for curve in curves:
        ax.step(
            curve.x,
            curve.y,
            where="post",
            color=curve.colour,
            linestyle=curve.dashes,
            linewidth=2.2,
        )
    ax.set(xlabel="evaluations", ylabel="regret of the best so far")
    ax.set_ylim(bottom=min(0.0, _lowest(curves)))
    ax.set_xlim(left=float(curves[0].x[0]))
    ax.locator_params(nbins=6, integer=False)
    ax.xaxis.get_major_locator().set_params(integer=True)


def _spread_out(count: int, most: int) -> list[int]:
    """At most so many of `count` places, the first and the last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, most))})


def _highest(curves: Sequence[Curve]) -> float:
    return max(float(np.nanmax(curve.y)) for curve in curves)


def _lowest(curves: Sequence[Curve]) -> float:
    return min(float(np.nanmin(curve.y)) for curve in curves)


def _last_values(curves: Sequence[Curve]) -> str:
    """The right ends of all lines, in words."""
    ends = [
        f"{curve.name}: {number(float(curve.y[-1]))} at {value(float(curve.x[-1]))}"
        for curve in curves
    ]
    return "; ".join(ends) + "."
