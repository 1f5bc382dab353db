"""Whole figures of a prior and of a run, from records."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from metaprior.plots._panels import INK
from metaprior.plots._run_panels import RunHistory, TrustHistory, draw_run, draw_trust
from metaprior.plots._slices import Slice, draw_slice, limits_of, places_of
from metaprior.words import cut

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = Any

COLUMNS = 3
PANEL = (3.6, 2.7)  # inches
Draw = Callable[[Any], None]


def prior_figure(slices: Sequence[Slice], label: str) -> Figure:
    """One panel for each slice, all with the same vertical axis.

    - `label`: of the value, with its unit.
    """
    return _figure(_slice_panels(slices, None, label))


def run_figure(
    run: RunHistory,
    trust: TrustHistory | None,
    slices: Sequence[Slice],
    best: tuple[dict[str, Any], float] | None,
    label: str,
) -> Figure:
    """The run so far, trust over time, and slices through the best point.

    - `trust`: `None` if the prior has no weights.
    - `best`: the best point and its value, which are marked; `None` before the first observation.
    """

    def draw_values(ax: Any) -> None:
        draw_run(ax, run)
        ax.set(title="The run so far", ylabel=cut(label, 40))

    def draw_trusts(ax: Any) -> None:
        assert trust is not None
        draw_trust(ax, trust)
        ax.set_title("Trust over time")

    panels: list[Draw] = [draw_values] if len(run.values) else []
    panels += [draw_trusts] if trust is not None else []
    return _figure([*panels, *_slice_panels(slices, best, label)])


def _slice_panels(
    slices: Sequence[Slice], best: tuple[dict[str, Any], float] | None, label: str
) -> list[Draw]:
    limits = limits_of(slices, [] if best is None else [best[1]])
    return [partial(_draw_one, along, limits, best, cut(label, 40)) for along in slices]


def _draw_one(
    along: Slice,
    limits: tuple[float, float],
    best: tuple[dict[str, Any], float] | None,
    label: str,
    ax: Any,
) -> None:
    draw_slice(along, limits, ax)
    ax.set(xlabel=cut(along.name, 40), ylabel=label)
    if best is not None and along.name in best[0]:
        place = places_of(along.dimension, [best[0][along.name]])
        ax.plot(place, [best[1]], "D", color=INK, markersize=6, zorder=6)


def _figure(panels: Sequence[Draw]) -> Figure:
    """The panels in rows; a figure of its own, which no window shows until it is asked to."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = min(len(panels), COLUMNS)
    rows = -(-len(panels) // columns)
    # Users' names may contain dollars, which are no formulas here.
    style: dict[Any, Any] = {
        "text.parse_math": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with rc_context(style):
        figure = Figure((PANEL[0] * columns, PANEL[1] * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).reshape(-1)
        for ax, draw in zip(grid, panels, strict=False):
            draw(ax)
        for ax in grid[len(panels) :]:
            ax.remove()
    return figure
