"""The shipped tables of evaluations, made from the Parquet files they were collected in.

    python tools/make_tables.py FOLDER_WITH_PARQUET src/metaprior/lab/environments/tables

Needs pandas and pyarrow. Every column that a table needs is written as its different values and a
code for each row: without loss, an eighth of the size, and readable with NumPy alone. Rows keep
their order. What the split says is checked against the one in the package, and not written.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from metaprior.lab.environments import LEARNERS, TEST_IDS, TRAINING_IDS, VALIDATION_IDS

SPLIT = {"train": TRAINING_IDS, "test": TEST_IDS, "extra": VALIDATION_IDS}


def compact(frame: pd.DataFrame, names: list[str]) -> dict[str, np.ndarray]:
    """Each named column as sorted different values and codes."""
    arrays = {}
    for name in names:
        values, codes = np.unique(frame[name].to_numpy(), return_inverse=True)
        if not np.isfinite(values).all() or len(values) > np.iinfo(np.uint16).max:
            raise ValueError(f"Column {name!r} has missing or too many different values.")
        arrays[f"{name}_values"] = values
        arrays[f"{name}_codes"] = codes.astype(np.uint16)
    return arrays


def checked(frame: pd.DataFrame, hyper_parameters: list[str]) -> pd.DataFrame:
    """The table, if its split is the package's and no configuration of a dataset is repeated."""
    for split, ids in SPLIT.items():
        foreign = set(frame.loc[frame["split"] == split, "data_id"]) - set(ids)
        if foreign:
            raise ValueError(f"Datasets {sorted(foreign)} are not in the split {split!r}.")
    if frame.duplicated(["data_id", *hyper_parameters]).any():
        raise ValueError("A configuration appears twice for one dataset.")
    return frame


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the shipped tables from Parquet files.")
    parser.add_argument("source", type=Path, help="folder with glmnet.parquet and so on")
    parser.add_argument("out", type=Path, help="folder for glmnet.npz and so on")
    arguments = parser.parse_args()
    for learner, (space, _) in LEARNERS.items():
        frame = pd.read_parquet(arguments.source / f"{learner}.parquet")
        if "booster" in frame:
            frame["booster"] = (frame["booster"] == 1).astype(int)  # -1 is linear, 1 is trees
        names = list(space.names)
        arrays = compact(checked(frame, names), ["data_id", *names, "auc"])
        np.savez_compressed(arguments.out / f"{learner}.npz", allow_pickle=False, **arrays)
        print(f"{learner}: {len(frame)} rows of {frame['data_id'].nunique()} datasets")


if __name__ == "__main__":
    main()
