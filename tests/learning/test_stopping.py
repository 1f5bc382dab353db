"""Calibration of the stopping hint: the curve by hand, and statements by beliefs that are right."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.belief import AveragedBelief
from metaprior.learning import _stopping
from metaprior.learning._exam import Exam, exam_of, folds_of
from metaprior.learning._predict import CompiledPredictors, ConditionedPredictors
from metaprior.learning._stopping import SEEN, curve, stopping_of
from tests.learning.answers import LastSeen, tasks_of


def never() -> bool:
    return False


def test_curve_is_the_share_of_outcomes_with_two_that_are_as_stated():
    stated = np.repeat([0.2, 0.8], 10)
    happened = np.array([True] + [False] * 9 + [True] * 10)
    places, shares = curve(stated, happened)
    np.testing.assert_allclose(places, [0.2, 0.8])
    np.testing.assert_allclose(shares, [(1 + 0.4) / 12, (10 + 1.6) / 12])


def test_curve_pools_neighbours_until_it_never_falls():
    stated = np.repeat([0.2, 0.5, 0.8], 10)
    happened = np.array([False] * 10 + [True] * 8 + [False] * 2 + [True] * 4 + [False] * 6)
    places, shares = curve(stated, happened)
    np.testing.assert_allclose(places, [0.2, 0.65])
    np.testing.assert_allclose(shares, [0.4 / 12, (12 + 1.3) / 22])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=120))
def test_curve_rises_between_zero_and_one(entries):
    stated, happened = (np.array(column) for column in zip(*entries, strict=True))
    places, shares = curve(stated, happened)
    assert (np.diff(places) > 0).all() and (np.diff(shares) >= 0).all()
    assert places.min() >= 0 and places.max() <= 1 + 1e-12
    assert shares.min() >= 0 and shares.max() <= 1 + 1e-12


def smooth_exam(num_runs: int = 8) -> Exam:
    x = np.linspace(0.0, 1.0, 12)
    runs = [np.sin(5.0 * x + 6.0 * i / num_runs).tolist() for i in range(num_runs)]
    return exam_of(tasks_of(*runs), folds_of(num_runs, 2))


BELIEFS = ConditionedPredictors([AveragedBelief(0.0, 0.7)] * 2)


def test_stopping_of_compares_every_statement_with_what_happened(monkeypatch):
    monkeypatch.setattr(_stopping, "FEWEST_STATEMENTS", 3 * len(SEEN))
    monkeypatch.setattr(_stopping, "PER_PLACE", 4)
    found = stopping_of(BELIEFS, smooth_exam(3), never)
    assert found is not None
    assert found.runs == 3 and found.outcomes == 3 * len(SEEN)
    # After few queries the best is open; where the belief is sure of it, it has been found.
    assert found(0.0) < 0.7 < found(1.0)


def test_stopping_of_few_runs_of_priors_without_a_belief_or_without_time_is_none():
    assert stopping_of(BELIEFS, smooth_exam(3), never) is None
    assert stopping_of(BELIEFS, smooth_exam(), lambda: True) is None
    without = CompiledPredictors(LastSeen(jnp.zeros(2)))
    assert stopping_of(without, smooth_exam(), never) is None


@pytest.mark.parametrize("length", [1, 3])
def test_stopping_of_short_runs_is_none(length):
    tasks = tasks_of(*[[float(i) for i in range(length)]] * 30)
    assert stopping_of(BELIEFS, exam_of(tasks, folds_of(30, 2)), never) is None
