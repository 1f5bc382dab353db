"""LCBench tasks: accuracy, and what training costs, of any configuration.

The table has 2,000 configurations of a neural network on 35 data sets, and
hosts ask anywhere between them. Accuracy is therefore that of a fixed regressor per data set, extra
trees that were fitted to all its rows: it returns the recorded accuracy at a recorded configuration
and never leaves the range of those recorded. The nearest recorded configuration would be simpler
and much worse (see the page): in seven dimensions it is far away, and its accuracy is that of a
network of another size, which a search for cheap networks would exploit.

The cost is a proxy, `log(max_units * num_layers)`, and the same function on every data set.
"""

import json
from functools import cache

import numpy as np
from jaxtyping import Float
from sklearn.ensemble import ExtraTreesRegressor

from benchmarks._tables import LCBENCH
from benchmarks.field._pools import LCBENCH_SPACE as SPACE
from benchmarks.field._pools import SPLIT
from benchmarks.hosts._tasks import Point, Task
from metaprior.bo import hypervolume, on_front

OBJECTIVES = {"accuracy": "maximize", "cost": "minimize"}
NUM_TREES = 100
# The front: sizes tried for every recorded configuration, then for those near the front.
LAYERS, COARSE, FINE, NUM_NEAR = (1, 2, 3, 4), 9, 65, 100


@cache
def table() -> dict[str, np.ndarray]:
    """The arrays of the table."""
    with np.load(LCBENCH) as arrays:
        return {name: arrays[name] for name in arrays}


def names(group: str) -> list[str]:
    """The data sets of a group: `"development"` or `"test"`."""
    return json.loads(SPLIT.read_text())["lcbench"][group]


@cache
def rows() -> list[Point]:
    """The recorded configurations."""
    columns = [table()[name].tolist() for name in SPACE.names]
    return [dict(zip(SPACE.names, row, strict=True)) for row in zip(*columns, strict=True)]


@cache
def encoded() -> Float[np.ndarray, "n 7"]:
    """The recorded configurations in the unit cube."""
    return SPACE.encode(rows())


def recorded(name: str) -> Float[np.ndarray, "n 2"]:
    """Accuracy and cost of the recorded configurations of a data set."""
    (index,) = np.flatnonzero(table()["openml_task_id"].astype(str) == name)
    return np.column_stack([table()["val_accuracy"][index].astype(float), cost(rows())])


def cost(points: list[Point]) -> Float[np.ndarray, " n"]:
    """The proxy for the cost of training."""
    return np.log([float(each["max_units"] * each["num_layers"]) for each in points])


@cache
def trees(name: str) -> ExtraTreesRegressor:
    """The accuracy of any configuration of a data set, in the unit cube."""
    model = ExtraTreesRegressor(NUM_TREES, random_state=0)
    return model.fit(encoded(), recorded(name)[:, 0])


def evaluate(name: str, points: list[Point]) -> Float[np.ndarray, "n 2"]:
    """Accuracy and cost of configurations."""
    return np.column_stack([trees(name).predict(SPACE.encode(points)), cost(points)])


@cache
def task(name: str, count: int) -> Task:
    """A data set with accuracy alone (`count` 1), or with both objectives (2).

    Volume counts from the median recorded accuracy and the highest cost there is.
    """
    known, signs = recorded(name), np.array([1.0, -1.0])[:count]
    reference = np.array([np.median(known[:, 0]), np.log(1024 * 5)])[:count]
    best = known if count == 1 else front(name)
    volume = hypervolume(best[:, :count] * signs, reference * signs)
    directions = dict(list(OBJECTIVES.items())[:count])
    return Task(
        name, SPACE, directions, lambda points: evaluate(name, points)[:, :count], reference, volume
    )


def front(name: str) -> Float[np.ndarray, "n 2"]:
    """The best trade-offs that are known: every recorded configuration with other sizes of the
    network, and those nearest to the front with more of them."""
    coarse = [resized(row, size, n) for row in rows() for size in _sizes(COARSE) for n in LAYERS]
    found = evaluate(name, coarse)
    left, near = np.arange(len(found)), []
    while len(near) < NUM_NEAR:
        best = on_front_of(found[left])
        near += left[best].tolist()
        left = np.delete(left, best)
    fine = [resized(coarse[i], size) for i in near for size in _sizes(FINE)]
    found = np.vstack([found, evaluate(name, fine)])
    return found[on_front_of(found)]


def on_front_of(values: Float[np.ndarray, "n 2"]) -> list[int]:
    """The rows that no other one beats, of many: only the best accuracy of each cost can be one."""
    order = np.lexsort((-values[:, 0], values[:, 1]))
    best = np.maximum.accumulate(values[order, 0])
    rising = order[np.concatenate([[True], best[1:] > best[:-1]])]
    return rising[on_front(values[rising] * [1.0, -1.0])].tolist()


def resized(point: Point, size: int, layers: int | None = None) -> Point:
    """The configuration with another width, and perhaps another depth."""
    return {**point, "max_units": size, "num_layers": layers or point["num_layers"]}


def _sizes(count: int) -> list[int]:
    return [round(64 * 16 ** (k / (count - 1))) for k in range(count)]
