import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.metrics import calibration_error, coverage, gaussian_cdf

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@settings(deadline=None)
@given(cdf_values=probabilities)
def test_calibration_error_is_its_formula(cdf_values):
    # Counted one by one, from the paper's definition.
    residuals = []
    for h in range(20):
        q = np.linspace(0, 1, 20)[h]
        residuals.append(sum(value <= q for value in cdf_values) / len(cdf_values) - q)
    expected = np.sqrt(sum(r**2 for r in residuals) / 20)
    assert calibration_error(cdf_values) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(cdf_values=probabilities, levels=st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_coverage_is_its_formula(cdf_values, levels):
    expected = [np.mean([abs(2 * value - 1) <= alpha for value in cdf_values]) for alpha in levels]
    np.testing.assert_allclose(coverage(cdf_values, levels), expected, atol=1e-12)


def test_calibration_error_by_hand():
    # Levels 0, 1/2, 1; a value at the median counts for the last two.
    assert calibration_error([0.5], levels=3) == pytest.approx(np.sqrt(0.25 / 3))
    assert calibration_error([0.25, 0.75], levels=3) == 0.0
    # All observations far above their predictions: nothing held until the last level.
    q = np.arange(20) / 19
    expected = np.sqrt((q[:-1] ** 2).sum() / 20)
    assert calibration_error(np.ones(7)) == pytest.approx(expected)


def test_calibration_error_levels_may_be_given_and_shapes_do_not_matter():
    values = np.random.default_rng(0).uniform(size=(4, 5))
    by_number = calibration_error(values, levels=11)
    assert calibration_error(values.ravel(), levels=np.linspace(0, 1, 11)) == by_number
    assert calibration_error(values, levels=np.linspace(0.1, 1, 10)) != by_number


def test_coverage_by_hand():
    # Distances from the median, doubled: 0, 0.5, 0.5, 0.8.
    got = coverage([0.5, 0.25, 0.75, 0.9], [0.0, 0.5, 0.79, 0.81, 1.0])
    np.testing.assert_array_equal(got, [0.25, 0.75, 0.75, 1.0, 1.0])


def test_calibration_error_is_small_for_calibrated_predictions_only():
    rng = np.random.default_rng(1)
    m = 4000
    mean, std = rng.normal(size=m), rng.uniform(0.5, 2, m)
    y = rng.normal(mean, std)
    # No level may be further off than the Kolmogorov-Smirnov bound, exceeded once in a million.
    bound = scipy.stats.kstwo(m).isf(1e-6)
    levels = np.linspace(0, 1, 21)
    honest = gaussian_cdf(y, mean, std)
    assert calibration_error(honest) < bound
    assert np.abs(coverage(honest, levels) - levels).max() < bound
    halved = gaussian_cdf(y, mean, std / 2)
    assert calibration_error(halved) > bound
    assert coverage(halved, [0.9])[0] < 0.9 - bound
    doubled = gaussian_cdf(y, mean, std * 2)
    assert calibration_error(doubled) > bound
    assert coverage(doubled, [0.5])[0] > 0.5 + bound


def test_calibration_error_of_a_halved_std_has_its_theoretical_value():
    y = np.random.default_rng(2).normal(size=200_000)
    q = np.linspace(0, 1, 20)
    # y <= std/2 * quantile(q) has probability Phi(quantile(q) / 2).
    frequency = scipy.stats.norm.cdf(scipy.stats.norm.ppf(q) / 2)
    expected = np.sqrt(np.mean((frequency - q) ** 2))
    got = calibration_error(gaussian_cdf(y, np.zeros_like(y), np.full_like(y, 0.5)))
    assert got == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: calibration_error([0.2, 1.2]), "`cdf_values` is 1.2 at position 1"),
        (lambda: calibration_error([np.nan]), "`cdf_values` is nan at position 0"),
        (lambda: calibration_error([]), "`cdf_values` is empty"),
        (lambda: calibration_error([0.5], levels=1), "`levels` is 1"),
        (lambda: coverage([0.5], [-0.1]), "`levels` is -0.1 at position 0"),
        (lambda: coverage([0.5], []), "`levels` is empty"),
    ],
)
def test_calibration_error_and_coverage_refuse_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
