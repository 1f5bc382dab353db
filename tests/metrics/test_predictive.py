import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.metrics import gaussian_cdf, gaussian_log_density, log_likelihood


def predictions(seed, length):
    rng = np.random.default_rng(seed)
    return rng.normal(size=length), rng.normal(size=length), rng.uniform(0.1, 3, length)


@settings(deadline=None)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(1, 30))
def test_log_likelihood_and_cdf_match_scipy(seed, length):
    y, mean, std = predictions(seed, length)
    log_density = scipy.stats.norm.logpdf(y, mean, std)
    np.testing.assert_allclose(
        gaussian_log_density(y, mean, std), log_density, rtol=1e-9, atol=1e-12
    )
    assert log_likelihood(y, mean, std) == pytest.approx(log_density.mean(), rel=1e-9, abs=1e-12)
    cdf = scipy.stats.norm.cdf(y, mean, std)
    np.testing.assert_allclose(gaussian_cdf(y, mean, std), cdf, rtol=1e-9)


def test_log_likelihood_by_hand():
    # ln N(0; 0, 1) = -0.918938..., and one std away it is lower by a half; std 2 costs ln 2.
    assert log_likelihood([0.0], [0.0], [1.0]) == pytest.approx(-0.9189385332046727)
    assert log_likelihood([0.0, 3.0], [0.0, 1.0], [1.0, 2.0]) == pytest.approx(
        -0.9189385332046727 - (0.5 + np.log(2)) / 2
    )


def test_log_likelihood_far_tails_stay_finite():
    assert log_likelihood([1e6], [0.0], [1.0]) == pytest.approx(-5e11)
    np.testing.assert_array_equal(gaussian_cdf([-1e6, 1e6], [0, 0], [1, 1]), [0.0, 1.0])


@pytest.mark.parametrize("function", [log_likelihood, gaussian_log_density, gaussian_cdf])
@pytest.mark.parametrize(
    "arguments, message",
    [
        ((np.zeros((3, 1)), np.zeros(3), np.ones(3)), r"shapes \(3, 1\), \(3,\) and \(3,\)"),
        (([0.0, 1.0], [0.0, 1.0], [1.0, 0.0]), r"`std` is 0.0 at index \(1,\)"),
        (([0.0, np.nan], [0.0, 1.0], [1.0, 1.0]), r"`y` is nan at index \(1,\)"),
        (([0.0], [np.inf], [1.0]), r"`mean` is inf at index \(0,\)"),
        (([], [], []), "`y` is empty"),
    ],
)
def test_log_likelihood_bad_predictions_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
