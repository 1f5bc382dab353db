"""Checks of the records that explanations rest on."""

from typing import Any

from benchmarks.results._statistics import DataFrame

# A run that has gone wrong: its last regret is above this share of random search's first.
WRONG = 0.01


def stuck(offline: DataFrame) -> Any:
    """The share of runs, by method and environment, that end badly and have not moved for the
    second half, of those environments on which random search ran as well."""
    first, last = offline["step"].min(), offline["step"].max()
    half = offline["step"][offline["step"] <= last / 2].max()
    keys = ["method", "environment", "seed", "task"]
    runs = offline[offline["step"].isin((first, half, last))]
    wide = runs.pivot(index=keys, columns="step", values="simple_regret").reset_index()
    random = wide[wide["method"] == "RandomSearch"].groupby("environment")[first].mean()
    wide = wide.merge(random.rename("random"), left_on="environment", right_index=True)
    bad = wide[last] > WRONG * wide["random"]
    wide["stuck"] = bad & (wide[last] == wide[half])
    return wide.groupby(["method", "environment"])["stuck"].mean()
