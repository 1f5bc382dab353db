"""Ten studies one after another, learning between them, beside samplers that never learn."""

import time
from pathlib import Path

import jax
import numpy as np
from optuna.storages import InMemoryStorage

from benchmarks._studies import BASELINES, Outcome, new_study, run_study, shown, with_optima
from metaprior.adapters.optuna import MetaPriorSampler, versions_in
from metaprior.lab.environments import AbstractTask, Camelback, Family, Table
from metaprior.lifelong import untrained_prior

FAMILIES: dict[str, Family] = {"camelback": Camelback(), "rpart": Table("rpart")}
NUM_STUDIES, NUM_TRIALS = 10, 20
LAST = 5
TUNING = 1000
LIFELONG, AFRESH = "lifelong", "without learning"
# Regret of every arm, a row for each study; versions in use and what was said of them.
Records = dict[str, list]


def evaluate(family: Family, folder: Path, seed: int, budget: str) -> Records:
    """One sequence of tasks, by our sampler that learns and by others that do not."""
    key = jax.random.key(seed)
    # A table has few data sets: those that are reported on must not be tuned on.
    drawn = family.training_tasks if seed >= TUNING else family.test_tasks
    tasks = with_optima(family, drawn(NUM_STUDIES, key=key))
    records = lifelong(tasks, folder, seed, budget)
    untrained = untrained_prior(family.space, "maximize")
    others = {AFRESH: lambda i: MetaPriorSampler(untrained, seed=i), **BASELINES}
    for name, sampler in others.items():
        records[name] = [
            run_study(new_study(sampler(100 * seed + i)), task, optimum, NUM_TRIALS).regret
            for i, (task, optimum) in enumerate(tasks)
        ]
    return records


def lifelong(
    tasks: list[tuple[AbstractTask, float]], folder: Path, seed: int, budget: str
) -> Records:
    """All studies of a sequence by one sampler; the prior is learned at the start of each."""
    storage = InMemoryStorage()
    sampler = MetaPriorSampler.lifelong(
        storage, name="sequence", folder=folder, budget=budget, seed=seed
    )
    records: Records = {LIFELONG: [], "version": [], "seconds": []}
    for i, (task, optimum) in enumerate(tasks):
        start = time.perf_counter()
        study = new_study(sampler, storage, f"study-{i}")
        outcome: Outcome = run_study(study, task, optimum, NUM_TRIALS)
        sampler.finish(study)
        records[LIFELONG].append(outcome.regret)
        records["version"].append(sampler.version)
        records["seconds"].append(time.perf_counter() - start)
    records["reasons"] = [version.reason for version in versions_in(storage, "sequence").versions]
    return records


HEADER = [
    "family",
    "arm",
    "first study",
    f"last {LAST} studies",
    "last five, t=1",
    "last five, t=5",
]


def rows(family: str, several: list[Records]) -> list[list[str]]:
    """One row for each arm: regret at trial 20, intervals over sequences."""
    lines = []
    for arm in (LIFELONG, AFRESH, *BASELINES):
        regret = np.asarray([each[arm] for each in several])
        last = regret[:, -LAST:].mean(axis=1)
        numbers = (regret[:, 0, -1], last[:, -1], last[:, 0], last[:, 4])
        lines.append([family, arm, *map(shown, numbers)])
    return lines


def by_study(several: list[Records]) -> list[list[str]]:
    """Regret at trial 20 of each study of a sequence, mean over sequences."""
    return [
        [arm, *(f"{value:.2g}" for value in np.mean([each[arm] for each in several], 0)[:, -1])]
        for arm in (LIFELONG, AFRESH, *BASELINES)
    ]
