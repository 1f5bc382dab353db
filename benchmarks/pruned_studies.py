"""Studies with a pruner: is a point tried again after it was pruned?

    python -m benchmarks.pruned_studies                    # 16 seeds, some minutes
    python -m benchmarks.pruned_studies --seeds 2 --markdown

A trial reports a curve of ten steps that rises to its value, as a network does while it trains.
The past: 16 studies of 20 random trials of functions with shifted optima, over a plain space of
three parameters or a conditional one. Then 30 trials of MetaPriorSampler on an unseen function of
the family, for each seed and pruner, without noise and with noise in every report and every value;
in the conditional space also in studies that never ask for the conditional parameter.

Shown: how many trials were pruned; the smallest distance, in the unit cube, between a proposal and
a point that was pruned before it; how many proposals were within 0.001 of one. Two points of
different branches of the conditional space are not near to each other.
"""

import argparse
import functools
import itertools
import math
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.pruners import BasePruner, MedianPruner, SuccessiveHalvingPruner
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, Trial, TrialState

import metaprior as mp
from benchmarks._processes import in_workers
from benchmarks._records import finished
from benchmarks._studies import markdown
from metaprior.adapters.optuna import MetaPriorSampler, load_tasks

NUM_PAST, PAST_TRIALS, NUM_TRIALS, NUM_STEPS = 16, 20, 30, 10
NEAR = 1e-3
PLAIN, CONDITIONAL, LACKING = "plain", "conditional", "conditional, without its parameter"
SPACES = (PLAIN, CONDITIONAL, LACKING)
NOISE = 0.1
PRUNERS: dict[str, Callable[[], BasePruner]] = {
    "MedianPruner": MedianPruner,
    "SuccessiveHalvingPruner": SuccessiveHalvingPruner,
}


class Function(NamedTuple):
    """A function of a family: a bowl with a shifted top, in one of the spaces.

    - `top`: where it is, in the unit cube.
    - `noise`: the standard deviation of what is added to every report and value.
    """

    top: np.ndarray
    space: str
    noise: float

    def __call__(self, trial: Trial) -> float:
        x = [trial.suggest_float(name, 0.0, 1.0) for name in ("x", "z")]
        if self.space == PLAIN:
            x.append(trial.suggest_float("w", 0.0, 1.0))
        else:
            is_deep = trial.suggest_categorical("kind", ["flat", "deep"]) == "deep"
            asks = is_deep and self.space == CONDITIONAL
            x.append(trial.suggest_float("depth", 0.0, 1.0) if asks else 0.4 if is_deep else 0.3)
        value = 1.0 - float(np.sum((np.array(x) - self.top) ** 2))
        rng = np.random.default_rng([trial.number, int(1e6 * self.top[0])])
        for step in range(1, NUM_STEPS + 1):
            seen = value - 2.0 * math.exp(-step / 3.0) + self.noise * rng.standard_normal()
            trial.report(seen, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value + self.noise * float(rng.standard_normal())


class Counts(NamedTuple):
    """What one study did."""

    pruned: int
    nearest: float
    near: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, help="file of the studies; those in it are kept")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    arguments = parser.parse_args()
    kinds = list(itertools.product(SPACES, (0.0, NOISE), PRUNERS))
    jobs = [Job(*kind, seed) for kind in kinds for seed in range(arguments.seeds)]
    with tempfile.TemporaryDirectory() as folder:
        learn = functools.partial(learn_into, folder=Path(folder))
        list(in_workers(learn, (PLAIN, CONDITIONAL), arguments.workers))
        work = functools.partial(counts_of, folder=Path(folder))
        studies = finished(work, jobs, arguments.workers, arguments.out)
    rows = []
    for space, noise, pruner in kinds:
        found = [Counts(*studies[space, noise, pruner, seed]) for seed in range(arguments.seeds)]
        rows.append([space, f"{noise:g}", pruner, *summary(found)])
    header = ["space", "noise", "pruner", "pruned", "nearest to a pruned one", "within 0.001"]
    print(markdown(header, rows) if arguments.markdown else "\n".join(map("  ".join, rows)))


class Job(NamedTuple):
    """One study."""

    space: str
    noise: float
    pruner: str
    seed: int


def learn_into(space: str, folder: Path) -> None:
    """Learn the prior of a family and save it in the folder."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    learned(space).save(folder / space)


def counts_of(job: Job, folder: Path) -> Counts:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", UserWarning)
    prior = mp.load(folder / (PLAIN if job.space == PLAIN else CONDITIONAL))
    function = Function(top(1000 + job.seed), job.space, job.noise)
    return counted(prior, PRUNERS[job.pruner](), function, job.seed)


def top(seed: int) -> np.ndarray:
    """Where the optimum of a function is: in a part of the space that its family shares."""
    return np.random.default_rng(seed).uniform(0.4, 0.8, 3)


def learned(space: str) -> mp.Prior:
    storage = optuna.storages.InMemoryStorage()
    for seed in range(NUM_PAST):
        study = optuna.create_study(
            storage=storage,
            sampler=RandomSampler(seed=seed),
            direction="maximize",
            pruner=optuna.pruners.NopPruner(),
        )
        study.optimize(Function(top(seed), space, 0.0), n_trials=PAST_TRIALS)
    return mp.learn(load_tasks(storage), method=mp.methods.FPacohMap(num_steps=500), seed=0)


def counted(prior: mp.Prior, pruner: BasePruner, function: Function, seed: int) -> Counts:
    """One study, and how near its trials came to those that were pruned before."""
    study = optuna.create_study(
        sampler=MetaPriorSampler(prior, seed=seed), pruner=pruner, direction="maximize"
    )
    study.optimize(function, n_trials=NUM_TRIALS)
    return counts(study.get_trials(deepcopy=False))


def counts(trials: list[FrozenTrial]) -> Counts:
    pruned = [trial for trial in trials if trial.state == TrialState.PRUNED]
    nearest = [
        min((distance(t.params, p.params) for p in pruned if p.number < t.number), default=math.inf)
        for t in trials
    ]
    return Counts(len(pruned), min(nearest), sum(d <= NEAR for d in nearest))


def distance(a: dict[str, Any], b: dict[str, Any]) -> float:
    """The largest difference of two points; 1 between branches."""
    if a.keys() != b.keys() or a.get("kind") != b.get("kind"):
        return 1.0
    return max(abs(a[name] - b[name]) for name in a if name != "kind")


def summary(found: list[Counts]) -> list[str]:
    pruned = [counts.pruned for counts in found]
    return [
        f"{min(pruned)} to {max(pruned)} of {NUM_TRIALS}",
        f"{min(counts.nearest for counts in found):.2g}",
        str(sum(counts.near for counts in found)),
    ]


if __name__ == "__main__":
    main()
