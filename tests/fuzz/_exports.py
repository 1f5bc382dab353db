"""Exports of other hosts: W&B's files and Ray Tune's folders, damaged as bytes and as JSON."""

import json
from pathlib import Path

import numpy as np

from metaprior.adapters import ray, wandb
from metaprior.adapters.histories import History
from tests.fuzz._damage import as_text, choice, damaged_bytes, damaged_text, damaged_value

RUNS = [
    {
        **{"name": f"run-{i}", "state": "finished"},
        "config": {"lr": 0.1 * (i + 1), "opt": "adam" if i % 2 else "sgd", "net": {"depth": i}},
        "summary": {"loss": 1.0 / (i + 1), "_runtime": 3},
    }
    for i in range(4)
]
TABLE = (
    "Name,State,lr,opt,loss\na,finished,0.1,adam,0.5\nb,finished,0.2,sgd,0.25\nc,crashed,0.3,sgd,\n"
)
RESULTS = [
    {"loss": 1.0 / (i + 1), "training_iteration": i, "timestamp": 10.0 + i} for i in range(3)
]


def wandb_export(rng: np.random.Generator, folder: Path) -> None:
    """A list of runs, in lines or as a table, one of two files damaged."""
    for i in range(2):
        kind = int(rng.integers(3))
        name, text = (
            (f"{i}.json", json.dumps(RUNS)),
            (f"{i}.jsonl", "\n".join(map(json.dumps, RUNS))),
            (f"{i}.csv", TABLE),
        )[kind]
        data = text.encode()
        if i == 0 and kind == 0 and rng.random() < 0.5:
            data = as_text(damaged_value(rng, RUNS)).encode()
        elif i == 0:
            data = damaged_text(rng, text)
        (folder / name).write_bytes(data)
    _check(wandb.read_history([folder], metric="loss", direction="minimize"))


def ray_folder(rng: np.random.Generator, folder: Path) -> None:
    """Two experiments of three trials, one file of one of them damaged."""
    for experiment in ("one", "two"):
        for i in range(3):
            trial = folder / experiment / f"trial_{i}"
            trial.mkdir(parents=True)
            params = {"lr": 0.1 * (i + 1), "net": {"depth": i}}
            (trial / "params.json").write_text(json.dumps(params))
            lines = [json.dumps({**each, "config": params}) for each in RESULTS]
            (trial / "result.json").write_text("\n".join(lines) + "\n")
    path = choice(rng, sorted(folder.rglob("*.json")))
    whole = path.read_bytes()
    if path.name == "params.json" and rng.random() < 0.5:
        path.write_text(as_text(damaged_value(rng, json.loads(whole))))
    else:
        damage = damaged_bytes(rng, whole)
        path.write_bytes(damage if rng.random() < 0.5 else damaged_text(rng, whole.decode()))
    _check(ray.read_history([folder], metric="loss", direction="minimize"))


def _check(history: History) -> None:
    for task in range(len(history.tasks)):
        length = int(history.tasks.lengths[task])
        values = np.asarray(history.tasks.y[task][:length])
        assert np.isfinite(values).all(), "values that are no numbers"
