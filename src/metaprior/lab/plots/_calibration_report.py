"""The calibration study: how often central intervals of each level held the truth.

Columns of the records: `seed`, `task`, `context` (points observed), `level`, `frequency`, and
`calibration_error`, the same for all levels of a task.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, PercentFormatter

from metaprior.lab.plots._estimates import by_environment, by_method, curve, measured
from metaprior.lab.plots._looks import looks_of, title_of
from metaprior.lab.plots._method_tables import best_of, column_of, method_table
from metaprior.lab.plots._report import StudyReport, require_columns
from metaprior.lab.plots._study_figure import draw_curves, label_outer, panels
from metaprior.lab.studies import DataFrame, StudyResults
from metaprior.plots import FAINT

SAMPLES = ("seed", "task")
# Panels are square, and four of them fill the width of a page.
MOST_COLUMNS, HEIGHT = 4, 1.75
NOTE = "Mean over seeds and tasks ± half of the 95 % interval; the lowest mean in bold."


def calibration_report(results: StudyResults) -> StudyReport:
    """Reliability curves, and a table of calibration errors."""
    require_columns(results, {*SAMPLES, "context", "level", "frequency", "calibration_error"})
    rows = measured(results.records, "frequency")
    once = rows.drop_duplicates(["environment", "method", *SAMPLES, "context"])
    columns = {
        environment: {
            int(context): column_of(each, "calibration_error")
            for context, each in group.groupby("context")
        }
        for environment, group in by_environment(once).items()
    }
    tables = [
        method_table(
            f"Calibration error on {title_of(environment)}",
            f"calibration-error-{environment.lower()}",
            {_points(context): column for context, column in found.items()},
            "lower",
            NOTE,
        )
        for environment, found in columns.items()
    ]
    summary: dict[str, Any] = {
        environment: {
            context: {"lowest": best_of(column, "lower"), "methods": column}
            for context, column in found.items()
        }
        for environment, found in columns.items()
    }
    figures = {"calibration": reliability_figure(rows)}
    return StudyReport(figures, {"calibration-error": tables}, {"calibration_error": summary})


def reliability_figure(rows: DataFrame) -> Figure:
    """Observed frequency against confidence level: a panel for each environment and context."""
    looks = looks_of(rows["method"])
    groups = {
        f"{title_of(environment)}\n{_points(int(context))}": each
        for environment, group in by_environment(rows).items()
        for context, each in group.groupby("context")
    }
    num_contexts = rows["context"].nunique()
    # Panels of one environment stay in one row.
    columns = num_contexts * max(1, MOST_COLUMNS // num_contexts)
    figure, axes = panels(list(groups), looks, columns=columns, height=HEIGHT)
    for ax, group in zip(axes, groups.values(), strict=True):
        curves = {
            name: curve(each, "level", "frequency") for name, each in by_method(group).items()
        }
        _draw_diagonal(ax)
        draw_curves(ax, curves, looks)
        _percent(ax)
    label_outer(axes, "confidence level", "observed frequency", columns=columns)
    return figure


def _draw_diagonal(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, zorder=0)


def _percent(ax: Axes) -> None:
    """A square from nothing to everything, and a little more so that no line is cut in half."""
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(FixedLocator([0, 0.5, 1]))
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def _points(count: int) -> str:
    return f"{count} point" if count == 1 else f"{count} points"
