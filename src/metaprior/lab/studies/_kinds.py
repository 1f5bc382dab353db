"""What each kind of study runs, and the numbers that sum it up."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from metaprior.lab.studies import _calibration, _lifelong, _offline, _search, _supervised
from metaprior.lab.studies._choice import CANDIDATE, MEASURES, choose
from metaprior.lab.studies._folder import DataFrame
from metaprior.lab.studies._jobs import Job
from metaprior.lab.studies._specification import Specification
from metaprior.metrics import mean_and_interval


class _Kind(NamedTuple):
    """How a specification becomes jobs, and which metrics of their records are shown first."""

    jobs: Callable[[Specification], list[Job]]
    metrics: tuple[str, ...]


_REGRETS = ("simple_regret", "inference_regret")
_KINDS = {
    "supervised": _Kind(_supervised.jobs, ("log_likelihood", "calibration_error", "rmse")),
    "offline": _Kind(_offline.jobs, _REGRETS),
    "lifelong": _Kind(_lifelong.jobs, _REGRETS),
    "search": _Kind(_search.jobs, MEASURES),
    "calibration": _Kind(_calibration.jobs, ("calibration_error", "log_likelihood")),
}


def plan(specification: Specification) -> list[Job]:
    """All jobs of the study, in the order in which they are begun."""
    return _KINDS[specification["kind"]].jobs(specification)


def summary(specification: Specification, records: DataFrame) -> list[dict[str, Any]]:
    """Mean and half-width of the 95 % interval of each metric, by environment and method.

    They are those of the last step, of the last run in a lifelong study, of the first reading in a
    supervised one, and of the chosen configuration in a search. A metric that is nowhere a number
    is left out.
    """
    kind = specification["kind"]
    found = []
    for entrant in specification["entrants"]:
        row = {name: entrant[name] for name in ("environment", "method")}
        here = records["environment"] == entrant["environment"]
        some = _shown(specification, records[here & (records["method"] == entrant["method"])])
        for metric in _KINDS[kind].metrics:
            values = some[metric].dropna().to_numpy()
            if len(values):
                mean, half_width = mean_and_interval(values)
                # One repetition says nothing about the spread, and JSON has no infinity.
                known = float(half_width) if len(values) > 1 else None
                row[metric] = {"mean": float(mean), "half_width_95": known, "count": len(values)}
        if len(some):
            found.append(row)
    return found


def _shown(specification: Specification, records: DataFrame) -> DataFrame:
    """The rows that stand for all of one method on one environment."""
    if specification["kind"] == "search" and len(records):
        scores = choose(records, specification["criterion"])["scores"]
        mine = [records[name] == scores.get(name) for name in CANDIDATE]
        return records[np.logical_and(*mine)]
    if "reading" in records:
        records = records[records["reading"] == specification["readings"][0]]
    for name in ("run", "step"):
        if name in records:
            records = records[records[name] == records[name].max()]
    if "level" in records:  # the metrics are the same at all levels
        records = records[records["level"] == records["level"].min()]
    return records
