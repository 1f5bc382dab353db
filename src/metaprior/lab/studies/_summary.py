"""A few numbers for each method on each environment: what a person wants to see first."""

from typing import Any

from metaprior.lab.studies._records import DataFrame
from metaprior.lab.studies._search import choose
from metaprior.lab.studies._specification import Specification
from metaprior.metrics import mean_and_interval

METRICS = {
    "supervised": ("log_likelihood", "calibration_error", "rmse"),
    "offline": ("simple_regret", "inference_regret"),
    "lifelong": ("simple_regret", "inference_regret"),
    "search": ("simple_regret", "inference_regret"),
    "calibration": ("calibration_error", "log_likelihood"),
}


def summary(specification: Specification, records: DataFrame) -> list[dict[str, Any]]:
    """Mean and half-width of the 95 % interval of each metric, by environment and method.

    They are those of the last step, of the last run in a lifelong study, and of the chosen
    configuration in a search. A metric that is nowhere a number is left out.
    """
    kind = specification["kind"]
    found = []
    for entrant in specification["entrants"]:
        row = {name: entrant[name] for name in ("environment", "method")}
        here = records["environment"] == entrant["environment"]
        some = _shown(kind, records[here & (records["method"] == entrant["method"])])
        for metric in METRICS[kind]:
            values = some[metric].dropna().to_numpy()
            if len(values):
                mean, half_width = mean_and_interval(values)
                # One repetition says nothing about the spread, and JSON has no infinity.
                known = float(half_width) if len(values) > 1 else None
                row[metric] = {"mean": float(mean), "half_width_95": known, "count": len(values)}
        if len(some):
            found.append(row)
    return found


def _shown(kind: str, records: DataFrame) -> DataFrame:
    """The rows that stand for all of one method on one environment."""
    if kind == "search" and len(records):
        chosen = choose(records).get("scores", {}).get("configuration")
        return records[records["configuration"] == chosen]
    for name in ("run", "step"):
        if name in records:
            records = records[records[name] == records[name].max()]
    if "level" in records:  # the metrics are the same at all levels
        records = records[records["level"] == records["level"].min()]
    return records
