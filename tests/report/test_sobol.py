"""Indices of functions whose indices are known by hand."""

import numpy as np
import pytest

from metaprior.report._sobol import quasi_random, sobol_indices


def ishigami(u, a=7.0, b=0.1):
    x = np.pi * (2.0 * u - 1.0)
    return np.sin(x[:, 0]) + a * np.sin(x[:, 1]) ** 2 + b * x[:, 2] ** 4 * np.sin(x[:, 0])


def test_sobol_indices_of_the_ishigami_function():
    """Ishigami and Homma (1990): x3 matters only together with x1."""
    a, b = 7.0, 0.1
    first = 0.5 * (1.0 + b * np.pi**4 / 5.0) ** 2
    second = a**2 / 8.0
    both = b**2 * np.pi**8 * (1.0 / 18.0 - 1.0 / 50.0)
    variance = first + second + both
    found = sobol_indices(ishigami, 3)
    assert found is not None
    np.testing.assert_allclose(found.main * variance, [first, second, 0.0], atol=0.2)
    np.testing.assert_allclose(found.total * variance, [first + both, second, both], atol=0.2)
    assert found.pairs[0, 2] * variance == pytest.approx(both, abs=0.2)
    assert found.pairs[0, 1] * variance < 0.2 and found.pairs[1, 2] * variance < 0.2
    assert found.std == pytest.approx(np.sqrt(variance), rel=0.01)


def test_sobol_indices_of_a_product_worked_by_hand():
    """u v: the mean given u is u/2, of variance 1/48; of the product, 7/144. Thus 3/7, 3/7, 1/7."""
    found = sobol_indices(lambda u: u[:, 0] * u[:, 1], 3)
    assert found is not None
    np.testing.assert_allclose(found.main, [3 / 7, 3 / 7, 0.0], atol=5e-3)
    np.testing.assert_allclose(found.total, [4 / 7, 4 / 7, 0.0], atol=5e-3)
    expected = np.zeros((3, 3))
    expected[0, 1] = expected[1, 0] = 1 / 7
    np.testing.assert_allclose(found.pairs, expected, atol=5e-3)


def test_sobol_indices_of_a_sum_have_no_pairs_in_many_dimensions():
    weights = np.r_[4.0, 2.0, 1.0, np.zeros(17)]
    found = sobol_indices(lambda u: u @ weights, 20)
    assert found is not None
    np.testing.assert_allclose(found.main, weights**2 / 21.0, atol=0.05)
    assert found.pairs.max() < 0.01


@pytest.mark.parametrize("level", [0.0, 1e6])
def test_sobol_indices_of_a_constant_are_none(level):
    assert sobol_indices(lambda u: np.full(len(u), level), 2) is None


def test_sobol_indices_keep_to_their_budget():
    asked = []

    def function(u):
        asked.append(len(u))
        return u[:, 0]

    sobol_indices(function, 5, most_points=12_000)
    assert asked == [12_000]


def test_quasi_random_points_cover_every_interval_evenly():
    points = quasi_random(1024, 4)
    assert points.shape == (1024, 4) and np.all((points >= 0.0) & (points < 1.0))
    np.testing.assert_array_equal(points, quasi_random(1024, 4))
    for column in points.T:
        counts = np.histogram(column, bins=16, range=(0.0, 1.0))[0]
        assert abs(counts - 64).max() <= 4
