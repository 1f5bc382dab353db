"""LCBench: final validation accuracies of 2,000 neural networks on 35 OpenML tasks.

Zimmer, Lindauer and Hutter, "Auto-PyTorch Tabular", 2021. All tasks have the same configurations.
Which tasks are learned from, chosen on and reported on is fixed in `tables/lcbench_split.json`.
"""

import json
from functools import cache
from importlib import resources

import numpy as np

from metaprior.data import Integer, Real, Space
from metaprior.lab.environments._learners import Learner, Split
from metaprior.lab.environments._table_files import Rows

_TABLES = resources.files("metaprior.lab.environments") / "tables"
LCBENCH = Learner(
    Space(
        batch_size=Integer(16, 512, log=True),
        learning_rate=Real(1e-4, 1e-1, log=True),
        momentum=Real(0.1, 0.99),
        weight_decay=Real(1e-5, 1e-1),
        num_layers=Integer(1, 5),
        max_units=Integer(64, 1024, log=True),
        max_dropout=Real(0.0, 1.0),
    ),
    run_length=25,
)


def lcbench_rows() -> Rows:
    """All configurations on all tasks; values are accuracies in per cent."""
    space = LCBENCH.space
    with (_TABLES / "lcbench.npz").open("rb") as file, np.load(file) as arrays:
        columns = [arrays[name].tolist() for name in space.names]
        ids, values = arrays["openml_task_id"].astype(int), arrays["val_accuracy"].astype(float)
    rows = zip(*columns, strict=True)
    points = space.encode([dict(zip(space.names, row, strict=True)) for row in rows])
    return Rows(np.repeat(ids, len(points)), np.tile(points, (len(ids), 1)), values.ravel())


@cache
def lcbench_split() -> Split:
    """The tasks of each kind, by their OpenML identifiers."""
    groups = json.loads((_TABLES / "lcbench_split.json").read_text(encoding="utf-8"))
    return Split(*(tuple(groups[name]) for name in Split._fields))
