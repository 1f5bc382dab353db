"""The records that are kept: what the page needs of the studies, small enough for the repository.

    offline.parquet       regrets after some of the steps
    lifelong.parquet      of each run: simple regret at its end, inference regret summed over it
    supervised.parquet    likelihoods and calibration errors by reading
    calibration.parquet   the same by size of the context
    coverage.parquet      frequencies by level, averaged over tasks
    chosen/, chosen-by-paper/   what the searches chose, with the work they did
    run.json              what was run, when, on what and for how long

Every row of the first four has `environment`, `method`, `seed`, `task` and `unit`: what it repeats
(see `_statistics.py`). An entrant that used what the paper's criterion chose is a variant of its
method: `FPacohMap+by-paper`.
"""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from benchmarks.results._pieces import BY_PAPER, PIECES, SOURCES, Piece
from benchmarks.results._run import LOG, collect_choices
from benchmarks.results._statistics import DataFrame
from metaprior.lab.environments import Table, known_families
from metaprior.lab.studies import holds_study, keys_of, read_records

RECORDS = Path(__file__).parent / "records"
COLUMNS = ["environment", "method", "seed", "task"]
STEPS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 70, 100)
# More datasets than any table has; asked for fewer, a table gives the first of the same order.
MANY = 1000


class Kept(NamedTuple):
    """All records that are kept; a study that was not run is an empty frame."""

    offline: DataFrame
    lifelong: DataFrame
    supervised: DataFrame
    calibration: DataFrame
    coverage: DataFrame


def keep(studies: Path, records: Path) -> list[Path]:
    """Write what the page needs of all studies in `studies`, finished or not."""
    if not any(holds_study(studies / name) for name in PIECES):
        raise ValueError(f"There is no piece of the full study in {studies}; run some first.")
    records.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, frame in condensed(studies)._asdict().items():
        paths.append(records / f"{name}.parquet")
        _write(frame, paths[-1])
    for chosen, source in SOURCES.items():
        if any(studies.glob(f"search-*/{source}")):
            folder = collect_choices(studies, chosen)
            shutil.copytree(folder, records / chosen, dirs_exist_ok=True)
    if (studies / LOG).is_file():
        paths.append(Path(shutil.copy(studies / LOG, records / LOG)))
    return paths


def read_kept(records: Path) -> Kept:
    """The records that `keep` wrote."""
    frames = []
    for name in Kept._fields:
        path = records / f"{name}.parquet"
        if not path.is_file():
            raise ValueError(
                f"There is no {path}; make it with `python -m benchmarks.results keep`."
            )
        frame = pd.read_parquet(path)
        frames.append(frame.astype({name: str for name in frame.select_dtypes("category")}))
    return Kept(*frames)


def condensed(studies: Path) -> Kept:
    """What is kept of the studies in `studies`."""
    return Kept(
        _gathered(studies, "offline", _offline),
        _gathered(studies, "lifelong", _lifelong),
        _gathered(studies, "supervised", _supervised),
        _gathered(studies, "calibration", _calibration),
        _gathered(studies, "calibration", _coverage),
    )


def _gathered(studies: Path, kind: str, condense: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """All pieces of a kind as one frame."""
    found = [
        condense(_named(read_records(studies / piece.name), piece))
        for piece in PIECES.values()
        if piece.kind == kind and holds_study(studies / piece.name)
    ]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=COLUMNS)


def _named(records: DataFrame, piece: Piece) -> DataFrame:
    """The records with the names that the page has for the entrants of this piece."""
    ending = "+by-paper" if piece.uses == BY_PAPER else ""
    return records.assign(method=records["method"] + ending)


def _offline(records: DataFrame) -> DataFrame:
    last = records.groupby("environment")["step"].transform("max")
    kept = records[records["step"].isin(STEPS) | (records["step"] == last)]
    columns = ["step", "simple_regret", "inference_regret"]
    return with_units(kept[[*COLUMNS, *columns]], tested_dataset)


def _lifelong(records: DataFrame) -> DataFrame:
    """Tasks depend on the sequence alone, so that seeds repeat them: the sequence is the unit."""
    records = records.assign(task=records["sequence"])
    runs = records.groupby([*COLUMNS, "run"], as_index=False)
    ends = runs["simple_regret"].min()
    summed = runs["inference_regret"].sum(min_count=1)
    found = ends.merge(summed, on=[*COLUMNS, "run"])
    return found.assign(unit=found["task"].astype(str))


def _supervised(records: DataFrame) -> DataFrame:
    """Tasks are past runs."""
    columns = ["log_likelihood", "log_likelihood_standardised"]
    columns += ["calibration_error", "calibration_error_pooled"]
    return with_units(records[[*COLUMNS, "reading", *columns]], learned_dataset)


def _calibration(records: DataFrame) -> DataFrame:
    # The metrics are repeated at every level.
    once = records[records["level"] == records["level"].min()]
    columns = ["context", "log_likelihood", "calibration_error"]
    return with_units(once[[*COLUMNS, *columns]], tested_dataset)


def _coverage(records: DataFrame) -> DataFrame:
    keys = ["environment", "method", "context", "level"]
    return records.groupby(keys, as_index=False)["frequency"].mean()


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


def _write(frame: DataFrame, path: Path) -> None:
    """Names as categories, numbers with seven digits: small."""
    small = frame.astype({name: "float32" for name in frame.select_dtypes("float")})
    small = small.astype({name: "int32" for name in small.select_dtypes("int")})
    names = {name: "category" for name in small.select_dtypes(["object", "string"])}
    small.astype(names).to_parquet(path, compression="zstd", index=False)
