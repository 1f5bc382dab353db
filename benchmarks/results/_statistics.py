r"""Averages, intervals and comparisons over repetitions of which some are not independent.

A *sample* is one number that a method got on one `(seed, task)` of one environment. Its *unit* says
what it repeats: samples of one unit are averaged first, and the interval is Student's over units,

$$ \bar u \pm t_{n-1,\,0.975} \; \hat\sigma(u_1, \dots, u_n) / \sqrt n $$

On a simulated family every `(seed, task)` is a new function, and a unit of its own. A table has few
datasets, and every seed meets them again: there the dataset is the unit.

Frames of samples have the columns `environment`, `method`, `seed`, `task`, `unit`, `value`.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from metaprior.lab.plots import Estimate
from metaprior.lab.studies import DataFrame
from metaprior.metrics import mean_and_interval

Better = Literal["lower", "higher"]
Verdict = Literal["win", "tie", "loss"]
PAIR = ["seed", "task"]


class Comparison(NamedTuple):
    """One method against another; the advantage is positive where the first is better."""

    verdict: Verdict
    advantage: Estimate


class Ranking(NamedTuple):
    """The method with the best mean, and all that cannot be told from it, itself among them."""

    best: str
    leaders: frozenset[str]


def estimate(samples: DataFrame) -> Estimate:
    """The mean over units and the half-width of its 95 % interval."""
    means = np.sort(samples.groupby("unit")["value"].mean().to_numpy())
    mean, half_width = mean_and_interval(means)
    return Estimate(float(mean), float(half_width), len(means))


def differences(first: DataFrame, second: DataFrame) -> DataFrame:
    """First minus second on every `(seed, task)` that both have, with its unit."""
    pairs = first.merge(second[[*PAIR, "value"]], on=PAIR, suffixes=("", "_of_second"))
    return pairs.assign(value=pairs["value"] - pairs["value_of_second"])


def compare(first: DataFrame, second: DataFrame, better: Better) -> Comparison:
    """Whether the first of two methods did better on one environment, pair by pair.

    A win or a loss is a mean difference whose 95 % interval leaves out zero.
    """
    paired = differences(first, second)
    if paired.empty:
        raise ValueError(
            f"{_names(first)} and {_names(second)} have no (seed, task) in common; compare methods "
            "of one study."
        )
    sign = 1.0 if better == "higher" else -1.0
    advantage = estimate(paired.assign(value=sign * paired["value"]))
    if advantage.mean > advantage.half_width:
        return Comparison("win", advantage)
    return Comparison("loss" if -advantage.mean > advantage.half_width else "tie", advantage)


def rank(samples: DataFrame, better: Better, partial: Sequence[str] = ()) -> Ranking:
    """The best method on one environment, and those that cannot be told from it.

    - `partial`: methods with fewer repetitions; they cannot be the best, since their mean is one
      over other tasks, but lead where they are not worse than the best on what both have.
    """
    methods = dict(iter(samples.groupby("method")))
    means = {name: estimate(some).mean for name, some in methods.items() if name not in partial}
    best = (min if better == "lower" else max)(means, key=lambda name: means[name])
    leaders = {
        name
        for name, some in methods.items()
        if name == best or compare(some, methods[best], better).verdict != "loss"
    }
    return Ranking(best, frozenset(leaders))


def against_others(
    samples: DataFrame, ours: str, better: Better
) -> dict[str, dict[str, Comparison]]:
    """`ours` against each other method: by method, then by environment, where `ours` ran."""
    found: dict[str, dict[str, Comparison]] = {}
    for environment, group in samples.groupby("environment"):
        methods: dict[Any, DataFrame] = dict(iter(group.groupby("method")))
        for name, some in methods.items():
            if name != ours and ours in methods:
                comparison = compare(methods[ours], some, better)
                found.setdefault(str(name), {})[str(environment)] = comparison
    return found


def score(comparisons: dict[str, Comparison]) -> tuple[int, int, int]:
    """Wins, ties and losses."""
    verdicts = [comparison.verdict for comparison in comparisons.values()]
    return verdicts.count("win"), verdicts.count("tie"), verdicts.count("loss")


def _names(samples: DataFrame) -> str:
    return ", ".join(sorted(samples["method"].unique())) or "no method"
