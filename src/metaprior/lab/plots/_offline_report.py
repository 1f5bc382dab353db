"""The offline study: regret over the steps of a run, environment by environment.

Columns of the records: `seed`, `task`, `step` (queries made so far), `simple_regret`,
`inference_regret`.
"""

from typing import Any

from matplotlib.figure import Figure

from metaprior.lab.plots._estimates import (
    by_environment,
    by_method,
    compare_with_others,
    curve,
    measured,
)
from metaprior.lab.plots._looks import looks_of, title_of
from metaprior.lab.plots._method_tables import (
    Comparisons,
    best_of,
    column_of,
    comparison_summary,
    comparison_table,
    method_table,
)
from metaprior.lab.plots._report import StudyReport, require_columns
from metaprior.lab.plots._study_figure import draw_log_regret, label_outer, panels
from metaprior.lab.plots._tables import Estimate, ResultTable
from metaprior.lab.studies import DataFrame, StudyResults

REGRETS = {"simple_regret": "simple regret", "inference_regret": "inference regret"}
SAMPLES = ("seed", "task")
# Steps that tables report, where the runs are as long as that; the last one always.
STEPS = (1, 5, 10, 20, 50, 100)
EARLY = 20
NOTE = "Mean over seeds and tasks ± half of the 95 % interval; the lowest mean in bold."


def offline_report(results: StudyResults) -> StudyReport:
    """A figure and tables of each regret, and F-PACOH against each method."""
    require_columns(results, {*SAMPLES, "step", *REGRETS})
    report = StudyReport({}, {}, {})
    for regret, words in REGRETS.items():
        known = measured(results.records, regret)
        if known.empty:
            continue
        name = regret.replace("_", "-")
        report.figures[name] = regret_figure(known, regret, words)
        columns = {
            environment: _columns(group, regret)
            for environment, group in by_environment(known).items()
        }
        report.tables[name] = [
            _table(environment, found, regret, words) for environment, found in columns.items()
        ]
        report.summary[regret] = {"environments": _summary(columns)}
        if compared := _comparisons(known, regret):
            report.tables[f"{name}-comparison"] = [
                comparison_table(found, f"{words} at {when}", f"{name}-comparison-{place}")
                for place, (when, found) in compared.items()
            ]
            report.summary[regret]["comparison"] = {
                place: comparison_summary(found) for place, (_, found) in compared.items()
            }
    return report


def regret_figure(rows: DataFrame, regret: str, words: str) -> Figure:
    """Mean and band over the steps, one panel per environment."""
    looks, environments = looks_of(rows["method"]), by_environment(rows)
    figure, axes = panels([title_of(name) for name in environments], looks)
    for ax, group in zip(axes, environments.values(), strict=True):
        curves = {name: curve(each, "step", regret) for name, each in by_method(group).items()}
        draw_log_regret(ax, curves, looks)
    label_outer(axes, "step $t$", words)
    return figure


def _columns(rows: DataFrame, regret: str) -> dict[int, dict[str, Estimate]]:
    """The estimates of all methods at those of the usual steps that there are, and the last."""
    there = {int(step) for step in rows["step"].unique()}
    shown = sorted(there.intersection(STEPS) | {max(there)})
    return {step: column_of(rows[rows["step"] == step], regret) for step in shown}


def _table(
    environment: str, columns: dict[int, dict[str, Estimate]], regret: str, words: str
) -> ResultTable:
    return method_table(
        f"{words.capitalize()} on {title_of(environment)}",
        f"{regret.replace('_', '-')}-{environment.lower()}",
        {f"t = {step}": column for step, column in columns.items()},
        "lower",
        NOTE,
    )


def _summary(columns: dict[str, dict[int, dict[str, Estimate]]]) -> dict[str, Any]:
    """By environment and step, the estimate of every method and whose is the lowest."""
    return {
        environment: {
            step: {"lowest": best_of(column, "lower"), "methods": column}
            for step, column in found.items()
        }
        for environment, found in columns.items()
    }


def _comparisons(rows: DataFrame, regret: str) -> dict[str, tuple[str, Comparisons]]:
    """F-PACOH against each method, early and at the end of the runs."""
    last = rows.groupby("environment")["step"].transform("max")
    moments = {
        f"t{EARLY}": (f"t = {EARLY}", rows["step"] == EARLY),
        "last": ("the last step", rows["step"] == last),
    }
    found = {
        place: (when, compare_with_others(rows[chosen], regret, SAMPLES, "lower"))
        for place, (when, chosen) in moments.items()
    }
    return {place: compared for place, compared in found.items() if compared[1]}
