"""Scores worked out by hand: what is averaged over what, what is cut off, what mixes."""

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.learning._exam import Answers
from metaprior.learning._score import (
    CALIBRATION_WEIGHT,
    LOWEST_LOG_DENSITY,
    error_by_context,
    log_likelihood_by_context,
    log_likelihood_by_run,
    mixed,
    part,
    pooled_calibration,
    score_by_run,
)
from metaprior.metrics import calibration_error
from tests.learning.answers import answers_of


def score(answers: Answers, y_std: float) -> float:
    return float(np.mean(score_by_run(answers, y_std)))


def gaussian(value: np.ndarray, mean, std) -> Answers:
    """Answers of a model that predicts a Gaussian."""
    return answers_of(
        scipy.stats.norm.logpdf(value, mean, std),
        scipy.stats.norm.cdf(value, mean, std),
        mean - value,
    )


# One entry, two runs, two contexts, three points. The second run has two points, and a context
# of two leaves nothing of it.
LOG_DENSITY = np.array([[[[1.0, 2.0, 3.0], [9e9, 9e9, 5.0]], [[-1.0, 0.0, 9e9], [9e9, 9e9, 9e9]]]])
COUNTS = np.array([[[[1, 1, 1], [0, 0, 1]], [[1, 1, 0], [0, 0, 0]]]], bool)


def test_log_likelihood_averages_points_then_contexts_then_runs():
    answers = answers_of(LOG_DENSITY, counts=COUNTS)
    # First run: contexts 2 and 5, so 3.5; second: one context, -0.5.
    np.testing.assert_allclose(log_likelihood_by_run(answers, 1.0), [[3.5, -0.5]])
    np.testing.assert_allclose(log_likelihood_by_context(answers, 1.0), [(2.0 - 0.5) / 2, 5.0])
    # The error of all predictions together is one number, and counts in every run.
    expected = np.array([3.5, -0.5]) - CALIBRATION_WEIGHT * pooled_calibration(answers)
    np.testing.assert_allclose(score_by_run(answers, 1.0), expected)


def test_score_by_run_ignores_a_run_that_does_not_count():
    counts = COUNTS & np.array([True, False])[:, None, None]
    answers = answers_of(LOG_DENSITY, counts=counts)
    by_run = log_likelihood_by_run(answers, 1.0)
    assert by_run[0, 0] == 3.5 and np.isnan(by_run[0, 1])
    expected = 3.5 - CALIBRATION_WEIGHT * pooled_calibration(answers)
    assert score_by_run(answers, 1.0).tolist() == [expected]


def test_error_by_context_is_a_root_mean_square_in_units_of_the_spread():
    error = np.array([[[[3.0, 4.0, 0.0], [1e9, 1e9, 6.0]], [[1.0, 1.0, 1e9], [1e9, 1e9, 1e9]]]])
    answers = answers_of(LOG_DENSITY, error=error, counts=COUNTS)
    expected = [np.sqrt(((9 + 16) / 3 + 1.0) / 2) / 2.0, 6.0 / 2.0]
    np.testing.assert_allclose(error_by_context(answers, 2.0), expected)


def test_pooled_calibration_is_averaged_over_contexts():
    rng = np.random.default_rng(0)
    cdf = rng.uniform(size=(2, 3, 2, 4)) ** np.array([1.0, 3.0])[:, None]
    counts = rng.uniform(size=cdf.shape) < 0.7
    found = pooled_calibration(answers_of(cdf, cdf=cdf, counts=counts))
    by_context = []
    for i in range(2):
        values = cdf[:, :, i][counts[:, :, i]]
        levels = np.linspace(0, 1, 20)
        shares = np.array([(values <= q).mean() for q in levels])
        by_context.append(np.sqrt(((shares - levels) ** 2).mean()))
    np.testing.assert_allclose(found, np.mean(by_context))
    # Errors of opposite sign in two runs cancel where they are pooled, and only there.
    low, high = np.linspace(0, 0.5, 51), np.linspace(0.5, 1, 51)
    both = np.stack([low, high])[None, :, None, :]
    assert pooled_calibration(answers_of(both, cdf=both)) < 0.02 < calibration_error(low)


def test_pooled_calibration_leaves_out_a_context_without_answers():
    cdf = np.full((1, 1, 2, 3), 0.5)
    counts = np.zeros(cdf.shape, bool)
    counts[:, :, 0] = True
    both = pooled_calibration(answers_of(cdf, cdf=cdf))
    assert pooled_calibration(answers_of(cdf, cdf=cdf, counts=counts)) == pytest.approx(both)


def test_pooled_calibration_tolerates_rounding():
    cdf = np.array([[[[-1e-17, 0.5, 1.0 + 1e-16]]]])
    assert 0.0 < pooled_calibration(answers_of(cdf, cdf=cdf)) < 1.0


def test_score_by_run_limits_one_wild_point():
    wild, wilder = (answers_of([[[[0.0, low]]]]) for low in (-1e3, -1e12))
    assert score(wild, 1.0) == score(wilder, 1.0)
    assert log_likelihood_by_run(wild, 1.0)[0, 0] == LOWEST_LOG_DENSITY / 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_score_by_run_of_nan_is_minus_infinity(bad):
    assert score_by_run(answers_of([[[[0.0, bad]], [[0.0, 0.0]]]]), 1.0).tolist() == [-np.inf] * 2
    uncounted = answers_of([[[[0.0, bad]]]], counts=[[[[True, False]]]])
    assert np.isfinite(score(uncounted, 1.0))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**31 - 1), st.floats(1e-6, 1e6))
def test_score_by_run_does_not_depend_on_units(seed, unit):
    rng = np.random.default_rng(seed)
    value, mean, std = rng.normal(size=(3, 1, 2, 2, 3))
    std = np.exp(std)

    def in_units(unit: float) -> float:
        return score(gaussian(unit * value, unit * mean, unit * std), unit * 2.0)

    np.testing.assert_allclose(in_units(unit), in_units(1.0), rtol=1e-7, atol=1e-7)


def test_score_by_run_is_best_at_the_true_spread():
    """Of unit noise; a prior with a tenth of the spread against the true one."""
    value = np.random.default_rng(0).normal(size=(1, 5, 1, 40))
    sure, honest, vague = (gaussian(value, 0.0, std) for std in (0.1, 1.0, 10.0))
    assert score(honest, 1.0) > max(score(sure, 1.0), score(vague, 1.0)) + 1.0


def test_mixed_is_the_mean_of_densities_not_of_their_logarithms():
    rng = np.random.default_rng(0)
    value = rng.normal(size=(2, 3, 2, 4))
    members = [(0.0, 1.0), (1.0, 0.5), (-2.0, 3.0)]
    counts = rng.uniform(size=value.shape) < 0.5
    found = mixed([gaussian(value, *member)._replace(counts=counts) for member in members])
    density = np.mean([scipy.stats.norm.pdf(value, *member) for member in members], axis=0)
    below = np.mean([scipy.stats.norm.cdf(value, *member) for member in members], axis=0)
    np.testing.assert_allclose(found.log_density, np.log(density), rtol=1e-10)
    np.testing.assert_allclose(found.cdf, below)
    np.testing.assert_allclose(found.error, (0 + 1 - 2) / 3 - value)
    np.testing.assert_array_equal(found.counts, counts)
    # Far out, where no density is above zero, there is still a logarithm.
    far = [answers_of([[[[low]]]]) for low in (-2000.0, -3000.0)]
    np.testing.assert_allclose(mixed(far).log_density, -2000.0 - np.log(2))


def test_part_selects_entries():
    answers = answers_of(np.arange(24.0).reshape(4, 1, 2, 3))
    some = part(answers, np.array([2, 0]))
    assert all(array.shape[0] == 2 for array in some)
    np.testing.assert_array_equal(some.log_density, answers.log_density[[2, 0]])
    np.testing.assert_array_equal(part(answers, slice(1, 3)).cdf, answers.cdf[1:3])
