"""Meta-training, prepared for timing: ours, and the same loop in GPyTorch.

Every function prepares in the process that calls it and returns a function that measures once (see
`benchmarks._worker`); the libraries are imported inside, since one process loads one side only.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks._histories import histories

SEED = 0
CHUNK = 100  # steps between two reports of our training loop


def our_step(
    *, num_tasks: int, run_length: int, input_dim: int, feature_dim: int, chunks: int
) -> Callable[[], float]:
    """Seconds a step of one training, between the first report of progress and the last."""
    import jax

    tasks, method = _our_problem(num_tasks, run_length, input_dim, feature_dim)
    method = replace(method, num_steps=CHUNK * (1 + chunks))

    def measure() -> float:
        reports: list[float] = []
        method.meta_train(
            tasks, key=jax.random.key(SEED), on_progress=lambda _: reports.append(_now())
        )
        return (reports[-1] - reports[0]) / (CHUNK * chunks)

    measure()
    return measure


def our_step_of_many(
    *,
    num_tasks: int,
    run_length: int,
    input_dim: int,
    feature_dim: int,
    chunks: int,
    configurations: int,
) -> Callable[[], float]:
    """Seconds a step and a configuration, when several are trained at once."""
    import jax

    from metaprior.methods import meta_train_many

    tasks, method = _our_problem(num_tasks, run_length, input_dim, feature_dim)
    method = replace(method, num_steps=CHUNK * (1 + chunks))
    methods = [replace(method, kappa=kappa) for kappa in np.geomspace(0.01, 0.2, configurations)]
    keys = jax.random.split(jax.random.key(SEED), configurations)

    def measure() -> float:
        reports: list[float] = []
        meta_train_many(methods, tasks, keys=keys, on_progress=lambda _: reports.append(_now()))
        return (reports[-1] - reports[0]) / (CHUNK * chunks * configurations)

    measure()
    return measure


def reference_step(
    *, num_tasks: int, run_length: int, input_dim: int, feature_dim: int, num_steps: int
) -> Callable[[], float]:
    """Seconds a step of GPyTorch, task by task."""
    train = _reference_training(num_tasks, run_length, input_dim, feature_dim)

    def measure() -> float:
        start = _now()
        train(num_steps)
        return (_now() - start) / num_steps

    measure()
    return measure


def our_whole_training(
    *, num_tasks: int, run_length: int, input_dim: int, feature_dim: int, num_steps: int
) -> Callable[[], float]:
    """Seconds from the start of the process: imports, compilation, training."""

    def measure() -> float:
        import metaprior as mp

        tasks, method = _our_problem(num_tasks, run_length, input_dim, feature_dim)
        mp.learn(tasks, method=replace(method, num_steps=num_steps), seed=SEED)
        return _now()

    return measure


def reference_whole_training(
    *,
    num_tasks: int,
    run_length: int,
    input_dim: int,
    feature_dim: int,
    num_steps: int,
    num_measured: int,
) -> Callable[[], float]:
    """Seconds from the start of the process, of which the first `num_measured` steps are measured
    and the others are taken to cost the same."""

    def measure() -> float:
        train = _reference_training(num_tasks, run_length, input_dim, feature_dim)
        start = _now()
        train(num_measured)
        end = _now()
        return end + (num_steps - num_measured) * (end - start) / num_measured

    return measure


def _our_problem(num_tasks: int, run_length: int, input_dim: int, feature_dim: int):
    import metaprior as mp

    x, y = histories(num_tasks, run_length, input_dim, seed=SEED)
    space = mp.Space(**{f"x{j}": mp.Real(0.0, 1.0) for j in range(input_dim)})
    tasks = mp.Tasks.from_runs(list(zip(x, y, strict=True)), space=space)
    return tasks, mp.methods.FPacohMap(feature_dim=feature_dim, batch_size=4)


def _reference_training(
    num_tasks: int, run_length: int, input_dim: int, feature_dim: int
) -> Callable[[int], object]:
    from benchmarks._gpytorch_reference import ReferenceFPacoh

    x, y = histories(num_tasks, run_length, input_dim, seed=SEED)
    mean, std = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    x, y = (x - mean) / std, (y - y.mean()) / y.std()
    prior = ReferenceFPacoh.random(input_dim, seed=SEED, feature_dim=feature_dim)

    def train(num_steps: int) -> object:
        # Settings that our side has as defaults; they do not change what a step costs.
        return prior.train(
            list(x),
            list(y),
            num_steps=num_steps,
            batch_size=4,
            seed=SEED,
            lower=-mean / std,
            upper=(1 - mean) / std,
            hyper_lengthscale=0.15 * np.sqrt(input_dim),
            kappa=0.05,
            jitter=1e-4,
        )

    return train


def _now() -> float:
    """CPU seconds of this process since it started."""
    return time.process_time()
