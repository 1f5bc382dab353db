"""The supervised study: how good the predictions are, beside the numbers that the paper prints.

Columns of the records: `reading`, `seed`, `task`, `log_likelihood`, `calibration_error`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from metaprior.lab.plots._estimates import Better, compare_with_others, measured
from metaprior.lab.plots._looks import key_of, looks_of, title_of
from metaprior.lab.plots._method_tables import (
    Column,
    best_of,
    cells_by_method,
    columns_by_environment,
    comparison_summary,
    comparison_table,
)
from metaprior.lab.plots._published import CALIBRATION_ERROR, CITATION, LOG_LIKELIHOOD, Published
from metaprior.lab.plots._report import StudyReport, require_columns
from metaprior.lab.plots._tables import Estimate, ResultTable
from metaprior.lab.studies import DataFrame, StudyResults

SAMPLES = ("seed", "task")
COLLECTED = "collected"
# What the tables of the other reading are called.
READINGS = {"uniform": ", uniform points"}
# As many as the paper prints.
DECIMALS = 3
NOTE = (
    "Mean over seeds and tasks ± half of the 95 % interval; the best mean in bold, ours among ours "
    f"and the paper's among the paper's. Paper: {CITATION}."
)


class _Measure(NamedTuple):
    words: str
    better: Better
    published: Published


MEASURES = {
    "log_likelihood": _Measure("Test log-likelihood", "higher", LOG_LIKELIHOOD),
    "calibration_error": _Measure("Calibration error", "lower", CALIBRATION_ERROR),
}


def supervised_report(results: StudyResults) -> StudyReport:
    """One table for each reading of the paper and measure, and F-PACOH against each method."""
    require_columns(results, {*SAMPLES, *MEASURES})
    report = StudyReport({}, {}, {})
    for reading, rows in by_reading(results.records).items():
        for value, measure in MEASURES.items():
            if len(known := measured(rows, value)):
                named = measure._replace(words=measure.words + READINGS.get(reading, ""))
                suffix = f"-{reading}" if reading in READINGS else ""
                _add(report, known, value, named, value.replace("_", "-") + suffix)
    return report


def by_reading(records: DataFrame) -> dict[str, DataFrame]:
    """The records of each reading; records without readings have collected points."""
    if "reading" not in records:
        return {COLLECTED: records}
    return {str(reading): rows for reading, rows in records.groupby("reading")}


def _add(report: StudyReport, rows: DataFrame, value: str, measure: "_Measure", name: str) -> None:
    columns = columns_by_environment(rows, value)
    report.tables[name] = [_table(columns, measure, name)]
    found: dict[str, Any] = {
        "environments": {
            environment: {"best": best_of(column, measure.better), "methods": column}
            for environment, column in columns.items()
        }
    }
    if compared := compare_with_others(rows, value, SAMPLES, measure.better):
        words, label = measure.words.lower(), f"{name}-comparison"
        report.tables[label] = [comparison_table(compared, words, label)]
        found["comparison"] = comparison_summary(compared)
    report.summary[name.replace("-", "_")] = found


def _table(columns: Mapping[str, Column], measure: _Measure, label: str) -> ResultTable:
    """A row for each method, and below it what the paper prints for it."""
    looks = looks_of(name for column in columns.values() for name in column)
    ours = cells_by_method(columns.values(), list(looks), measure.better)
    printed = [_printed(environment, measure.published) for environment in columns]
    theirs = cells_by_method(printed, list(measure.published), measure.better)
    rows = []
    for name, look in looks.items():
        rows.append([look.label, *ours[name]])
        if key_of(name) in theirs:
            rows.append([f"{look.label}, paper", *theirs[key_of(name)]])
    header = ["", *(title_of(environment) for environment in columns)]
    return ResultTable(measure.words, label, header, rows, NOTE, DECIMALS)


def _printed(environment: str, published: Published) -> dict[str, Estimate]:
    """What the paper prints for an environment, by method; how many samples, it does not say."""
    key = key_of(environment)
    return {
        method: Estimate(*numbers[key], count=0)
        for method, numbers in published.items()
        if key in numbers
    }
