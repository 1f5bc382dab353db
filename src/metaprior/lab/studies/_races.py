"""Runs and predictions on a stack of tasks, each one compiled call; histories are such runs."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from metaprior.data import Run, Tasks
from metaprior.gp import float64
from metaprior.lab.environments import AbstractTask, Family
from metaprior.lab.policies import (
    AbstractPolicy,
    CompiledConfidenceBound,
    SurrogatePolicy,
    optimise,
)
from metaprior.meta import map_chunks
from metaprior.methods import AbstractSurrogate, FixedGP


class PolicyRace(NamedTuple):
    """Noise-free values at the queries and at the predicted optimum, for each task."""

    values: Float[np.ndarray, "tasks steps"]
    values_at_predicted_best: Float[np.ndarray, "tasks steps"]
    x: Float[np.ndarray, "tasks steps d"]
    y: Float[np.ndarray, "tasks steps"]


@float64
def race(
    policy: AbstractPolicy,
    tasks: AbstractTask,
    num_queries: int,
    *,
    key: PRNGKeyArray,
    noise_std: float = 0.0,
    infer: bool = False,
    chunk: int | None = None,
) -> PolicyRace:
    """One run of `policy` on each of a stack of tasks.

    - `chunk`: so many tasks side by side; all of them by default. A policy that seldom needs its
      expensive part, as with a guard, is faster one task at a time: side by side, all wait for it.
    """
    tasks = jax.tree.map(jnp.asarray, tasks)
    keys = jax.random.split(key, require_points(tasks, num_queries))
    trace = _race(policy, tasks, num_queries, keys, noise_std, infer, chunk)
    return PolicyRace(
        np.asarray(trace.values),
        np.asarray(trace.values_at_predicted_best),
        np.asarray(trace.run.x),
        np.asarray(trace.run.y),
    )


@eqx.filter_jit
def _race(policy, tasks, num_queries, keys, noise_std, infer, chunk):
    def one(entry):
        task, key = entry
        return optimise(task, policy, num_queries, key=key, noise_std=noise_std, infer=infer)

    return map_chunks(one, (tasks, keys), chunk)


@float64
def values_at_predicted_best(
    policy: SurrogatePolicy,
    tasks: AbstractTask,
    found: PolicyRace,
    num_seen: int,
    *,
    key: PRNGKeyArray,
) -> Float[np.ndarray, " tasks"]:
    """Noise-free value of each task where the model expects the best, after `num_seen` queries."""
    count = found.y.shape[0]
    tasks = jax.tree.map(jnp.asarray, tasks)
    keys = jax.random.split(key, count)
    x, y = jnp.asarray(found.x), jnp.asarray(found.y)
    return np.asarray(_values_at_predicted_best(policy, tasks, x, y, jnp.asarray(num_seen), keys))


@eqx.filter_jit
def _values_at_predicted_best(policy, tasks, x, y, num_seen, keys):
    def one(task, x, y, key):
        run = Run(x, y, num_seen)
        return task(policy.predicted_best(run, key=key, choices=task.choices))

    return jax.vmap(one)(tasks, x, y, keys)


@float64
def collect_histories(
    family: Family, num_tasks: int, run_length: int, *, key: PRNGKeyArray
) -> Tasks:
    """Runs of fixed GP-UCB on tasks of the family: a history without transfer.

    A family of finitely many tasks to learn from gives all it has if those are fewer.
    """
    key_tasks, key_race = jax.random.split(key)
    tasks = family.training_tasks(num_tasks, key=key_tasks)
    policy = fixed_gp_policy(family)
    found = race(policy, tasks, run_length, key=key_race, noise_std=family.noise_std)
    return recorded(family, found.x, found.y)


def fixed_gp_policy(family: Family) -> SurrogatePolicy:
    """Fixed GP-UCB: the paper's vanilla GP with upper confidence bounds, without past runs."""
    surrogate = FixedGP().from_scratch(family.space.num_inputs)
    return SurrogatePolicy(
        surrogate=surrogate, acquisition=CompiledConfidenceBound(), space=family.space
    )


def recorded(
    family: Family, x: Float[np.ndarray, "tasks steps d"], y: Float[np.ndarray, "tasks steps"]
) -> Tasks:
    """Runs of a race as a meta-training set, through the units of the family's space."""
    runs = [(family.space.decode(points), values) for points, values in zip(x, y, strict=True)]
    return Tasks.from_runs(runs, space=family.space)


class UniformPredictions(NamedTuple):
    """Predictive log density and CDF at test points of each task, by size of the context."""

    log_density: Float[np.ndarray, "tasks contexts points"]
    cdf: Float[np.ndarray, "tasks contexts points"]


@float64
def predict_uniform(
    surrogate: AbstractSurrogate,
    tasks: AbstractTask,
    context_sizes: tuple[int, ...],
    num_points: int,
    *,
    key: PRNGKeyArray,
) -> UniformPredictions:
    """Predictions at uniform test points, given uniform context points, for a stack of tasks."""
    tasks = jax.tree.map(jnp.asarray, tasks)
    sizes = jnp.asarray(context_sizes)
    capacity = max(max(context_sizes), 1)
    keys = jax.random.split(key, require_points(tasks, capacity + num_points))
    density, cdf = _predict(surrogate, tasks, sizes, capacity, num_points, keys)
    return UniformPredictions(np.asarray(density), np.asarray(cdf))


@eqx.filter_jit
def _predict(surrogate, tasks, sizes, capacity, num_points, keys):
    def one(task, key):
        context, test = task.uniform((capacity, num_points), key=key)
        values, truth = jax.vmap(task)(context), jax.vmap(task)(test)

        def given(size):
            posterior = surrogate.condition(Run(context, values, size))
            return (
                jax.vmap(posterior.log_density)(test, truth),
                jax.vmap(posterior.cdf)(test, truth),
            )

        return jax.vmap(given)(sizes)

    return jax.vmap(one)(tasks, keys)


def require_points(tasks: AbstractTask, num: int) -> int:
    """The number of tasks in a stack; an error unless each of them has `num` points to ask."""
    points = np.asarray(jax.vmap(lambda task: task.num_points())(tasks))
    short = int(np.argmin(points))
    if points[short] < num:
        raise ValueError(
            f"Task {short} has {points[short]:.0f} points to ask, and {num} are needed; ask for "
            "fewer."
        )
    return len(points)
