"""Suggestions in an Optuna study: Branin, 30 trials in memory, by our sampler and by Optuna's.

Every function prepares in the process that calls it and returns a function that measures once (see
`benchmarks._worker`). One measurement is one study; its answer is the median over its suggestions,
the random ones at the start of Optuna's samplers included.
"""

import math
import statistics
import time
from collections.abc import Callable
from itertools import count

import numpy as np

NUM_TRIALS = 30
NUM_TASKS, RUN_LENGTH = 20, 20
LOW, HIGH = np.array([-5.0, 0.0]), np.array([10.0, 15.0])


def our_suggestion() -> Callable[[], float]:
    """Seconds of a suggestion by `MetaPriorSampler`, its prior learned from other Branins."""
    import metaprior as mp
    from metaprior.adapters.optuna import MetaPriorSampler

    rng = np.random.default_rng(0)
    runs = []
    for _ in range(NUM_TASKS):
        points, shift = rng.uniform(LOW, HIGH, (RUN_LENGTH, 2)), rng.normal()
        runs.append((points, [_branin(x, y, shift) for x, y in points]))
    space = mp.Space(x=mp.Real(LOW[0], HIGH[0]), y=mp.Real(LOW[1], HIGH[1]))
    tasks = mp.Tasks.from_runs(runs, space=space, direction="minimize")
    # As `learn` makes them when it chooses for itself.
    method = mp.methods.Weighed(mp.methods.FPacohMap(num_steps=1000))
    prior = mp.learn(tasks, method=method, seed=0)
    return _measure_of_study(lambda seed: MetaPriorSampler(prior, seed=seed))


def reference_suggestion(*, sampler: str) -> Callable[[], float]:
    """Seconds of a suggestion by one of Optuna's own samplers."""
    import optuna

    kind = getattr(optuna.samplers, sampler)
    return _measure_of_study(lambda seed: kind(seed=seed))


def _measure_of_study(sampler) -> Callable[[], float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seeds = count()

    def measure() -> float:
        seed = next(seeds)
        study = optuna.create_study(sampler=sampler(seed))
        seconds = []
        for _ in range(NUM_TRIALS):
            start = time.process_time()
            trial = study.ask()
            x = trial.suggest_float("x", LOW[0], HIGH[0])
            y = trial.suggest_float("y", LOW[1], HIGH[1])
            seconds.append(time.process_time() - start)
            study.tell(trial, _branin(x, y, shift=0.3))
        return statistics.median(seconds)

    measure()  # compiles, imports
    return measure


def _branin(x: float, y: float, shift: float) -> float:
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6 - shift
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
