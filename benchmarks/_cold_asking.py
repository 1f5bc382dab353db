"""Asking as users meet it: from the start of a process, with a prior that was learned before.

Every function prepares nothing and returns a function that measures once, in CPU seconds of its
whole process where it says so (see `benchmarks._worker`).
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

INPUT_DIM, NUM_ASKS = 7, 40
NUM_CANDIDATES, NUM_CANDIDATE_ASKS = 50_000, 10
NUM_TASKS, RUN_LENGTH = 20, 30
CENTRE = np.linspace(0.35, 0.6, INPUT_DIM)


def value_at(point: dict[str, float]) -> float:
    """A bowl unlike the past tasks."""
    return -float(sum((point[f"x{i}"] - c) ** 2 for i, c in enumerate(CENTRE)))


def save_prior(*, folder: str) -> Callable[[], float]:
    """Learn what `learn` would return, a weighted ensemble, and save it."""
    import metaprior as mp

    def measure() -> float:
        rng = np.random.default_rng(0)
        runs = []
        for _ in range(NUM_TASKS):
            x = rng.uniform(size=(RUN_LENGTH, INPUT_DIM))
            runs.append((x, -((x - rng.uniform(0.3, 0.7, INPUT_DIM)) ** 2).sum(axis=1)))
        space = mp.Space(**{f"x{i}": mp.Real(0.0, 1.0) for i in range(INPUT_DIM)})
        methods = mp.methods
        method = methods.Weighed(methods.Ensemble(methods.FPacohMap(num_steps=400), members=3))
        mp.learn(mp.Tasks.from_runs(runs, space=space), method=method, seed=0).save(Path(folder))
        return 0.0

    return measure


def our_asks(*, folder: str) -> Callable[[], dict[str, float]]:
    """CPU seconds of the whole process that loads a prior and asks 40 times, and of its asks."""

    def measure() -> dict[str, float]:
        import metaprior as mp

        optimizer = mp.Optimizer(mp.load(folder), seed=0)
        seconds = []
        for _ in range(NUM_ASKS):
            start = time.process_time()
            point = optimizer.ask()
            seconds.append(time.process_time() - start)
            optimizer.tell(point, value_at(point))
        return {
            "whole": time.process_time(),
            "median": statistics.median(seconds),
            "worst": max(seconds[1:]),
        }

    return measure


def candidate_asks(*, folder: str) -> Callable[[], float]:
    """CPU seconds of the whole process that loads a prior and asks 10 of 50,000 candidates."""

    def measure() -> float:
        import metaprior as mp

        rows = np.random.default_rng(1).uniform(size=(NUM_CANDIDATES, INPUT_DIM))
        optimizer = mp.Optimizer(mp.load(folder), candidates=rows, seed=0)
        for _ in range(NUM_CANDIDATE_ASKS):
            point = optimizer.ask()
            optimizer.tell(point, value_at(point))
        return time.process_time()

    return measure


def gp_sampler_trials() -> Callable[[], float]:
    """CPU seconds of the whole process in which Optuna's GPSampler makes 40 trials."""

    def measure() -> float:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.GPSampler(seed=0))
        names = [f"x{i}" for i in range(INPUT_DIM)]
        study.optimize(
            lambda trial: value_at({name: trial.suggest_float(name, 0.0, 1.0) for name in names}),
            n_trials=NUM_ASKS,
        )
        return time.process_time()

    return measure


def botorch_asks() -> Callable[[], float]:
    """CPU seconds of the whole process in which BoTorch fits and maximises log-EI 40 times."""

    def measure() -> float:
        from benchmarks._botorch_reference import ask_log_improvement

        x = np.random.default_rng(0).uniform(size=(1, INPUT_DIM))
        cube = np.array([np.zeros(INPUT_DIM), np.ones(INPUT_DIM)])
        for seed in range(NUM_ASKS):
            y = -((x - CENTRE) ** 2).sum(axis=1)
            x = np.vstack([x, ask_log_improvement(x, y, cube, seed=seed)])
        return time.process_time()

    return measure
