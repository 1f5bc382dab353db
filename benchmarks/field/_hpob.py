"""HPO-B (Pineda Arango, Jomaa, Wistuba and Grabocka 2021): its tasks, and its results' format.

    python -m benchmarks.field hpob --data hpob-data/ --out hpob/ --workers 16
    python -m benchmarks.field hpob-show hpob/*.json results/*.json

The data is not shipped. Its files hold, by search space and data set, configurations `X` in the
unit cube and responses `y` (a column), which are maximised:

| file | what |
|---|---|
| `meta-train-dataset.json`, `meta-validation-dataset.json` | tasks of the past, for each space |
| `meta-test-dataset.json` | new tasks |
| `bo-initializations.json` | by space, data set and seed (`test0` to `test4`): five first rows |

A file of results holds, by space, data set and seed, the best response so far, scaled to 0 to 1 on
the task: first after the five initial rows, then after each trial. `1 -` that is the normalised
regret, which is averaged over data sets and seeds of a space, and then over spaces.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.field._pools import Family, Pool
from benchmarks.field._runs import Searcher
from metaprior.data import Real, Space, Tasks

PAST_FILES = ("meta-train-dataset.json", "meta-validation-dataset.json")
TEST_FILE = "meta-test-dataset.json"
FIRST_ROWS_FILE = "bo-initializations.json"
SEEDS = ("test0", "test1", "test2", "test3", "test4")
NUM_TRIALS = 100
SHOWN_TRIALS = (15, 25, 50, 100)
# By search space, data set and seed: the best scaled response so far.
Results = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]


def family_of(folder: Path, search_space: str) -> Family:
    """The tasks of a search space: those of the past are for development, the others for test."""
    past: dict[str, Any] = {}
    for name in PAST_FILES:
        past |= _contents(folder / name).get(search_space, {})
    new = _contents(folder / TEST_FILE)
    if search_space not in new:
        raise ValueError(f"{TEST_FILE} has no search space {search_space}; it has {', '.join(new)}")
    development = tuple(_pool(name, task) for name, task in past.items())
    test = tuple(_pool(name, task) for name, task in new[search_space].items())
    space = Space(**{f"x{j}": Real(0.0, 1.0) for j in range(test[0].x.shape[1])})
    return Family(f"hpob {search_space}", space, development, test)


def search_spaces(folder: Path) -> list[str]:
    """All search spaces with tasks to test on."""
    return list(_contents(folder / TEST_FILE))


def first_rows(folder: Path) -> dict[str, dict[str, dict[str, list[int]]]]:
    """By search space, data set and seed: the rows that every method is given."""
    return _contents(folder / FIRST_ROWS_FILE)


def past_runs(family: Family, num: int, seed: int) -> Tasks:
    """All evaluations of the past tasks, or `num` of them drawn at random where there are more."""
    rng = np.random.default_rng(seed)
    runs = []
    for pool in family.development:
        rows = rng.permutation(len(pool.y))[:num]
        runs.append((family.space.decode(pool.x[rows]), pool.y[rows]))
    return Tasks.from_runs(runs, space=family.space)


def searched(
    search: Searcher, pool: Pool, first: Sequence[int], num_trials: int, seed: int
) -> list[float]:
    """What a file of results holds of one search: the best scaled response, after the first rows
    and after each trial. A pool that is exhausted stays at its best."""
    found = search(pool, len(first) + num_trials, seed, first)
    low, high = float(pool.y.min()), float(pool.y.max())
    scaled = (pool.y[found["rows"]] - low) / (high - low or 1.0)
    best = np.maximum.accumulate(scaled)[len(first) - 1 :].tolist()
    return best + [best[-1]] * (num_trials + 1 - len(best))


def regret_at(results: Results, trials: Sequence[int] = SHOWN_TRIALS) -> dict[int, float]:
    """Normalised regret after so many trials: over data sets and seeds, then over spaces."""
    spaces = []
    for data_sets in results.values():
        curves = [curve for seeds in data_sets.values() for curve in seeds.values()]
        spaces.append([[1.0 - curve[min(t, len(curve) - 1)] for t in trials] for curve in curves])
    means = np.mean([np.mean(space, axis=0) for space in spaces], axis=0)
    return dict(zip(trials, means.tolist(), strict=True))


def common(results: Mapping[str, Results]) -> dict[str, Results]:
    """The searches that all methods have, so that their means are of the same tasks."""
    keys = [{(s, d, k) for s in own for d in own[s] for k in own[s][d]} for own in results.values()]
    shared = sorted(set.intersection(*keys))
    if not shared:
        raise ValueError(f"{', '.join(results)} have no search in common; give files of one run.")
    kept: dict[str, Any] = {name: {} for name in results}
    for space, data_set, seed in shared:
        for name, own in results.items():
            place = kept[name].setdefault(space, {}).setdefault(data_set, {})
            place[seed] = own[space][data_set][seed]
    return kept


def table(results: Mapping[str, Results]) -> str:
    """Normalised regret of each method in Markdown, best first by the last column."""
    rows = {name: regret_at(own) for name, own in common(results).items()}
    lines = [
        "| method | " + " | ".join(f"regret@{t}" for t in SHOWN_TRIALS) + " |",
        "|---" + "|---:" * len(SHOWN_TRIALS) + "|",
    ]
    for name, regret in sorted(rows.items(), key=lambda item: item[1][SHOWN_TRIALS[-1]]):
        lines.append(f"| {name} | " + " | ".join(f"{regret[t]:.4f}" for t in SHOWN_TRIALS) + " |")
    return "\n".join(lines) + "\n"


def read_results(file: Path) -> Results:
    """A file of results, published or ours."""
    return _contents(file)


def _pool(name: str, task: Mapping[str, Any]) -> Pool:
    x, y = np.asarray(task["X"], float), np.asarray(task["y"], float).ravel()
    if x.ndim != 2 or len(x) != len(y) or x.min() < 0.0 or x.max() > 1.0:
        raise ValueError(
            f"Data set {name} has X of shape {x.shape} and {len(y)} responses; give "
            "one response for each row of X, and X between 0 and 1."
        )
    return Pool(name, x, y)


def _contents(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing; give the folder of HPO-B's JSON files.")
    return json.loads(file.read_text())
