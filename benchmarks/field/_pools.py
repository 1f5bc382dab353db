"""Tasks as finite pools: configurations in the unit cube, and the value of each of them.

LCBench (Zimmer, Lindauer and Hutter 2021) is 35 data sets by 2,000 configurations of a neural
network, in one Parquet file (`--lcbench`); GLMNET, RPart and XGBoost are shipped with the package.
Which tasks choose (development) and which are reported (test) is fixed in `split.json`; the test
tasks of the shipped tables are the paper's.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Float

import metaprior as mp
from metaprior.data import Space

SPLIT = Path(__file__).parent / "split.json"
TABLES = ("glmnet", "rpart", "xgboost")
LCBENCH_SPACE = mp.Space(
    batch_size=mp.Integer(16, 512, log=True),
    learning_rate=mp.Real(1e-4, 1e-1, log=True),
    momentum=mp.Real(0.1, 0.99),
    weight_decay=mp.Real(1e-5, 1e-1),
    num_layers=mp.Integer(1, 5),
    max_units=mp.Integer(64, 1024, log=True),
    max_dropout=mp.Real(0.0, 1.0),
)


@dataclass(frozen=True)
class Pool:
    """One task.

    - `x`: configurations in the unit cube; `y`: their values, larger is better.
    """

    name: str
    x: Float[np.ndarray, "m d"]
    y: Float[np.ndarray, " m"]

    @property
    def gap(self) -> float:
        """From the median configuration to the best one."""
        return float(np.max(self.y) - np.median(self.y))


@dataclass(frozen=True)
class Family:
    """Tasks over one space, in two groups that never mix."""

    name: str
    space: Space
    development: tuple[Pool, ...]
    test: tuple[Pool, ...]


def family_named(name: str, lcbench: Path | None) -> Family:
    """LCBench or one of the shipped tables."""
    if name in TABLES:
        return _shipped(name)
    if lcbench is None or not lcbench.is_file():
        raise FileNotFoundError(
            "LCBench is not shipped; give its Parquet file with --lcbench, or leave the family out."
        )
    return _lcbench(lcbench)


@cache
def _lcbench(path: Path) -> Family:
    import pandas as pd

    rows = pd.read_parquet(path)
    names = list(LCBENCH_SPACE.names)
    pools = {}
    for task, own in rows.groupby("openml_task_id"):
        points = [dict(zip(names, row, strict=True)) for row in own[names].to_numpy().tolist()]
        y = own["val_accuracy"].to_numpy(float)
        pools[str(task)] = Pool(str(task), LCBENCH_SPACE.encode(points), y)
    return _split("lcbench", LCBENCH_SPACE, pools)


@cache
def _shipped(name: str) -> Family:
    from metaprior.lab.environments import Table

    table = Table(name)
    stacks = (table.meta_train_tasks(), table.extra_tasks(), table.meta_test_tasks())
    pools = {}
    for stack in stacks:
        for i, data_id in enumerate(np.asarray(stack.data_id)):
            valid = np.asarray(stack.valid[i])
            x, y = np.asarray(stack.points[i])[valid], np.asarray(stack.values[i])[valid]
            pools[str(data_id)] = Pool(str(data_id), x, y)
    return _split(name, table.space, pools)


def _split(name: str, space: Space, pools: dict[str, Pool]) -> Family:
    groups = json.loads(SPLIT.read_text())[name]
    development, test = (tuple(pools[i] for i in groups[g]) for g in ("development", "test"))
    return Family(name, space, development, test)
