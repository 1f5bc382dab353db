"""Tables with a row for each method: estimates with the best in bold, and wins, ties and losses."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from metaprior.lab.plots._estimates import (
    Better,
    Comparison,
    by_environment,
    by_method,
    estimate,
)
from metaprior.lab.plots._looks import METHODS, OURS, in_order, looks_of, title_of
from metaprior.lab.plots._tables import MISSING, Bold, Cell, Estimate, ResultTable
from metaprior.lab.studies import DataFrame

# The estimates of one column, by method.
Column = Mapping[str, Estimate]
# By method, then by environment.
Comparisons = Mapping[str, Mapping[str, Comparison]]

HOW = (
    "A win or a loss is a difference, seed by seed and task by task, whose 95 % interval leaves "
    "out zero."
)


def column_of(rows: DataFrame, value: str) -> dict[str, Estimate]:
    """The mean of `value` for each method."""
    return {name: estimate(each[value]) for name, each in by_method(rows).items()}


def columns_by_environment(rows: DataFrame, value: str) -> dict[str, dict[str, Estimate]]:
    """The mean of `value` for each environment and method."""
    return {name: column_of(group, value) for name, group in by_environment(rows).items()}


def method_table(
    title: str, label: str, columns: Mapping[str, Column], better: Better, note: str
) -> ResultTable:
    """A table of `columns` by heading; methods in the order of legends."""
    looks = looks_of(name for column in columns.values() for name in column)
    cells = cells_by_method(columns.values(), list(looks), better)
    rows = [[look.label, *cells[name]] for name, look in looks.items()]
    return ResultTable(title, label, ["", *columns], rows, note)


def cells_by_method(
    columns: Iterable[Column], methods: Sequence[str], better: Better
) -> dict[str, list[Cell]]:
    """The row of each of `methods`, the best of each column in bold."""
    marked = [_marked([column.get(name) for name in methods], better) for column in columns]
    return {name: [column[i] for column in marked] for i, name in enumerate(methods)}


def best_of(column: Column, better: Better) -> str | None:
    """The method with the best mean, if any mean is known."""
    known = {name: found.mean for name, found in column.items() if np.isfinite(found.mean)}
    if not known:
        return None
    return (max if better == "higher" else min)(known, key=lambda name: known[name])


def comparison_table(comparisons: Comparisons, what: str, label: str) -> ResultTable:
    """A row for each method, a column for each environment, and how often each verdict came."""
    label_of = {name: look.label for name, look in looks_of(comparisons).items()}
    environments = in_order(name for found in comparisons.values() for name in found)
    rows = []
    for method, found in comparisons.items():
        verdicts = [found[name].verdict if name in found else MISSING for name in environments]
        rows.append([label_of[method], *verdicts, _score(found)])
    return ResultTable(
        f"{METHODS[OURS].label} against each method: {what}",
        label,
        ["", *(title_of(name) for name in environments), "wins/ties/losses"],
        rows,
        HOW,
    )


def comparison_summary(comparisons: Comparisons) -> dict[str, Any]:
    """The same for programs, with the advantages and their intervals."""
    return {
        method: {"wins_ties_losses": _score(found), "environments": dict(found)}
        for method, found in comparisons.items()
    }


def _marked(cells: Sequence[Estimate | None], better: Better) -> list[Cell]:
    """Equal means stand out together; nothing does where there is nothing to be better than."""
    means = [cell.mean for cell in cells if cell is not None and np.isfinite(cell.mean)]
    choose = max if better == "higher" else min
    best = choose(means) if len(means) > 1 else np.nan
    return [
        MISSING if cell is None else Bold(cell) if cell.mean == best else cell for cell in cells
    ]


def _score(found: Mapping[str, Comparison]) -> str:
    counts = Counter(comparison.verdict for comparison in found.values())
    return f"{counts['win']}/{counts['tie']}/{counts['loss']}"
