"""The repetitions of a study: for each seed, past runs to learn from and unseen tasks to run on.

All methods of a study see the same repetitions. Reported seeds are 0, 1, 2, ...; those on which
hyper-parameters are chosen start at `VALIDATION_SEED`, and are rehearsals: past runs and validation
tasks are tasks that nothing is reported on.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from metaprior.data import Tasks
from metaprior.gp import float64
from metaprior.lab.environments import AbstractTask, Family, known_families
from metaprior.lab.studies._batches import race_each
from metaprior.lab.studies._contenders import AbstractLearned
from metaprior.lab.studies._line_up import contender_of
from metaprior.lab.studies._races import fixed_gp_policy, recorded, require_points
from metaprior.lab.studies._specification import Specification
from metaprior.meta import stack

VALIDATION_SEED = 1000


class SeedKeys(NamedTuple):
    """The random keys of one repetition, one for each purpose."""

    history: PRNGKeyArray
    tasks: PRNGKeyArray
    train: PRNGKeyArray
    race: PRNGKeyArray


def keys_of(seed: int) -> SeedKeys:
    return SeedKeys(*jax.random.split(jax.random.key(seed), len(SeedKeys._fields)))


def stacked_keys(keys: Sequence[PRNGKeyArray]) -> Key[Array, " batch"]:
    return jnp.stack(list(keys))


def split_each(keys: Sequence[PRNGKeyArray], num: int) -> Key[Array, "batch num"]:
    """`num` keys of each."""
    return jnp.stack([jax.random.split(key, num) for key in keys])


@cache
@float64
def histories(
    environment: str, num_tasks: int, run_length: int, seeds: tuple[int, ...], chunk: int | None
) -> tuple[Tasks, ...]:
    """For each seed, what `collect_histories` collects with its key; kept for the next method.

    A family of finitely many tasks to learn from gives all it has if those are fewer.
    """
    family = known_families()[environment]
    pairs = [jax.random.split(keys_of(seed).history) for seed in seeds]
    drawn = [
        _family_of(environment, seed).training_tasks(num_tasks, key=key_tasks)
        for seed, (key_tasks, _) in zip(seeds, pairs, strict=True)
    ]
    found = race_each(
        stack([fixed_gp_policy(family)] * len(seeds)),
        stacked_tasks(drawn),
        run_length,
        keys=split_each([key_race for _, key_race in pairs], count_of(drawn[0])),
        noise_std=family.noise_std,
        chunk=chunk,
    )
    return tuple(recorded(family, x, y) for x, y in zip(found.x, found.y, strict=True))


@cache
@float64
def uniform_histories(
    environment: str, num_tasks: int, run_length: int, seeds: tuple[int, ...], chunk: int | None
) -> tuple[Tasks, ...]:
    """For each seed, the tasks of `histories` at uniform points."""
    family = known_families()[environment]

    def sampled(task: AbstractTask, key: PRNGKeyArray):
        key_points, key_noise = jax.random.split(key)
        (points,) = task.uniform((run_length,), key=key_points)
        noise = family.noise_std * jax.random.normal(key_noise, (run_length,))
        return points, jax.vmap(task)(points) + noise

    found = []
    for seed in seeds:
        key_tasks, key_points = jax.random.split(keys_of(seed).history)
        drawn = _family_of(environment, seed).training_tasks(num_tasks, key=key_tasks)
        keys = jax.random.split(key_points, require_points(drawn, run_length))
        x, y = jax.jit(jax.vmap(sampled))(jax.tree.map(jnp.asarray, drawn), keys)
        found.append(recorded(family, np.asarray(x), np.asarray(y)))
    return tuple(found)


def learn_seeds(job: Specification, past: Sequence[Tasks]) -> AbstractLearned:
    """What the job's contender learned from the past runs of each of its seeds."""
    keys = stacked_keys([keys_of(seed).train for seed in job["seeds"]])
    return contender_of(job).learn(past, keys=keys, chunk=job["chunk"])


@cache
def unseen_tasks(environment: str, num_tasks: int, seeds: tuple[int, ...]) -> AbstractTask:
    """Tasks to run on, stacked by seed and task: test tasks of reported seeds, validation tasks of
    others. A family of finitely many gives all it has if those are fewer."""
    return stacked_tasks([_tasks_of(environment, num_tasks, seed) for seed in seeds])


@cache
def optima(
    environment: str, num_tasks: int, seeds: tuple[int, ...]
) -> Float[np.ndarray, "seeds tasks"]:
    """The optimum of each of the unseen tasks."""
    family = known_families()[environment]
    tasks = [_tasks_of(environment, num_tasks, seed) for seed in seeds]
    return np.stack([family.optimum(some).value for some in tasks])


def _tasks_of(environment: str, num_tasks: int, seed: int) -> AbstractTask:
    family = _family_of(environment, seed)
    choose = family.test_tasks if seed < VALIDATION_SEED else family.validation_tasks
    return choose(num_tasks, key=keys_of(seed).tasks)


def _family_of(environment: str, seed: int) -> Family:
    """The family itself for a reported seed, and a rehearsal of it for others."""
    family = known_families()[environment]
    return family if seed < VALIDATION_SEED else family.rehearsal(seed - VALIDATION_SEED)


def stacked_tasks(stacks: Sequence[AbstractTask]) -> AbstractTask:
    """Stacks of tasks as one stack of stacks."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *stacks)


def count_of(tasks: AbstractTask) -> int:
    """The length of the first axis of a stack of tasks."""
    return jax.tree.leaves(tasks)[0].shape[0]
