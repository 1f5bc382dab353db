"""Held-out runs as an exam: from the first points of a run, predict the others.

Runs are split into folds. A surrogate trained on the other folds predicts, for several context
sizes from 0 on and in the order in which the points were collected, the rest of each run.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from metaprior.data import Tasks, fit_standardiser, padded_length
from metaprior.learning._predict import AbstractPredictors, Questions

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


def without_each(tasks: Tasks, folds: list[Fold]) -> list[Tasks]:
    """For each fold the tasks that are not in it."""
    every = np.arange(tasks.num_tasks)
    held_out = [(every >= f.first) & (every < f.first + f.count) for f in folds]
    return [tasks.subset(every[~block]) for block in held_out]


def spread_of(tasks: Tasks) -> float:
    """Standard deviation of all past values; 1 if they are equal up to rounding."""
    return float(fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space).y_std)


class Exam(NamedTuple):
    """Held-out runs, subsampled to a bounded length; `rows[e]` are those of fold `e`."""

    x: Float[np.ndarray, "n m d"]
    y: Float[np.ndarray, "n m"]
    lengths: Int[np.ndarray, " n"]
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
    return Exam(x, y, lengths, rows, is_real, contexts)


class Answers(NamedTuple):
    """Predictions of each entry for each run, context and point, and which of these count."""

    log_density: Float[np.ndarray, "entries runs contexts points"]
    cdf: Float[np.ndarray, "entries runs contexts points"]
    error: Float[np.ndarray, "entries runs contexts points"]
    counts: Bool[np.ndarray, "entries runs contexts points"]


def examine(
    priors: AbstractPredictors,
    exam: Exam,
    fold_of: Int[np.ndarray, " entries"],
    taking_part: Bool[np.ndarray, " entries"],
) -> Answers:
    """Answers of priors, each to the exam of its own fold.

    Entries that take no part cost no time, and their answers do not count.
    """
    rows, sizes = exam.rows[fold_of], np.asarray(exam.contexts)
    is_asked = exam.is_real[fold_of] & taking_part[:, None]
    point = np.arange(exam.y.shape[1])
    counts = (point >= sizes[:, None]) & (point < exam.lengths[rows][..., None, None])
    counts &= is_asked[..., None, None]
    # Where nothing is left to predict, nothing is asked.
    which, place, context = where = np.nonzero(counts.any(axis=3))
    run = rows[which, place]
    found = priors.predict(Questions(which, run, sizes[context], exam.x, exam.y))

    def in_place(values: Float[np.ndarray, "questions points"]):
        answers = np.zeros(counts.shape)
        answers[where] = values
        return answers

    return Answers(
        in_place(found.log_density),
        in_place(found.cdf),
        in_place(found.mean - exam.y[run]),
        counts,
    )
