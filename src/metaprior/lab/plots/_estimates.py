"""From rows of records to averages, curves and comparisons.

Rows are those of a pandas frame with the columns `environment` and `method`. Averages do not
depend on the order of the rows, down to the last bit: values are sorted before they are added up.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.lab.plots._looks import OURS, in_order, key_of, looks_of
from metaprior.lab.plots._tables import Estimate
from metaprior.lab.studies import DataFrame
from metaprior.metrics import mean_and_interval

Better = Literal["lower", "higher"]


class MeanCurve(NamedTuple):
    """Means at some places, and the half-widths of their 95 % intervals."""

    x: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    half_width: Float[np.ndarray, " n"]


class Comparison(NamedTuple):
    """Whether the first of two methods did better, and by how much, on what both were tried on.

    The advantage is positive where the first did better. A win or a loss has an interval that
    leaves out zero; anything else is a tie.
    """

    verdict: Literal["win", "tie", "loss"]
    advantage: Estimate


def estimate(values) -> Estimate:
    """The mean of samples, taken as independent, and Student's 95 % interval."""
    mean, half_width = mean_and_interval(np.sort(np.asarray(values, float)))
    return Estimate(float(mean), float(half_width), len(values))


def curve(rows: DataFrame, x: str, value: str) -> MeanCurve:
    """The mean of `value` at each of the values of column `x`."""
    found = [(place, estimate(group)) for place, group in rows.groupby(x, sort=True)[value]]
    places, estimates = zip(*found, strict=True)
    mean, half_width, _ = zip(*estimates, strict=True)
    return MeanCurve(*(np.array(numbers, float) for numbers in (places, mean, half_width)))


def by_environment(rows: DataFrame) -> dict[str, DataFrame]:
    """The rows of each environment, in the order of the paper."""
    groups = dict(iter(rows.groupby("environment")))
    return {name: groups[name] for name in in_order(groups)}


def by_method(rows: DataFrame) -> dict[str, DataFrame]:
    """The rows of each method, in the order of legends."""
    groups = dict(iter(rows.groupby("method")))
    return {name: groups[name] for name in looks_of(groups)}


def measured(rows: DataFrame, value: str) -> DataFrame:
    """Rows of those methods that have this quantity at all: random search infers nothing, and its
    inference regret is not a number anywhere."""
    has = rows[value].notna().groupby([rows["environment"], rows["method"]]).transform("any")
    return rows[has]


def compare(
    ours: DataFrame, theirs: DataFrame, value: str, samples: Sequence[str], better: Better
) -> Comparison | None:
    """Two methods on one environment, sample by sample: the same seed, the same task.

    - `samples`: columns that say which rows belong together; rows without a partner are left out.
    """
    pairs = ours.merge(theirs, on=list(samples), suffixes=(" of ours", " of theirs"))
    if pairs.empty:
        return None
    sign = 1.0 if better == "higher" else -1.0
    difference = pairs[f"{value} of ours"] - pairs[f"{value} of theirs"]
    advantage = estimate(sign * difference)
    if advantage.mean - advantage.half_width > 0:
        return Comparison("win", advantage)
    if advantage.mean + advantage.half_width < 0:
        return Comparison("loss", advantage)
    return Comparison("tie", advantage)


def compare_with_others(
    rows: DataFrame, value: str, samples: Sequence[str], better: Better
) -> dict[str, dict[str, Comparison]]:
    """F-PACOH against every other method: by method, then by environment."""
    found: dict[str, dict[str, Comparison]] = {}
    for environment, group in by_environment(rows).items():
        methods = by_method(group)
        ours = next((methods[name] for name in methods if key_of(name) == OURS), None)
        for name, theirs in methods.items():
            if ours is None or key_of(name) == OURS:
                continue
            if (comparison := compare(ours, theirs, value, samples, better)) is not None:
                found.setdefault(name, {})[environment] = comparison
    return {name: found[name] for name in looks_of(found)}
