"""Held-out runs as an exam: from the first points of a run, predict the others.

Runs are split into folds. A surrogate trained on the other folds predicts, for several context
sizes from 0 on and in the order in which the points were collected, the rest of each run.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from metaprior.data import Run, Tasks, fit_standardiser, padded_length
from metaprior.gp import float64
from metaprior.meta import chunk_here, map_chunks
from metaprior.methods import AbstractSurrogate

# More runs, or longer ones, would take long and add little.
MOST_RUNS, MOST_POINTS = 24, 48
CONTEXTS = (0, 1, 2, 4, 8, 16, 32)


class Fold(NamedTuple):
    """A block of consecutive tasks that is held out, and those of them that are examined."""

    first: int
    count: int
    examined: Int[np.ndarray, " k"]


def shuffled(tasks: Tasks, rng: np.random.Generator) -> tuple[Tasks, Int[np.ndarray, " n"]]:
    """The tasks in random order, and the index each had before: folds are consecutive blocks."""
    order = rng.permutation(tasks.num_tasks)
    return tasks.subset(order), order


def folds_of(num_tasks: int, num_folds: int) -> list[Fold]:
    """At most `num_folds` blocks of nearly equal size, of which about `MOST_RUNS` tasks in all are
    examined."""
    blocks = np.array_split(np.arange(num_tasks), min(num_folds, num_tasks))
    share = -(-MOST_RUNS // len(blocks))
    return [Fold(int(block[0]), len(block), block[:share]) for block in blocks]


def spread_of(tasks: Tasks) -> float:
    """Standard deviation of all past values; 1 if they are equal up to rounding."""
    return float(fit_standardiser(tasks.x, tasks.y, tasks.mask).y_std)


class Exam(NamedTuple):
    """Held-out runs, subsampled to a bounded length; `rows[e]` are those of fold `e`."""

    x: Float[Array, "n m d"]
    y: Float[Array, "n m"]
    lengths: Int[Array, " n"]
    rows: Int[np.ndarray, "folds k"]
    is_real: Bool[np.ndarray, "folds k"]
    contexts: tuple[int, ...]


def exam_of(tasks: Tasks, folds: list[Fold]) -> Exam:
    """The exam of these folds; folds with fewer runs than others repeat one, which counts once."""
    most = max(len(fold.examined) for fold in folds)
    rows = np.array([np.resize(fold.examined, most) for fold in folds])
    is_real = np.array([np.arange(most) < len(fold.examined) for fold in folds])
    lengths = np.minimum(tasks.lengths, MOST_POINTS)
    capacity = min(padded_length(int(lengths.max())), tasks.capacity)
    x = np.zeros((tasks.num_tasks, capacity, tasks.x.shape[2]))
    y = np.zeros((tasks.num_tasks, capacity))
    for i, length in enumerate(lengths):
        kept = np.linspace(0, tasks.lengths[i] - 1, length).round().astype(int)
        x[i, :length], y[i, :length] = tasks.x[i, kept], tasks.y[i, kept]
    # Contexts that leave nothing to predict in any of the examined runs are left out.
    contexts = tuple(c for c in CONTEXTS if c < lengths[rows].max())
    return Exam(jnp.asarray(x), jnp.asarray(y), jnp.asarray(lengths), rows, is_real, contexts)


class Answers(NamedTuple):
    """Predictions of each entry for each run, context and point, and which of these count."""

    log_density: Float[np.ndarray, "entries runs contexts points"]
    cdf: Float[np.ndarray, "entries runs contexts points"]
    error: Float[np.ndarray, "entries runs contexts points"]
    counts: Bool[np.ndarray, "entries runs contexts points"]


@float64
def examine(
    surrogates: AbstractSurrogate,
    exam: Exam,
    fold_of: Int[np.ndarray, " entries"],
    taking_part: Bool[np.ndarray, " entries"],
) -> Answers:
    """Answers of a batch of surrogates, each to the exam of its own fold.

    Entries that take no part cost no time, and their answers do not count.
    """
    sizes = jnp.asarray(exam.contexts)
    rows = jnp.asarray(exam.rows[fold_of])
    log_density, cdf, error = _examine(
        surrogates,
        (exam.x, exam.y, exam.lengths),
        rows,
        sizes,
        jnp.asarray(taking_part),
        chunk_here(None),
    )
    lengths = np.asarray(exam.lengths)[exam.rows[fold_of]]
    point = np.arange(exam.y.shape[1])
    later = point >= np.asarray(exam.contexts)[:, None]
    counts = later & (point < lengths[..., None, None])
    counts &= (exam.is_real[fold_of] & taking_part[:, None])[..., None, None]
    return Answers(np.asarray(log_density), np.asarray(cdf), np.asarray(error), counts)


@eqx.filter_jit
def _examine(surrogates, runs, rows, sizes, taking_part, chunk):
    arrays, static = eqx.partition(surrogates, eqx.is_array)
    x, y, lengths = runs

    def answers(arrays, rows):
        surrogate = eqx.combine(arrays, static)

        def one_run(row):
            def given(size):
                run = Run(x[row], y[row], jnp.minimum(size, lengths[row]))
                posterior = surrogate.condition(run)

                def at(point, value):
                    error = posterior.moments(point).mean - value
                    return posterior.log_density(point, value), posterior.cdf(point, value), error

                return jax.vmap(at)(x[row], y[row])

            return jax.vmap(given)(sizes)

        return jax.vmap(one_run)(rows)

    def one(entry):
        arrays, rows, takes_part = entry
        blank = jax.tree.map(
            lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(answers, arrays, rows)
        )
        return jax.lax.cond(takes_part, answers, lambda *_: blank, arrays, rows)

    return map_chunks(one, (arrays, rows, taking_part), chunk)
