"""Offline meta-learning on a family of tasks: collect histories, race policies, check calibration.

Everything here is one compiled call over a stack of tasks.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from metaprior._precision import float64
from metaprior.bo import AbstractPolicy, SurrogatePolicy, UpperConfidenceBound, optimise
from metaprior.data import Run, Tasks
from metaprior.environments import AbstractTask, Family
from metaprior.methods import AbstractSurrogate, VanillaGP


class Race(NamedTuple):
    """Noise-free values at the queries, and where the model expected the best, for each task."""

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
) -> Race:
    """One run of `policy` on each of a stack of tasks."""
    count = jax.tree.leaves(tasks)[0].shape[0]
    tasks = jax.tree.map(jnp.asarray, tasks)
    keys = jax.random.split(key, count)
    trace = _race(policy, tasks, num_queries, keys, noise_std, infer)
    return Race(
        np.asarray(trace.values),
        np.asarray(trace.values_at_predicted_best),
        np.asarray(trace.run.x),
        np.asarray(trace.run.y),
    )


@eqx.filter_jit
def _race(policy, tasks, num_queries, keys, noise_std, infer):
    def one(task, key):
        return optimise(task, policy, num_queries, key=key, noise_std=noise_std, infer=infer)

    return jax.vmap(one)(tasks, keys)


@float64
def values_at_predicted_best(
    policy: SurrogatePolicy, tasks: AbstractTask, found: Race, num_seen: int, *, key: PRNGKeyArray
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
        return task(policy.predicted_best(Run(x, y, num_seen), key=key))

    return jax.vmap(one)(tasks, x, y, keys)


@float64
def collect_histories(
    family: Family, num_tasks: int, run_length: int, *, key: PRNGKeyArray
) -> Tasks:
    """Runs of vanilla GP-UCB on tasks of the family, as somebody without a prior would make."""
    key_tasks, key_race = jax.random.split(key)
    surrogate = VanillaGP().from_scratch(family.space.num_columns)
    policy = SurrogatePolicy(
        surrogate=surrogate, acquisition=UpperConfidenceBound(), space=family.space
    )
    tasks = family.sample_tasks(num_tasks, key=key_tasks)
    found = race(policy, tasks, run_length, key=key_race, noise_std=family.noise_std)
    runs = [(family.space.decode(x), y) for x, y in zip(found.x, found.y, strict=True)]
    return Tasks.from_runs(runs, space=family.space)


class Predictions(NamedTuple):
    """Predictive log density and CDF at test points of each task, by size of the context."""

    log_density: Float[np.ndarray, "tasks contexts points"]
    cdf: Float[np.ndarray, "tasks contexts points"]


@float64
def predict_uniform(
    surrogate: AbstractSurrogate,
    tasks: AbstractTask,
    context_sizes: tuple[int, ...],
    num_points: int,
    num_columns: int,
    *,
    key: PRNGKeyArray,
) -> Predictions:
    """Predictions at uniform test points, given uniform context points, for a stack of tasks."""
    count = jax.tree.leaves(tasks)[0].shape[0]
    tasks = jax.tree.map(jnp.asarray, tasks)
    keys = jax.random.split(key, count)
    sizes = jnp.asarray(context_sizes)
    capacity = max(max(context_sizes), 1)
    density, cdf = _predict(surrogate, tasks, sizes, capacity, num_points, num_columns, keys)
    return Predictions(np.asarray(density), np.asarray(cdf))


@eqx.filter_jit
def _predict(surrogate, tasks, sizes, capacity, num_points, num_columns, keys):
    def one(task, key):
        key_context, key_test = jax.random.split(key)
        context = jax.random.uniform(key_context, (capacity, num_columns))
        values = jax.vmap(task)(context)
        test = jax.random.uniform(key_test, (num_points, num_columns))
        truth = jax.vmap(task)(test)

        def given(size):
            posterior = surrogate.condition(Run(context, values, size))
            return (
                jax.vmap(posterior.log_density)(test, truth),
                jax.vmap(posterior.cdf)(test, truth),
            )

        return jax.vmap(given)(sizes)

    return jax.vmap(one)(tasks, keys)
