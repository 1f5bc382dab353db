"""From kept records to samples: one number for each entrant, seed and task."""

from benchmarks.results._kept import COLUMNS
from benchmarks.results._statistics import DataFrame

# Environments that answers count: the mixture is for calibration alone.
UNCOUNTED = "mixture1d"


def value_of(rows: DataFrame, column: str) -> DataFrame:
    """Samples of one column, averaged over what else the rows differ in; entrants that never have
    it are left out."""
    means = rows.groupby([*COLUMNS, "unit"], as_index=False)[column].mean()
    return means.rename(columns={column: "value"}).dropna(subset="value")


def at_step(offline: DataFrame, step: int | None, column: str) -> DataFrame:
    """Samples of a regret after `step` queries, after the last one if that is `None`."""
    last = offline.groupby("environment")["step"].transform("max")
    return value_of(offline[offline["step"] == (last if step is None else step)], column)


def cumulative(lifelong: DataFrame) -> DataFrame:
    """Samples of the inference regret summed over all steps and runs; NaN stays NaN."""
    keys = [*COLUMNS, "unit"]
    summed = lifelong.groupby(keys, as_index=False)["inference_regret"].sum(min_count=1)
    return value_of(summed, "inference_regret")


def pooled_error(supervised: DataFrame) -> DataFrame:
    """Samples of the calibration error of all points of a seed: one for each seed."""
    once = supervised.drop_duplicates(["environment", "method", "reading", "seed"])
    once = once.assign(task=0, unit=once["seed"].astype(str))
    return value_of(once, "calibration_error_pooled")


def plain(samples: DataFrame) -> DataFrame:
    """The samples of entrants without variants, on the environments that answers count."""
    counted = samples["environment"] != UNCOUNTED
    return samples[~samples["method"].str.contains("+", regex=False) & counted]


def partial_in(samples: DataFrame) -> tuple[str, ...]:
    """Entrants with fewer seeds than the others."""
    seeds = samples.groupby("method")["seed"].nunique()
    return tuple(str(name) for name in seeds.index[seeds < seeds.max()])
