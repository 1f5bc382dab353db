"""The search: which configuration of each method was chosen, and how soon a good one was found.

Columns of the records: `configuration` (its number), `num_steps`, `seed`, `task`, and validation
scores, which are not numbers where a configuration diverged. The configurations that were chosen
lie beside the records, in `configurations/<environment>/<method>.json`.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from metaprior.lab.plots._estimates import MeanCurve, by_environment, by_method, measured
from metaprior.lab.plots._looks import in_order, looks_of, title_of
from metaprior.lab.plots._report import StudyReport, require_columns
from metaprior.lab.plots._study_figure import draw_log_regret, label_outer, panels
from metaprior.lab.plots._tables import MISSING, Estimate, ResultTable
from metaprior.lab.studies import (
    CONFIGURATIONS,
    ChosenConfiguration,
    DataFrame,
    StudyResults,
    read_configurations,
)

CANDIDATE = ["configuration", "num_steps"]
# Scores of which lower is better, in words.
SCORES = {
    "early_regret": "early simple regret",
    "simple_regret": "simple regret",
    "inference_regret": "inference regret",
    "calibration_error": "calibration error",
}
SHOWN = ("average_rank", *SCORES, "log_likelihood")


def search_report(results: StudyResults) -> StudyReport:
    """The chosen configurations with their scores, and the best score so far as a figure."""
    require_columns(results, {*CANDIDATE, *SCORES})
    chosen = chosen_in(results.folder)
    report = StudyReport({}, {}, {"chosen": chosen})
    if chosen:
        report.tables["configurations"] = [_table(*item) for item in chosen.items()]
    for score, words in SCORES.items():
        if len(known := measured(results.records, score)):
            name = f"best-{score.replace('_', '-')}-so-far"
            report.figures[name] = best_so_far_figure(known, score, words)
    return report


def chosen_in(folder: Path) -> dict[str, dict[str, ChosenConfiguration]]:
    """What was chosen, by environment and method."""
    found: dict[str, dict[str, ChosenConfiguration]] = {}
    for chosen in read_configurations(folder / CONFIGURATIONS):
        found.setdefault(chosen.environment, {})[chosen.method] = chosen
    return {environment: found[environment] for environment in in_order(found)}


def best_so_far(rows: DataFrame, score: str) -> MeanCurve:
    """The lowest mean score among the first configurations, for every number of them; each at its
    best number of training steps.

    Those that diverged count as tried.
    """
    ordered = rows.sort_values([*CANDIDATE, score])
    means = ordered.groupby(CANDIDATE)[score].mean().groupby("configuration").min()
    tried = np.arange(1.0, len(means) + 1)
    return MeanCurve(tried, np.fmin.accumulate(means.to_numpy(float)), np.full(len(means), np.inf))


def best_so_far_figure(rows: DataFrame, score: str, words: str) -> Figure:
    """How many configurations it took, one panel per environment."""
    looks, environments = looks_of(rows["method"]), by_environment(rows)
    figure, axes = panels([title_of(name) for name in environments], looks)
    for ax, group in zip(axes, environments.values(), strict=True):
        curves = {name: best_so_far(each, score) for name, each in by_method(group).items()}
        draw_log_regret(ax, curves, looks)
    label_outer(axes, "configurations tried", f"best validation\n{words}")
    return figure


def _table(environment: str, chosen: dict[str, ChosenConfiguration]) -> ResultTable:
    rows = []
    for name, look in looks_of(chosen).items():
        scores, searched = chosen[name].scores, chosen[name].searched
        tried = f"{searched.get('configurations', MISSING)} ({searched.get('diverged', MISSING)})"
        cells = [_cell(scores.get(score)) for score in SHOWN]
        rows.append([look.label, *cells, tried, _settings(chosen[name])])
    return ResultTable(
        f"Chosen configurations on {title_of(environment)}",
        f"configurations-{environment.lower()}",
        ["", *(score.replace("_", " ") for score in SHOWN), "tried (diverged)", "configuration"],
        rows,
        "Scores are those on validation tasks, which no other study reports on.",
    )


def _settings(chosen: ChosenConfiguration) -> str:
    """Those settings that were searched over."""
    settings = chosen.settings
    searched = chosen.searched.get("ranges", settings)
    shown = {name: settings[name] for name in searched if name in settings}
    return ", ".join(f"{name} = {_short(value)}" for name, value in shown.items())


def _cell(score: float | None) -> str | Estimate:
    return MISSING if score is None else Estimate(float(score), float("inf"), 1)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
