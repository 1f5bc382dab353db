"""The shipped table of LCBench, made from the Parquet file of LCBench's final values.

    python tools/make_lcbench.py lcbench.parquet src/metaprior/lab/environments/tables/lcbench.npz

Needs pandas and pyarrow. All tasks have the same configurations, in the same order; they are
written once.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

HYPER_PARAMETERS = (
    "batch_size",
    "learning_rate",
    "momentum",
    "weight_decay",
    "num_layers",
    "max_units",
    "max_dropout",
)
FEATURES = ("instances", "classes", "features")


def arrays_of(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Configurations, validation accuracies (tasks x configurations), and features of the tasks."""
    groups = [group for _, group in frame.groupby("openml_task_id", sort=True)]
    first = groups[0][list(HYPER_PARAMETERS)].to_numpy()
    for group in groups:
        if not np.array_equal(group[list(HYPER_PARAMETERS)].to_numpy(), first):
            raise ValueError("The tasks have different configurations.")
        if group[list(FEATURES)].nunique().max() != 1:
            raise ValueError("A feature changes within a task.")
    arrays = {name: groups[0][name].to_numpy() for name in HYPER_PARAMETERS}
    arrays |= {f"task_{name}": np.array([g[name].iloc[0] for g in groups]) for name in FEATURES}
    arrays["openml_task_id"] = np.array([group["openml_task_id"].iloc[0] for group in groups])
    arrays["val_accuracy"] = np.stack([group["val_accuracy"].to_numpy() for group in groups])
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the table of LCBench's final values.")
    parser.add_argument("source", type=Path, help="lcbench.parquet")
    parser.add_argument("out", type=Path, help="lcbench.npz")
    arguments = parser.parse_args()
    arrays = arrays_of(pd.read_parquet(arguments.source))
    np.savez_compressed(arguments.out, allow_pickle=False, **arrays)
    print("{} tasks, {} configurations".format(*arrays["val_accuracy"].shape))


if __name__ == "__main__":
    main()
