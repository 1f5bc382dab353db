"""Meta-training, prepared for timing: ours, and the same loops in PyTorch and GPyTorch.

Every function prepares in the process that calls it and returns a function that measures once (see
`benchmarks._worker`); the libraries are imported inside, since one process loads one side only.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from benchmarks._histories import histories

SEED = 0
BATCH_SIZE = 4
CHUNK = 100  # steps between two reports of our training loop


def our_step(
    *,
    num_tasks: int,
    run_length: int,
    input_dim: int,
    feature_dim: int,
    chunks: int,
    method_name: str = "FPacohMap",
) -> Callable[[], float]:
    """Seconds a step of one training, between the first report of progress and the last."""
    import jax

    tasks, method = _our_problem(num_tasks, run_length, input_dim, feature_dim, method_name)
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
    """Seconds per step and configuration, when several are trained at once."""
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
    *,
    num_tasks: int,
    run_length: int,
    input_dim: int,
    feature_dim: int,
    num_steps: int,
    method_name: str = "FPacohMap",
) -> Callable[[], float]:
    """Seconds a step of PyTorch or GPyTorch, task by task."""
    train = _reference_training(num_tasks, run_length, input_dim, feature_dim, method_name)

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


def our_whole_learning(
    *,
    num_tasks: int,
    run_length: int,
    input_dim: int,
    budget: str,
    queries: int = 0,
) -> Callable[[], float]:
    """Seconds from the start of the process: imports, compilation, the choice of a configuration,
    the final training, what is measured on held-out runs, and `queries` points of a new run."""

    def measure() -> float:
        import metaprior as mp

        tasks, _ = _our_problem(num_tasks, run_length, input_dim, feature_dim=6)
        prior = mp.learn(tasks, budget=budget, seed=SEED)
        if queries:
            points, values = tasks.run(0)
            optimizer = mp.Optimizer(prior, seed=SEED)
            for point, value in zip(points[:queries], values[:queries], strict=True):
                optimizer.tell(point, value)
            optimizer.ask()
        return _now()

    return measure


def our_compiling(
    *, num_tasks: int, run_length: int, input_dim: int, budget: str
) -> Callable[[], tuple[float, float, float]]:
    """Seconds of `learn` in a new process, the share of tracing and compiling in them, and the peak
    memory of the process in GiB.

    JAX reports how long each trace and each compilation took by the clock on the wall, and a trace
    within another one twice; so the share is that of the wall time that they cover together.
    """

    def measure() -> tuple[float, float, float]:
        import resource
        import sys

        import jax.monitoring

        import metaprior as mp

        tasks, _ = _our_problem(num_tasks, run_length, input_dim, feature_dim=6)
        spans: list[tuple[float, float]] = []

        def note(event: str, duration_secs: float, **kwargs: str | int) -> None:
            if event.startswith("/jax/core/compile/"):
                now = time.perf_counter()
                spans.append((now - duration_secs, now))

        jax.monitoring.register_event_duration_secs_listener(note)
        start, begun = _now(), time.perf_counter()
        mp.learn(tasks, budget=budget, seed=SEED)
        seconds, share = _now() - start, covered(spans) / (time.perf_counter() - begun)
        # Linux counts in KiB, macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return seconds, share, peak / 2**30

    return measure


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """The length of what spans of time cover together."""
    total, until = 0.0, -math.inf
    for first, last in sorted(spans):
        total += max(last - max(first, until), 0.0)
        until = max(until, last)
    return total


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


def _our_problem(
    num_tasks: int,
    run_length: int,
    input_dim: int,
    feature_dim: int,
    method_name: str = "FPacohMap",
):
    import metaprior as mp

    x, y = histories(num_tasks, run_length, input_dim, seed=SEED)
    space = mp.Space(**{f"x{j}": mp.Real(0.0, 1.0) for j in range(input_dim)})
    tasks = mp.Tasks.from_runs(list(zip(x, y, strict=True)), space=space)
    # The features of ABLR are the last hidden layer of its network.
    sizes = {} if method_name == "ABLR" else {"feature_dim": feature_dim}
    return tasks, getattr(mp.methods, method_name)(batch_size=BATCH_SIZE, **sizes)


def _reference_training(
    num_tasks: int,
    run_length: int,
    input_dim: int,
    feature_dim: int,
    method_name: str = "FPacohMap",
) -> Callable[[int], object]:
    """A function that trains the reference of a method for a number of steps.

    Its settings are those that our side has as defaults; they do not change what a step costs.
    """
    x, y = histories(num_tasks, run_length, input_dim, seed=SEED)
    return _REFERENCES[method_name](x, y, feature_dim)


def _reference_fpacoh(
    x: Float[np.ndarray, "n m d"], y: Float[np.ndarray, "n m"], feature_dim: int
) -> Callable[[int], object]:
    from benchmarks._gpytorch_reference import ReferenceFPacoh

    input_dim = x.shape[-1]
    # The corners of the unit cube, in the units of the standardised inputs.
    mean, std = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    prior = ReferenceFPacoh.random(input_dim, seed=SEED, feature_dim=feature_dim)
    x, y = _standardise(x, y)

    def train(num_steps: int) -> object:
        return prior.train(
            list(x),
            list(y),
            num_steps=num_steps,
            batch_size=BATCH_SIZE,
            seed=SEED,
            lower=-mean / std,
            upper=(1 - mean) / std,
            hyper_lengthscale=0.15 * np.sqrt(input_dim),
            kappa=0.05,
            jitter=1e-4,
        )

    return train


def _reference_pacoh(
    x: Float[np.ndarray, "n m d"], y: Float[np.ndarray, "n m"], feature_dim: int
) -> Callable[[int], object]:
    from benchmarks._gpytorch_reference import ReferenceFPacoh
    from benchmarks._torch_methods_reference import ReferencePacoh, meta_train

    process = ReferenceFPacoh.random(x.shape[-1], seed=SEED, feature_dim=feature_dim)
    x, y = _standardise(x, y)
    settings = {"kappa": 1.0, "hyper_prior_variance": 9.0, "jitter": 1e-8}
    model = ReferencePacoh(process.parameters(), [len(run) for run in y], **settings)
    return lambda num_steps: meta_train(
        model, list(x), list(y), num_steps=num_steps, batch_size=BATCH_SIZE, seed=SEED
    )


def _reference_ablr(
    x: Float[np.ndarray, "n m d"], y: Float[np.ndarray, "n m"], feature_dim: int
) -> Callable[[int], object]:
    from benchmarks._torch_methods_reference import (
        ReferenceAblr,
        meta_train,
        random_ablr_parameters,
    )

    parameters = random_ablr_parameters(x.shape[-1], seed=SEED)
    x, y = _standardise(x, y)
    model = ReferenceAblr(parameters, [len(run) for run in y], jitter=1e-8)
    return lambda num_steps: meta_train(
        model,
        list(x),
        list(y),
        num_steps=num_steps,
        batch_size=BATCH_SIZE,
        seed=SEED,
        weight_decay=1e-3,
    )


_REFERENCES = {
    "FPacohMap": _reference_fpacoh,
    "PacohMap": _reference_pacoh,
    "ABLR": _reference_ablr,
}


def _standardise(
    x: Float[np.ndarray, "n m d"], y: Float[np.ndarray, "n m"]
) -> tuple[Float[np.ndarray, "n m d"], Float[np.ndarray, "n m"]]:
    """Zero mean and unit variance over all runs, each input separately."""
    mean, std = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    return (x - mean) / std, (y - y.mean()) / y.std()


def _now() -> float:
    """CPU seconds of this process since it started."""
    return time.process_time()
