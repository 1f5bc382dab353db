"""From the records of the studies to samples: one number for each method, seed and task."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pandas as pd

from benchmarks.results._statistics import DataFrame
from metaprior.lab.environments import Table, known_families
from metaprior.lab.studies import keys_of, read_records

COLUMNS = ["environment", "method", "seed", "task"]
# The study of a method that has fewer seeds than the others.
FULL, PARTIAL = "offline", "offline-rwgp"
# More datasets than any table has; asked for fewer, a table gives the first of the same order.
MANY = 1000


def offline_records(studies: Path) -> DataFrame:
    """Rows of both offline studies, with the unit of each row."""
    found = [read_records(studies / name) for name in (FULL, PARTIAL)]
    some = [each[[*COLUMNS, "step", "simple_regret", "inference_regret"]] for each in found]
    return with_units(pd.concat(some, ignore_index=True), tested_dataset)


def supervised_records(studies: Path) -> DataFrame:
    """Rows of the supervised study, whose tasks are past runs."""
    records = read_records(studies / "supervised")
    kept = records[[*COLUMNS, "log_likelihood", "calibration_error"]]
    return with_units(kept, learned_dataset)


def calibration_records(studies: Path) -> DataFrame:
    """Rows of the calibration study, one for each size of the context."""
    records = read_records(studies / "calibration")
    # The metrics are repeated at every level.
    once = records[records["level"] == records["level"].min()]
    kept = once[[*COLUMNS, "context", "log_likelihood", "calibration_error"]]
    return with_units(kept, tested_dataset)


def lifelong_records(studies: Path) -> DataFrame:
    """Rows of the lifelong study. Tasks depend on the sequence alone, so that seeds repeat them:
    the sequence is the unit."""
    records = read_records(studies / "lifelong")
    kept = [*COLUMNS[:3], "sequence", "run", "step", "simple_regret", "inference_regret"]
    return records[kept].assign(task=records["sequence"], unit=records["sequence"].astype(str))


def with_units(rows: DataFrame, dataset: Callable[[str, int, int], int]) -> DataFrame:
    """Rows with their units: the dataset on a table, else seed and task.

    - `dataset`: of an environment, a seed and a task; `task` is a place in an order that differs
      from seed to seed, and says nothing about the dataset alone.
    """
    keys = rows[["environment", "seed", "task"]].drop_duplicates()
    units = [
        str(dataset(environment, seed, task)) if is_table(environment) else f"{seed}/{task}"
        for environment, seed, task in keys.itertuples(index=False)
    ]
    return rows.merge(keys.assign(unit=units), on=["environment", "seed", "task"], how="left")


def value_of(rows: DataFrame, column: str) -> DataFrame:
    """Samples of one column, averaged over what else the rows differ in; methods that never have
    it are left out."""
    means = rows.groupby([*COLUMNS, "unit"], as_index=False)[column].mean()
    return means.rename(columns={column: "value"}).dropna(subset="value")


def cumulative(lifelong: DataFrame) -> DataFrame:
    """Samples of the inference regret summed over all steps and runs; NaN stays NaN."""
    keys = [*COLUMNS, "unit"]
    summed = lifelong.groupby(keys, as_index=False)["inference_regret"].sum(min_count=1)
    return value_of(summed, "inference_regret")


def is_table(environment: str) -> bool:
    return isinstance(known_families()[environment], Table)


def tested_dataset(environment: str, seed: int, task: int) -> int:
    """The dataset that is unseen task `task` of this seed."""
    return _tested(environment, seed)[task]


def learned_dataset(environment: str, seed: int, task: int) -> int:
    """The dataset that is past run `task` of this seed."""
    return _learned(environment, seed)[task]


@cache
def _tested(environment: str, seed: int) -> list[int]:
    with jax.enable_x64(True):
        tasks = known_families()[environment].test_tasks(MANY, key=keys_of(seed).tasks)
    return np.asarray(tasks.data_id).tolist()


@cache
def _learned(environment: str, seed: int) -> list[int]:
    with jax.enable_x64(True):
        key, _ = jax.random.split(keys_of(seed).history)
        tasks = known_families()[environment].training_tasks(MANY, key=key)
    return np.asarray(tasks.data_id).tolist()
