import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.metrics import (
    cumulative_regret,
    inference_regret,
    mean_and_interval,
    simple_regret,
)

curves = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30)


def test_regrets_by_hand():
    values = np.array([[1.0, 3.0, 2.0, 4.0], [0.0, -1.0, 0.5, 0.0]])
    optimum = np.array([5.0, 0.5])
    np.testing.assert_array_equal(simple_regret(optimum, values), [[4, 2, 2, 1], [0.5, 0.5, 0, 0]])
    np.testing.assert_array_equal(
        inference_regret(optimum, values), [[4, 2, 3, 1], [0.5, 1.5, 0, 0.5]]
    )
    np.testing.assert_array_equal(cumulative_regret([[4.0, 2, 2, 1]]), [[4, 6, 8, 9]])


@settings(deadline=None)
@given(values=curves, slack=st.floats(0, 10))
def test_simple_regret_against_a_loop(values, slack):
    optimum = max(values) + slack
    best, expected = -np.inf, []
    for value in values:
        best = max(best, value)
        expected.append(optimum - best)
    got = simple_regret(optimum, values)
    np.testing.assert_array_equal(got, expected)
    assert np.all(np.diff(got) <= 0) and np.all(got >= 0)


@settings(deadline=None)
@given(regret=curves)
def test_cumulative_regret_against_a_loop(regret):
    expected = [sum(regret[: t + 1]) for t in range(len(regret))]
    np.testing.assert_allclose(cumulative_regret(regret), expected, atol=1e-9)


def test_regret_one_optimum_may_serve_many_runs():
    values = np.random.default_rng(0).normal(size=(3, 4, 5))
    np.testing.assert_array_equal(
        simple_regret(9.0, values), simple_regret(np.full((3, 4), 9.0), values)
    )


def test_regret_is_negative_for_too_low_an_optimum():
    assert simple_regret(1.0, [0.0, 2.0])[-1] == -1.0


@settings(deadline=None)
@given(seed=st.integers(0, 2**31 - 1), n=st.integers(2, 20), confidence=st.floats(0.5, 0.99))
def test_mean_and_interval_matches_scipy(seed, n, confidence):
    samples = np.random.default_rng(seed).normal(2, 3, (n, 4))
    got = mean_and_interval(samples, axis=0, confidence=confidence)
    low, high = scipy.stats.t.interval(
        confidence, n - 1, loc=samples.mean(axis=0), scale=scipy.stats.sem(samples, axis=0)
    )
    np.testing.assert_allclose(got.mean - got.half_width, low, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got.mean + got.half_width, high, rtol=1e-9, atol=1e-12)


def test_mean_and_interval_pools_several_axes():
    samples = np.random.default_rng(1).normal(size=(3, 5, 7))
    pooled = mean_and_interval(samples.reshape(15, 7))
    both = mean_and_interval(samples, axis=(0, 1))
    np.testing.assert_allclose(both.mean, pooled.mean, rtol=1e-12)
    np.testing.assert_allclose(both.half_width, pooled.half_width, rtol=1e-12)


def test_mean_and_interval_has_its_coverage():
    samples = np.random.default_rng(2).normal(1.0, 2.0, (5, 20_000))
    mean, half_width = mean_and_interval(samples)
    # Five standard errors of a frequency of 0.95.
    margin = 5 * np.sqrt(0.95 * 0.05 / 20_000)
    assert abs(np.mean(np.abs(mean - 1.0) <= half_width) - 0.95) < margin
    # The normal quantile would be too narrow for five samples: the reason for Student's.
    normal = 1.96 * samples.std(axis=0, ddof=1) / np.sqrt(5)
    assert np.mean(np.abs(mean - 1.0) <= normal) < 0.95 - margin


def test_mean_and_interval_of_one_sample_is_infinite():
    got = mean_and_interval(np.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(got.mean, [1.0, 2.0])
    assert np.all(np.isinf(got.half_width))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: simple_regret([1.0, 2.0], np.zeros((3, 4))), r"\(2,\).*\(3, 4\).*\(3,\)"),
        (lambda: simple_regret(np.ones((3, 1)), np.zeros((3, 4))), r"\(3, 1\)"),
        (lambda: simple_regret(1.0, np.array(2.0)), "single number"),
        (lambda: inference_regret(1.0, [0.0, np.nan]), r"values hold NaN at index \(1,\)"),
        (lambda: simple_regret(np.nan, [0.0]), "optimum"),
        (lambda: cumulative_regret(np.array(1.0)), "single number"),
        (lambda: mean_and_interval(np.zeros((0, 3))), "empty"),
        (lambda: mean_and_interval([1.0, 2.0], confidence=1.5), "`confidence` is 1.5"),
    ],
)
def test_regret_and_interval_refuse_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
