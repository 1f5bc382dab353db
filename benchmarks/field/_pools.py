"""Tasks as finite pools: configurations in the unit cube, and the value of each of them.

LCBench (Zimmer, Lindauer and Hutter 2021) is 35 data sets by the same 2,000 configurations of a
neural network; the configurations of GLMNET, RPart and XGBoost differ from task to task. All are
shipped with the package. Which tasks choose (development) and which are
reported (test) is fixed in `split.json`; the test tasks of the shipped tables are the paper's.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

import metaprior as mp
from benchmarks._tables import LCBENCH
from metaprior.data import Space

SPLIT = Path(__file__).parent / "split.json"
TABLES = ("glmnet", "rpart", "xgboost")
FAMILIES = ("lcbench", *TABLES)
# Families whose tasks all have the same configurations, row by row.
SHARED_ROWS = ("lcbench",)
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

    def kept(self, kept: Bool[np.ndarray, " m"]) -> "Pool":
        """The task with some of its configurations only."""
        return Pool(self.name, self.x[kept], self.y[kept])


@dataclass(frozen=True)
class Family:
    """Tasks over one space, in two groups that never mix."""

    name: str
    space: Space
    development: tuple[Pool, ...]
    test: tuple[Pool, ...]


@cache
def family_named(name: str) -> Family:
    """LCBench or one of the shipped tables."""
    return _lcbench() if name == "lcbench" else _shipped(name)


def _lcbench() -> Family:
    with np.load(LCBENCH) as arrays:
        columns = [arrays[name].tolist() for name in LCBENCH_SPACE.names]
        names, values = arrays["openml_task_id"].tolist(), arrays["val_accuracy"].astype(float)
    points = [
        dict(zip(LCBENCH_SPACE.names, row, strict=True)) for row in zip(*columns, strict=True)
    ]
    x = LCBENCH_SPACE.encode(points)
    pools = {str(name): Pool(str(name), x, y) for name, y in zip(names, values, strict=True)}
    return _split("lcbench", LCBENCH_SPACE, pools)


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
