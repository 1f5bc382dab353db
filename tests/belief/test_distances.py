"""Squared distances by one product: those by differences, up to the rounding of the largest."""

import numpy as np
import pytest

from metaprior.belief._distances import is_repeated, squared_differences, squared_distances
from metaprior.belief._kernels import StackedMatern

G, N, K, E = 3, 5, 7, 4


@pytest.mark.parametrize("is_same", [False, True])
@pytest.mark.parametrize("width", [1, E])
def test_squared_distances_are_those_by_differences(width, is_same):
    rng = np.random.default_rng(0)
    a, lengthscale = rng.normal(size=(G, N, E)), rng.uniform(0.1, 2.0, (G, width))
    b = np.broadcast_to(rng.normal(size=(1, K, E)), (G, K, E))
    b = b if is_same else rng.normal(size=(G, K, E))
    assert is_repeated(b) == is_same
    found, expected = squared_distances(a, b, lengthscale), squared_differences(a, b, lengthscale)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-15 * 10 * np.max(expected))
    by_hand = np.sum(((a[1, 2] - b[1, 3]) / lengthscale[1]) ** 2)
    np.testing.assert_allclose(expected[1, 2, 3], by_hand)


@pytest.mark.parametrize("shape", [(0, K), (N, 0), (0, 0)])
def test_squared_distances_of_no_points_are_none(shape):
    a, b = np.ones((G, shape[0], E)), np.ones((G, shape[1], E))
    assert squared_distances(a, b, np.ones((G, 1))).shape == (G, *shape)


def test_squared_distances_far_from_the_origin_are_as_exact():
    rng = np.random.default_rng(1)
    a, b, one = rng.normal(size=(G, N, E)), rng.normal(size=(G, K, E)), np.ones((G, 1))
    found = squared_distances(a + 1e3, b + 1e3, one)
    np.testing.assert_allclose(found, squared_differences(a, b, one), atol=1e-11)
    assert np.min(squared_distances(a, a, one)) >= 0.0


def test_sharp_kernel_is_exact_for_points_close_to_each_other():
    a = np.random.default_rng(2).normal(size=(1, N, E))
    kernel = StackedMatern(np.full((1, 1), 0.1), np.ones(1), 0.5)
    near = kernel.values(a, a + 1e-9)[0]
    np.testing.assert_allclose(1.0 - np.diag(near), 1e-9 * np.sqrt(E) / 0.1, rtol=1e-6)
    np.testing.assert_array_equal(np.diag(kernel.values(a, a)[0]), 1.0)
