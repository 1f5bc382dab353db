"""Standardisation: sklearn's numbers, constants left alone, padding ignored."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from metaprior.data import blank_standardiser, fit_standardiser

MASK = np.array([[True, True, True, False], [True, False, False, False], [True] * 4])


def tasks(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(3, 4, 2)), 5 + 3 * rng.normal(size=(3, 4))


def test_standardised_values_match_sklearn():
    x, y = tasks()
    standardiser = fit_standardiser(x, y, MASK)
    scaled = StandardScaler().fit_transform(np.column_stack([x[MASK], y[MASK]]))
    np.testing.assert_allclose(standardiser.x(jnp.asarray(x))[MASK], scaled[:, :2], rtol=1e-12)
    np.testing.assert_allclose(standardiser.y(jnp.asarray(y))[MASK], scaled[:, 2], rtol=1e-12)


@pytest.mark.parametrize("shape", [(2,), (5, 2), (3, 4, 2), (0, 2)])
def test_standardiser_points_of_any_number_of_axes_are_scaled_alike(shape):
    standardiser = fit_standardiser(*tasks(), MASK)
    points = np.random.default_rng(1).uniform(size=shape)
    got = standardiser.x(jnp.asarray(points))
    expected = (points - np.asarray(standardiser.x_mean)) / np.asarray(standardiser.x_std)
    assert got.shape == shape
    np.testing.assert_allclose(got, expected, rtol=1e-13)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**31 - 1), size=st.floats(-1e12, 1e12))
def test_standardiser_padded_rows_never_matter(seed, size):
    x, y = tasks(seed)
    dirty_x, dirty_y = np.where(MASK[..., None], x, size), np.where(MASK, y, size)
    assert_same(fit_standardiser(dirty_x, dirty_y, MASK), fit_standardiser(x, y, MASK))


def assert_same(got, expected):
    for name in ("x_mean", "x_std", "y_mean", "y_std"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))


@settings(deadline=None, max_examples=100)
@given(constant=st.floats(-1e12, 1e12))
def test_standardiser_constants_are_shifted_but_not_scaled(constant):
    """Even where the mean of equal numbers differs from them in the last digit."""
    x, y = tasks()
    x[..., 1] = constant
    y[...] = constant
    standardiser = fit_standardiser(x, y, MASK)
    assert float(standardiser.x_std[1]) == 1.0 and float(standardiser.y_std) == 1.0
    assert float(standardiser.x_std[0]) == pytest.approx(x[..., 0][MASK].std())
    rounding = 1e-14 * abs(constant)
    np.testing.assert_allclose(standardiser.y(jnp.asarray(y)), 0.0, atol=rounding)
    np.testing.assert_allclose(standardiser.x(jnp.asarray(x))[..., 1], 0.0, atol=rounding)


@pytest.mark.parametrize("size", [1e-12, 1e-3, 1e12])
def test_standardiser_small_numbers_are_not_taken_for_constants(size):
    x, y = tasks()
    standardiser = fit_standardiser(x, size * y, MASK)
    np.testing.assert_allclose(standardiser.y_std, size * y[MASK].std(), rtol=1e-10)


def test_standardiser_outlier_does_not_break_the_scale():
    x, y = tasks()
    y[0, 0] = 1e30
    scaled = np.asarray(fit_standardiser(x, y, MASK).y(jnp.asarray(y)))[MASK]
    assert np.isfinite(scaled).all()
    np.testing.assert_allclose([scaled.mean(), scaled.std()], [0.0, 1.0], atol=1e-10)


def test_standardiser_single_observation_is_its_own_mean():
    x, y = tasks()
    mask = np.zeros_like(MASK)
    mask[1, 0] = True
    standardiser = fit_standardiser(x, y, mask)
    np.testing.assert_array_equal(standardiser.x_mean, x[1, 0])
    np.testing.assert_array_equal(standardiser.x_std, [1.0, 1.0])
    assert float(standardiser.y_mean) == y[1, 0] and float(standardiser.y_std) == 1.0


def test_blank_standardiser_changes_nothing():
    x, y = tasks()
    standardiser = blank_standardiser(2)
    np.testing.assert_array_equal(standardiser.x(jnp.asarray(x)), x)
    np.testing.assert_array_equal(standardiser.y(jnp.asarray(y)), y)
