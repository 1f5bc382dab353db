"""From the Optuna studies of the past to the next study: Branin functions, by the command line."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import optuna
from optuna.samplers import BaseSampler, TPESampler

from benchmarks._studies import (
    BASELINES,
    OURS,
    new_study,
    run_study,
    shown,
    with_optima,
)
from metaprior.lab.environments import Branin

FAMILY = Branin()
NUM_STUDIES, NUM_TRIALS = 20, 20
STEPS = (1, 3, 5, 10, 20)
# By default, GPSampler and TPESampler begin with so many random trials.
NUM_RANDOM = 10
# What every sampler did: regret and seconds, a row for each task.
Records = dict[str, dict[str, list[list[float]]]]


def evaluate(folder: Path, seed: int, num_tasks: int, budget: str) -> Records:
    """Past studies, the prior learned from them, and all samplers on the same unseen tasks.

    - `folder`: keeps the database and the prior; what is in it already is not made again.
    """
    key_past, key_tasks = jax.random.split(jax.random.key(seed))
    database, prior = folder / f"past-{seed}.db", folder / f"prior-{seed}"
    if not database.exists():
        make_past(database, seed, key=key_past)
    if not prior.exists():
        learn(database, prior, budget)
    tasks = with_optima(FAMILY, FAMILY.test_tasks(num_tasks, key=key_tasks))
    samplers = {OURS: sampler_from(prior), **BASELINES}
    records: Records = {name: {"regret": [], "seconds": []} for name in samplers}
    for i, (task, optimum) in enumerate(tasks):
        for name, sampler in samplers.items():
            # In memory: the time of a suggestion is then that of the sampler alone.
            outcome = run_study(new_study(sampler(i)), task, optimum, NUM_TRIALS)
            records[name]["regret"].append(outcome.regret)
            records[name]["seconds"].append(outcome.seconds)
    return records


def make_past(database: Path, seed: int, *, key) -> None:
    """An Optuna storage with studies made by TPE."""
    made = database.with_suffix(".part")
    made.unlink(missing_ok=True)
    tasks = with_optima(FAMILY, FAMILY.training_tasks(NUM_STUDIES, key=key))
    for i, (task, optimum) in enumerate(tasks):
        sampler = TPESampler(seed=1000 * seed + i)
        study = new_study(sampler, f"sqlite:///{made}", f"branin-{i:02d}")
        run_study(study, task, optimum, NUM_TRIALS)
    made.rename(database)


def learn(database: Path, prior: Path, budget: str) -> None:
    """`metaprior learn`, as from a shell."""
    command = [str(Path(sys.executable).with_name("metaprior")), "learn"]
    command += [f"optuna:sqlite:///{database}", "--out", str(prior), "--budget", budget]
    print("$", " ".join(command), flush=True)
    subprocess.run(command, check=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})


def sampler_from(prior: Path) -> Callable[[int], BaseSampler]:
    from metaprior import load
    from metaprior.adapters.optuna import MetaPriorSampler

    learned = load(prior)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return lambda seed: MetaPriorSampler(learned, seed=seed)


def pool(several: list[Records]) -> dict[str, dict[str, np.ndarray]]:
    """The records of several seeds together."""
    return {
        name: {
            what: np.concatenate([np.asarray(each[name][what]) for each in several])
            for what in several[0][name]
        }
        for name in several[0]
    }


HEADER = [
    "sampler",
    *(f"t={t}" for t in STEPS),
    "t=20 / ours",
    "suggestion",
    f"from trial {NUM_RANDOM + 1} on",
    "of that / ours",
]


def rows(several: list[Records]) -> list[list[str]]:
    """One row for each sampler: simple regret, the median time of a suggestion, and both as
    multiples of ours."""
    pooled = pool(several)
    last = {name: each["regret"][:, -1].mean() for name, each in pooled.items()}
    median = {name: np.median(each["seconds"]) for name, each in pooled.items()}
    # Medians of the trials that are no longer random, for everybody.
    late = {name: np.median(each["seconds"][:, NUM_RANDOM:]) for name, each in pooled.items()}
    return [
        [
            name,
            *(shown(each["regret"][:, t - 1]) for t in STEPS),
            f"{last[name] / last[OURS]:.3g}",
            f"{1e3 * median[name]:.2g} ms",
            f"{1e3 * late[name]:.2g} ms",
            f"{late[name] / late[OURS]:.2g}",
        ]
        for name, each in pooled.items()
    ]
