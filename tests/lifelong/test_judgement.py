"""When a new version takes the place of the old one."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from metaprior.lifelong import judge
from metaprior.lifelong._judgement import in_units


def test_judge_keeps_the_first_version_but_not_an_unjudged_one():
    assert judge({"a": -3.0}, None).kept
    assert not judge({}, None).kept
    assert not judge({}, {"a": 1.0}).kept


def test_judge_by_hand():
    old = {"a": 1.0, "b": 2.0, "c": 3.0, "gone": 100.0}
    # Differences -0.1, -0.2, -0.3: mean -0.2, standard error 0.1 / sqrt(3) = 0.058.
    assert not judge({"a": 0.9, "b": 1.8, "c": 2.7, "new": -50.0}, old).kept
    # Differences -0.1, 0, -0.2: mean -0.1, standard error 0.058.
    assert judge({"a": 0.9, "b": 2.0, "c": 2.8}, old).kept
    # Differences 1, -1, -0.3: mean -0.1, standard error 0.590.
    assert judge({"a": 2.0, "b": 1.0, "c": 2.7}, old).kept


def test_judge_tolerates_no_loss_on_one_common_run():
    assert judge({"a": 1.0}, {"a": 1.0}).kept
    assert not judge({"a": 0.999}, {"a": 1.0}).kept


def test_judge_keeps_a_version_with_no_run_in_common():
    judgement = judge({"a": 1.0}, {"b": 5.0})
    assert judgement.kept and "No run" in judgement.reason


@given(st.lists(st.floats(-50.0, 50.0), min_size=2, max_size=30))
def test_judge_agrees_with_scipy(differences):
    error = scipy.stats.sem(differences)
    margin = np.mean(differences) + 2.0 * error
    new = {str(i): 0.0 for i in range(len(differences))}
    old = {str(i): -d for i, d in enumerate(differences)}
    if abs(margin) > 1e-9:
        assert judge(new, old).kept == (margin > 0)


@pytest.mark.parametrize("factor", [0.1, 3.0, 1000.0])
def test_in_units_shifts_a_log_density(factor):
    # The same observation in other units: the density of y / spread under a normal distribution.
    spread, y = 2.5, 1.3
    density = float(scipy.stats.norm.logpdf(y / spread, 0.4 / spread, 0.7 / spread))
    other = spread * factor
    expected = scipy.stats.norm.logpdf(y / other, 0.4 / other, 0.7 / other)
    assert math.isclose(in_units({"a": density}, spread, other)["a"], expected, rel_tol=1e-9)
