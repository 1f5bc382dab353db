"""Exams: folds of neighbours, context in the order of the run, later points and nothing else."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.learning._exam import (
    MOST_POINTS,
    MOST_RUNS,
    Fold,
    exam_of,
    examine,
    folds_of,
    shuffled,
    spread_of,
)
from metaprior.learning._predict import CompiledPredictors
from tests.learning.answers import LastSeen, tasks_of


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 1000), st.integers(1, 7))
def test_folds_of_are_blocks_of_nearly_equal_size(num_tasks, num_folds):
    folds = folds_of(num_tasks, num_folds)
    assert len(folds) == min(num_folds, num_tasks)
    blocks = [list(range(fold.first, fold.first + fold.count)) for fold in folds]
    assert sum(blocks, []) == list(range(num_tasks))
    sizes = [fold.count for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    for fold, block in zip(folds, blocks, strict=True):
        assert len(fold.examined) >= 1
        assert set(fold.examined.tolist()) <= set(block)
        assert len(set(fold.examined.tolist())) == len(fold.examined)
    examined = sum(len(fold.examined) for fold in folds)
    assert min(num_tasks, MOST_RUNS) <= examined + num_folds
    assert examined < MOST_RUNS + num_folds


def test_shuffled_tasks_keep_their_original_index():
    tasks = tasks_of(*[[float(i), 10.0 + i] for i in range(9)])
    mixed, order = shuffled(tasks, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(9)) and order.tolist() != list(range(9))
    for place, was in enumerate(order):
        assert mixed.y[place, :2].tolist() == [float(was), 10.0 + was]


def test_exam_of_thins_out_long_runs_in_order():
    long = [float(i) for i in range(3 * MOST_POINTS)]
    tasks = tasks_of(long, [5.0, 4.0, 6.0])
    exam = exam_of(tasks, folds_of(2, 2))
    assert exam.lengths.tolist() == [MOST_POINTS, 3]
    y, x = np.asarray(exam.y), np.asarray(exam.x)
    kept = y[0, :MOST_POINTS]
    assert kept[0] == 0.0 and kept[-1] == long[-1]
    steps = np.diff(kept)
    assert steps.min() >= 2 and steps.max() <= 4
    np.testing.assert_allclose(x[0, :MOST_POINTS, 0], kept / long[-1], rtol=1e-12)
    assert y[1, :3].tolist() == [5.0, 4.0, 6.0]
    assert y.shape[1] < 2 * MOST_POINTS


def test_exam_of_contexts_leave_something_to_predict():
    short = [[0.0, 1.0]] * 200
    tasks = tasks_of(*short, [float(i) for i in range(20)])
    # The only long run is the last of its fold, and not examined.
    assert max(exam_of(tasks, folds_of(201, 4)).contexts) == 1
    assert max(exam_of(tasks, [Fold(200, 1, np.array([200]))]).contexts) in range(2, 20)
    assert exam_of(tasks_of([1.0], [2.0]), folds_of(2, 2)).contexts == (0,)


RUNS = ([1.0, 2.0, 4.0, 8.0], [3.0], [-1.0, 0.5, 7.0], [2.0, 2.0], [9.0, 1.0, 5.0])
SHIFTS = np.array([0.0, 1.5, -2.0])


def test_examine_by_hand():
    """The last value seen is expected next: contexts are the first points, in their order."""
    tasks = tasks_of(*RUNS)
    exam = exam_of(tasks, folds_of(5, 2))
    # Blocks of three and of two: the second repeats one, which must not count twice.
    assert exam.rows.tolist() == [[0, 1, 2], [3, 4, 3]]
    assert exam.is_real.tolist() == [[True] * 3, [True, True, False]]
    assert exam.contexts == (0, 1, 2)
    fold_of, taking_part = np.array([0, 1, 1]), np.array([True, True, False])
    priors = CompiledPredictors(LastSeen(jnp.asarray(SHIFTS)))
    answers = examine(priors, exam, fold_of, taking_part)
    counted = 0
    for entry in range(3):
        for place in range(3):
            values = RUNS[exam.rows[fold_of[entry], place]]
            is_asked = exam.is_real[fold_of[entry], place] and taking_part[entry]
            for i, size in enumerate(exam.contexts):
                for point in range(answers.counts.shape[3]):
                    where = entry, place, i, point
                    counts = bool(is_asked and size <= point < len(values))
                    assert answers.counts[where] == counts, where
                    if not counts:
                        continue
                    counted += 1
                    last = values[size - 1] if size else 0.0
                    predicted = SHIFTS[entry] + last, (1 + size) ** -0.5
                    density = scipy.stats.norm.logpdf(values[point], *predicted)
                    below = scipy.stats.norm.cdf(values[point], *predicted)
                    np.testing.assert_allclose(answers.log_density[where], density)
                    np.testing.assert_allclose(answers.cdf[where], below, rtol=1e-9, atol=1e-14)
                    np.testing.assert_allclose(answers.error[where], predicted[0] - values[point])
    # Of the runs of 4, 1, 3 points, and of those of 2, 3.
    assert counted == (4 + 3 + 2) + 1 + (3 + 2 + 1) + (2 + 1) + (3 + 2 + 1)


@pytest.mark.parametrize("value", [7.0, 0.1, 1e6 + 0.1])
def test_spread_of_equal_values_is_one(value):
    """The standard deviation of three times 0.1 is not exactly zero."""
    assert spread_of(tasks_of([value] * 3, [value] * 4)) == 1.0
    np.testing.assert_allclose(spread_of(tasks_of([1.0, 2.0], [4.0])), np.std([1.0, 2.0, 4.0]))
