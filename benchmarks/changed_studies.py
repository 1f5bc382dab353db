"""Studies that are larger than what the prior knows: wider bounds, new choices, new parameters.

    python -m benchmarks.changed_studies                    # 16 seeds, half an hour on one core
    python -m benchmarks.changed_studies --seeds 4 --only choice,parameter --markdown

The family: functions of x, z and a choice, each a bowl with ripples along x whose top is elsewhere
for every task. The past: 20 studies of 20 random trials with x from 2 to 12, the best x between 4
and 10, and three choices. `metaprior.learn` with budget "fast" learns the prior. Then:

outside    x from 1 to 20, the best x between 14 and 19
inside     x from 1 to 20, the best x between 4 and 10; and x from 2 to 12 for comparison
choice     a fourth choice, the best or the worst
parameter  a fourth parameter, which matters as much as z

Every study has 40 trials. Shown: in how many trials the optimum is found (a value within 2 % of the
gap between the optimum and the median of random points; a study that does not find it counts as
41), the simple regret after 10, 20 and 40 trials in units of the gap, and the first trial of the
new choice; GPSampler and TPESampler have their defaults.
"""

import argparse
import functools
import itertools
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import Trial

import metaprior as mp
from benchmarks._processes import in_workers
from benchmarks._records import finished
from benchmarks._studies import BASELINES, OURS, markdown
from metaprior.adapters.optuna import MetaPriorSampler, load_tasks

NUM_PAST, PAST_TRIALS, NUM_TRIALS = 20, 20, 40
STEPS = (10, 20, 40)
FOUND = 0.02
KNOWN, WIDE = (2.0, 12.0), (1.0, 20.0)
CHOICES = ("relu", "tanh", "gelu")
NEW = "new"
Sampler = Callable[[int], BaseSampler]
Top = tuple[float, float, float]


class Task(NamedTuple):
    """A function of the family, and what a study of it may try.

    - `best`: x, z and the new parameter at the top; `worth`: of each choice.
    - `random`: x of the random points that regret is compared with.
    """

    bounds: tuple[float, float]
    best: Top
    worth: dict[str, float]
    has_parameter: bool = False
    random: tuple[float, float] = KNOWN

    def __call__(self, trial: Trial) -> float:
        x = trial.suggest_float("x", *self.bounds)
        z = trial.suggest_float("z", 0.0, 1.0)
        kind = trial.suggest_categorical("kind", list(self.worth))
        own = trial.suggest_float("own", 0.0, 1.0) if self.has_parameter else self.best[2]
        return self.value(x, z, kind, own)

    def value(self, x: float, z: float, kind: str, own: float) -> float:
        apart = x - self.best[0]
        bowl = -(apart**2) / 30.0 + 0.15 * (np.cos(2.0 * apart) - 1.0)
        rest = 2.0 * (z - self.best[1]) ** 2 + 2.0 * (own - self.best[2]) ** 2
        return float(bowl - rest + self.worth[kind])

    @property
    def optimum(self) -> float:
        return max(self.worth.values())

    @property
    def gap(self) -> float:
        """Between the optimum and the median of random points."""
        rng = np.random.default_rng(0)
        kinds = list(self.worth)
        values = [
            self.value(
                rng.uniform(*self.random),
                rng.uniform(),
                kinds[rng.integers(len(kinds))],
                rng.uniform() if self.has_parameter else self.best[2],
            )
            for _ in range(2000)
        ]
        return self.optimum - float(np.median(values))


class Outcome(NamedTuple):
    """What one study found.

    - `found`: in how many trials; `regret`: after `STEPS`; `first_new`: trial of the new choice.
    """

    found: int
    regret: list[float]
    first_new: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--first-seed", type=int, default=0, help="1000 and above: for tuning")
    parser.add_argument("--only", default=",".join(SCENARIOS), help="some of the scenarios")
    parser.add_argument("--without", default="", help="samplers to leave out, such as GPSampler")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, help="file of the studies; those in it are kept")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    arguments = parser.parse_args()
    samplers = [name for name in (OURS, *BASELINES) if name not in arguments.without.split(",")]
    names = [words for scenario in arguments.only.split(",") for words in SCENARIOS[scenario]]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    # The slowest first: a study that starts last is waited for.
    jobs = [Job(words, name, seed) for name in samplers for words in names for seed in seeds]
    with tempfile.TemporaryDirectory() as folder:
        prior = Path(folder) / "prior"
        list(in_workers(learn_into, [prior], 1))
        studies = finished(
            functools.partial(study_of, prior=prior), jobs, arguments.workers, arguments.out
        )
    rows = []
    for words, name in itertools.product(names, samplers):
        outcomes = [Outcome(*studies[words, name, seed]) for seed in seeds]
        rows.append([words, name, *summary(outcomes)])
    print(markdown(HEADER, rows) if arguments.markdown else "\n".join(map("  ".join, rows)))


class Job(NamedTuple):
    """One study: what it is in words, its sampler, and its seed."""

    words: str
    sampler: str
    seed: int


def study_of(job: Job, prior: Path) -> Outcome:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", UserWarning)
    samplers: dict[str, Sampler] = {
        OURS: lambda seed: MetaPriorSampler(prior, seed=seed),
        **BASELINES,
    }
    task = next(s[job.words] for s in SCENARIOS.values() if job.words in s)
    return played(task(job.seed), samplers[job.sampler](job.seed))


def learn_into(folder: Path) -> None:
    """Learn the prior of the past studies and save it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    learned().save(folder)


def draw(seed: int, low: float, high: float) -> tuple[np.random.Generator, Top]:
    """A generator for what else is random, and where the top of a function is."""
    rng = np.random.default_rng([seed, 7])
    return rng, (rng.uniform(low, high), rng.uniform(0.2, 0.6), rng.uniform(0.1, 0.9))


def worths(rng: np.random.Generator) -> dict[str, float]:
    """The second choice is mostly the best."""
    return dict(zip(CHOICES, [-0.3, 0.0, -0.6] + 0.1 * rng.standard_normal(3), strict=True))


def inside(bounds: tuple[float, float], has_parameter: bool = False) -> Callable[[int], Task]:
    def task(seed: int) -> Task:
        rng, best = draw(seed, 4.0, 10.0)
        return Task(bounds, best, worths(rng), has_parameter)

    return task


def outside(seed: int) -> Task:
    rng, best = draw(seed, 14.0, 19.0)
    return Task(WIDE, best, worths(rng), random=WIDE)


def with_choice(worth: float) -> Callable[[int], Task]:
    def task(seed: int) -> Task:
        known = inside(KNOWN)(seed)
        return known._replace(worth={**known.worth, NEW: worth})

    return task


# By scenario: what it is in words, and the task of a seed.
SCENARIOS: dict[str, dict[str, Callable[[int], Task]]] = {
    "outside": {"wider, optimum outside": outside},
    "inside": {"wider, optimum inside": inside(WIDE), "not wider": inside(KNOWN)},
    "choice": {"new choice, best": with_choice(0.6), "new choice, worst": with_choice(-1.2)},
    "parameter": {"new parameter": inside(KNOWN, has_parameter=True)},
}


def learned() -> mp.Prior:
    storage = optuna.storages.InMemoryStorage()
    for seed in range(NUM_PAST):
        sampler = RandomSampler(seed=seed)
        study = optuna.create_study(storage=storage, sampler=sampler, direction="maximize")
        study.optimize(inside(KNOWN)(10_000 + seed), n_trials=PAST_TRIALS)
    return mp.learn(load_tasks(storage), budget="fast", seed=0)


def played(task: Task, sampler: BaseSampler) -> Outcome:
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.optimize(task, n_trials=NUM_TRIALS)
    trials: list[Any] = study.get_trials(deepcopy=False)
    best = np.maximum.accumulate([trial.value for trial in trials])
    regret = (task.optimum - best) / task.gap
    reached = np.flatnonzero(regret <= FOUND)
    new = [t.number + 1 for t in trials if t.params["kind"] == NEW]
    return Outcome(
        int(reached[0]) + 1 if len(reached) else NUM_TRIALS + 1,
        [float(regret[step - 1]) for step in STEPS],
        min(new, default=NUM_TRIALS + 1) if NEW in task.worth else 0,
    )


HEADER = [
    "study",
    "sampler",
    "found in: mean, median",
    *(f"regret, t={step}" for step in STEPS),
    "first new choice, median",
]


def summary(outcomes: list[Outcome]) -> list[str]:
    found = [outcome.found for outcome in outcomes]
    first = np.median([outcome.first_new for outcome in outcomes])
    regret = np.mean([outcome.regret for outcome in outcomes], axis=0)
    return [
        f"{np.mean(found):.1f}, {np.median(found):g}",
        *(f"{value:.2g}" for value in regret),
        f"{first:g}" if first else "",
    ]


if __name__ == "__main__":
    main()
