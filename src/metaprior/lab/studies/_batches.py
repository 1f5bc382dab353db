"""Seeds and configurations as a batch dimension: train, race and predict many times in one call.

A batch of surrogates is one surrogate whose arrays have a leading axis, and so is one of policies.
Each entry of a batch has its own tasks, on a second axis. Entries are worked on in chunks, tasks of
an entry side by side. `rows_of` turns what comes back into the columns of a record.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree, Shaped

from metaprior.data import Run, Tasks
from metaprior.gp import float64
from metaprior.lab.environments import AbstractTask
from metaprior.lab.policies import AbstractPolicy, optimise
from metaprior.lab.studies._jobs import Columns
from metaprior.lab.studies._races import PolicyRace, require_points
from metaprior.meta import chunk_here, map_chunks, stack
from metaprior.methods import (
    AbstractGradientMethod,
    AbstractMethod,
    AbstractSurrogate,
    meta_train_at,
    meta_train_each,
)


def train_each(
    methods: Sequence[AbstractMethod],
    histories: Sequence[Tasks],
    *,
    keys: Key[Array, " batch"],
    room: int | None = None,
    chunk: int | None = None,
    may_diverge: bool = False,
) -> AbstractSurrogate:
    """A surrogate for each method from its own past runs, stacked.

    - `methods`: of one class and of equal sizes.
    - `room`: sets of 1 to `room` past runs, all of one length, share compiled code.
    - `may_diverge`: numbers that are not finite are returned, not raised.
    """
    if methods[0].trains_in_batches:
        return meta_train_each(
            cast(Sequence[AbstractGradientMethod], methods),
            histories,
            keys=keys,
            room=room,
            chunk=chunk,
            may_diverge=may_diverge,
        )
    padded = [history if room is None else with_room(history, room) for history in histories]
    trained = zip(methods, padded, keys, strict=True)
    return stack([method.meta_train(history, key=key) for method, history, key in trained])


def train_at(
    methods: Sequence[AbstractMethod],
    histories: Sequence[Tasks],
    checkpoints: Sequence[int],
    *,
    keys: Key[Array, " batch"],
    chunk: int | None = None,
) -> list[tuple[int, AbstractSurrogate]]:
    """As `train_each`, after each of several numbers of steps; numbers may not be finite.

    A method that is not trained in steps has no checkpoints, and one surrogate after 0 steps.
    """
    if not checkpoints:
        return [(0, train_each(methods, histories, keys=keys, chunk=chunk, may_diverge=True))]
    gradient = cast(Sequence[AbstractGradientMethod], methods)
    found = meta_train_at(gradient, histories, checkpoints, keys=keys, chunk=chunk)
    return list(zip(checkpoints, found, strict=True))


def with_room(history: Tasks, room: int) -> Tasks:
    """The past runs and empty ones after them, `room` in all."""
    spare = room - history.num_tasks
    x, y, mask = (
        np.pad(array, [(0, spare)] + [(0, 0)] * (array.ndim - 1))
        for array in (history.x, history.y, history.mask)
    )
    return Tasks(history.space, x, y, mask, history.direction)


@float64
def race_each(
    policies: AbstractPolicy,
    tasks: AbstractTask,
    num_queries: int,
    *,
    keys: Key[Array, "batch tasks"],
    noise_std: float = 0.0,
    infer: bool = False,
    chunk: int | None = None,
) -> PolicyRace:
    """One run of each policy on each of its tasks; arrays of the result have both axes."""
    tasks = jax.tree.map(jnp.asarray, tasks)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tasks)
    require_points(flat, num_queries)
    chunk = chunk_here(chunk)
    trace = _race_each(policies, tasks, keys, num_queries, noise_std, infer, chunk)
    arrays = trace.values, trace.values_at_predicted_best, trace.run.x, trace.run.y
    return PolicyRace(*(np.asarray(array) for array in arrays))


@eqx.filter_jit
def _race_each(policies, tasks, keys, num_queries, noise_std, infer, chunk):
    def one(policy, tasks, keys):
        def run(task, key):
            return optimise(task, policy, num_queries, key=key, noise_std=noise_std, infer=infer)

        return jax.vmap(run)(tasks, keys)

    return _for_each(one, policies, (tasks, keys), chunk)


class Judged(NamedTuple):
    """Predictions at points whose values are known: log density, CDF and error of the mean."""

    log_density: Float[np.ndarray, "batch tasks *contexts points"]
    cdf: Float[np.ndarray, "batch tasks *contexts points"]
    error: Float[np.ndarray, "batch tasks *contexts points"]


class ContextSplit(NamedTuple):
    """A context to learn from and points to predict, of each task of each entry."""

    context_x: Float[Array, "*batch tasks m d"]
    context_y: Float[Array, "*batch tasks m"]
    test_x: Float[Array, "*batch tasks p d"]
    test_y: Float[Array, "*batch tasks p"]


@float64
def judge_each(
    surrogates: AbstractSurrogate,
    exams: ContextSplit,
    context_sizes: Sequence[int],
    *,
    chunk: int | None = None,
) -> Judged:
    """Predictions of each surrogate for its tasks, given the first points of their contexts."""
    sizes = jnp.asarray(context_sizes)
    return Judged(*map(np.asarray, _judge_each(surrogates, exams, sizes, chunk_here(chunk))))


@eqx.filter_jit
def _judge_each(surrogates, exams, sizes, chunk):
    def one(surrogate, exams):
        def task(exam: ContextSplit):
            def given(size):
                posterior = surrogate.condition(Run(exam.context_x, exam.context_y, size))

                def at(x, y):
                    error = posterior.moments(x).mean - y
                    return posterior.log_density(x, y), posterior.cdf(x, y), error

                return jax.vmap(at)(exam.test_x, exam.test_y)

            return jax.vmap(given)(sizes)

        return jax.vmap(task)(exams)

    return _for_each(one, surrogates, (exams,), chunk)


def rows_of(
    axes: dict[str, Shaped[np.ndarray, " _"] | list[int] | range],
    metrics: dict[str, Float[np.ndarray, "..."]],
) -> Columns:
    """Columns of a record: the coordinates of every entry along `axes`, and its metrics.

    - `axes`: coordinates by name, in the order of the axes of the metrics. A metric that lacks the
      last axes has the same value all along them.
    """
    shape = tuple(len(values) for values in axes.values())
    coordinates = np.meshgrid(*(np.asarray(values) for values in axes.values()), indexing="ij")
    columns = {name: grid.ravel() for name, grid in zip(axes, coordinates, strict=True)}
    for name, metric in metrics.items():
        missing = (1,) * (len(shape) - metric.ndim)
        columns[name] = np.broadcast_to(metric.reshape(*metric.shape, *missing), shape).ravel()
    return columns


def _for_each(function, batch: PyTree, others: tuple[PyTree, ...], chunk: int | None) -> PyTree:
    """`function` of each entry of a batch of models and of the others' entries beside it."""
    arrays, static = eqx.partition(batch, eqx.is_array)

    def one(entry):
        arrays, others = entry
        return function(eqx.combine(arrays, static), *others)

    return map_chunks(one, (arrays, others), chunk)
