"""The search: which configuration of each method was chosen, and how soon a good one was found.

Columns of the records: `configuration` (its number), `seed`, `task`, and two validation scores,
which are not numbers where a configuration diverged. The configurations that were chosen lie beside
the records, in `configurations/<environment>/<method>.json`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from metaprior.lab.plots._estimates import Curve, DataFrame, by_environment, by_method, measured
from metaprior.lab.plots._looks import in_order, looks_of, title_of
from metaprior.lab.plots._report import Report
from metaprior.lab.plots._study_figure import draw_log_regret, label_outer, panels
from metaprior.lab.plots._study_files import StudyResults, require_columns
from metaprior.lab.plots._tables import MISSING, Estimate, Table

# The scores that configurations are ranked by, in words; lower is better.
SCORES = {"simple_regret": "simple regret", "inference_regret": "inference regret"}
SHOWN = ("average_rank", *SCORES)


def search_report(results: StudyResults) -> Report:
    """The chosen configurations with their scores, and the best score so far as a figure."""
    require_columns(results, {"configuration", *SCORES})
    chosen = read_chosen(results.folder)
    report = Report({}, {}, {"chosen": chosen})
    if chosen:
        report.tables["configurations"] = [_table(*item) for item in chosen.items()]
    for score, words in SCORES.items():
        if len(known := measured(results.rows, score)):
            name = f"best-{score.replace('_', '-')}-so-far"
            report.figures[name] = best_so_far_figure(known, score, words)
    return report


def read_chosen(folder: Path) -> dict[str, dict[str, Any]]:
    """What was chosen, by environment and method: the contents of the files."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((folder / "configurations").glob("*/*.json")):
        try:
            content = json.loads(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path} is not valid JSON ({error}); search again.") from error
        found.setdefault(path.parent.name, {})[path.stem] = content
    return {environment: found[environment] for environment in in_order(found)}


def best_so_far(rows: DataFrame, score: str) -> Curve:
    """The lowest mean score among the first configurations, for every number of them.

    Those that diverged count as tried.
    """
    means = rows.sort_values(["configuration", score]).groupby("configuration")[score].mean()
    tried = np.arange(1.0, len(means) + 1)
    return Curve(tried, np.fmin.accumulate(means.to_numpy(float)), np.full(len(means), np.inf))


def best_so_far_figure(rows: DataFrame, score: str, words: str) -> Figure:
    """How many configurations it took, one panel an environment."""
    looks, environments = looks_of(rows["method"]), by_environment(rows)
    figure, axes = panels([title_of(name) for name in environments], looks)
    for ax, group in zip(axes, environments.values(), strict=True):
        curves = {name: best_so_far(each, score) for name, each in by_method(group).items()}
        draw_log_regret(ax, curves, looks)
    label_outer(axes, "configurations tried", f"best validation\n{words}")
    return figure


def _table(environment: str, chosen: dict[str, Any]) -> Table:
    rows = []
    for name, look in looks_of(chosen).items():
        scores, searched = chosen[name].get("scores", {}), chosen[name].get("searched", {})
        tried = f"{searched.get('configurations', MISSING)} ({searched.get('diverged', MISSING)})"
        cells = [_cell(scores.get(score)) for score in SHOWN]
        rows.append([look.label, *cells, tried, _settings(chosen[name])])
    return Table(
        f"Chosen configurations on {title_of(environment)}",
        f"configurations-{environment.lower()}",
        ["", *(score.replace("_", " ") for score in SHOWN), "tried (diverged)", "configuration"],
        rows,
        "Scores are those on validation tasks, which no other study reports on.",
    )


def _settings(content: dict[str, Any]) -> str:
    """Those settings that were searched over."""
    settings = content.get("settings", {})
    searched = content.get("searched", {}).get("ranges", settings)
    shown = {name: settings[name] for name in searched if name in settings}
    return ", ".join(f"{name} = {_short(value)}" for name, value in shown.items())


def _cell(score: float | None) -> str | Estimate:
    return MISSING if score is None else Estimate(float(score), float("inf"), 1)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
