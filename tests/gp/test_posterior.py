"""Posteriors against sklearn, and paths drawn from them against their own statistics."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metaprior.gp import GaussianProcess, SquaredExponential, condition
from metaprior.gp._means import AbstractMean

CAPACITY, NUM_NEW = 10, 5
JITTER = 1e-8
VARIANCE, LENGTHSCALE, NOISE_VARIANCE = 1.7, 0.4, 0.04


class SineMean(AbstractMean):
    """A mean that NumPy can repeat."""

    def __call__(self, x):
        return 2.0 + jnp.sin(x[0])


def numpy_mean(x: np.ndarray) -> np.ndarray:
    return 2.0 + np.sin(x[:, 0])


def process(noise_variance: float = NOISE_VARIANCE) -> GaussianProcess:
    kernel = SquaredExponential(jnp.log(LENGTHSCALE), jnp.log(VARIANCE))
    return GaussianProcess(SineMean(), kernel, jnp.log(noise_variance))


def padded_run(d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(CAPACITY, d)), 2 + rng.normal(size=CAPACITY)


def oracle(x: np.ndarray, y: np.ndarray, x_new: np.ndarray, noise_variance: float):
    """sklearn's mean and joint covariance of the function, and the evidence of the data."""
    kernel = ConstantKernel(VARIANCE) * RBF(LENGTHSCALE)
    settings: Any = {"alpha": noise_variance + JITTER, "optimizer": None}
    regressor: Any = GaussianProcessRegressor(kernel, **settings)
    evidence = 0.0
    if len(y):  # Unfitted, it gives the prior.
        regressor.fit(x, y - numpy_mean(x))
        evidence = regressor.log_marginal_likelihood(kernel.theta)
    mean, covariance = regressor.predict(x_new, return_cov=True)
    return mean + numpy_mean(x_new), covariance, evidence


@eqx.filter_jit
def predict(process, x, y, mask, x_new):
    """The posterior at each point by itself, at all of them together, and the evidence."""
    posterior = condition(process, x, y, mask)
    return jax.vmap(posterior)(x_new), posterior.joint(x_new), posterior.log_evidence


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, 6, CAPACITY])
@pytest.mark.parametrize("noise_variance", [NOISE_VARIANCE, 1e-6])
def test_condition_matches_sklearn(d, length, noise_variance):
    x, y = padded_run(d, seed=d)
    x_new = np.random.default_rng(7).uniform(-0.5, 1.5, size=(NUM_NEW, d))
    mask = jnp.arange(CAPACITY) < length
    prior = process(noise_variance)
    (mean, variance), joint, evidence = predict(
        prior, jnp.asarray(x), jnp.asarray(y), mask, jnp.asarray(x_new)
    )
    expected_mean, expected_covariance, expected_evidence = oracle(
        x[:length], y[:length], x_new, noise_variance
    )
    # Two factorisations of one matrix differ by rounding times its condition number.
    tolerance = 1e-9 if noise_variance == NOISE_VARIANCE else 1e-6
    np.testing.assert_allclose(mean, expected_mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(variance, np.diag(expected_covariance), rtol=1e-6, atol=tolerance)
    np.testing.assert_allclose(joint.mean, expected_mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(joint.covariance, expected_covariance, rtol=1e-6, atol=tolerance)
    np.testing.assert_allclose(evidence, expected_evidence, rtol=1e-6, atol=1e-7)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(0, CAPACITY))
def test_condition_padded_rows_never_matter(seed, length):
    rng = np.random.default_rng(seed)
    (x, y), mask = padded_run(2, seed), np.arange(CAPACITY) < length
    junk = 1e3 * rng.normal(size=(CAPACITY, 3))
    # Some junk coincides with a test point, where it would do most harm.
    x_new = rng.uniform(size=(NUM_NEW, 2))
    junk[-1, :2] = x_new[0]
    dirty_x, dirty_y = np.where(mask[:, None], x, junk[:, :2]), np.where(mask, y, junk[:, 2])
    clean = predict(process(), jnp.asarray(x), jnp.asarray(y), jnp.asarray(mask), x_new)
    dirty = predict(process(), jnp.asarray(dirty_x), jnp.asarray(dirty_y), jnp.asarray(mask), x_new)
    for a, b in zip(jax.tree.leaves(dirty), jax.tree.leaves(clean), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_condition_variances_stay_positive_at_the_data():
    """Repeated points, no noise, predictions at the data."""
    x = np.repeat(np.linspace(0, 1, 2)[:, None], CAPACITY // 2, axis=0)
    y = numpy_mean(x) + 0.5
    mask = jnp.ones(CAPACITY, bool)
    x_new = x[[0, 1, 2, -2, -1]]
    (mean, variance), _, _ = predict(
        process(1e-300), jnp.asarray(x), jnp.asarray(y), mask, jnp.asarray(x_new)
    )
    np.testing.assert_allclose(mean, numpy_mean(x_new) + 0.5, atol=1e-6)
    assert np.all(np.asarray(variance) > 0) and np.all(np.asarray(variance) < 1e-6)


@eqx.filter_jit
def draw_paths(process, x, y, mask, anchors, x_new, keys):
    """Values at `x_new` of one path a key."""
    posterior = condition(process, x, y, mask)
    return jax.vmap(lambda key: jax.vmap(posterior.path(anchors, key=key))(x_new))(keys)


ANCHORS = np.linspace(0, 1, 24)[:, None]
NUM_PATHS = 4000


def paths(length: int, x_new: np.ndarray, *, seed: int = 0, noise_variance=NOISE_VARIANCE):
    x, y = padded_run(1, seed=4)
    mask = jnp.arange(CAPACITY) < length
    keys = jax.random.split(jax.random.key(seed), NUM_PATHS)
    run = (jnp.asarray(x), jnp.asarray(y), mask)
    places = (jnp.asarray(ANCHORS), jnp.asarray(x_new))
    return np.asarray(draw_paths(process(noise_variance), *run, *places, keys))


def assert_moments(samples: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> None:
    """Means and covariances within 5 standard errors, plus what the anchors' jitter may cost."""
    num, variance = len(samples), np.diag(covariance)
    slack = 1e-4
    error = np.abs(samples.mean(axis=0) - mean)
    assert np.all(error < 5 * np.sqrt(variance / num) + slack)
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / num)
    assert np.all(np.abs(np.cov(samples.T) - covariance) < 5 * spread + slack)


@pytest.mark.parametrize("length", [0, 1, 6])
def test_condition_paths_have_the_statistics_of_the_posterior(length):
    """At anchors, between them, and jointly; other lengths are the control."""
    x_new = np.array([[0.0], [ANCHORS[7, 0]], [0.33], [0.87], [0.99]])
    x, y = padded_run(1, seed=4)
    samples = paths(length, x_new)
    mean, covariance, _ = oracle(x[:length], y[:length], x_new, NOISE_VARIANCE)
    assert_moments(samples, mean, covariance)
    mean, covariance, _ = oracle(x[: length + 1], y[: length + 1], x_new, NOISE_VARIANCE)
    with pytest.raises(AssertionError):
        assert_moments(samples, mean, covariance)


def test_condition_paths_pass_through_data_without_noise():
    x, y = padded_run(1, seed=4)
    length = 5
    values = paths(length, x[:length], noise_variance=1e-10)
    expected = np.broadcast_to(y[:length], values.shape)
    np.testing.assert_allclose(values, expected, atol=1e-3)
    elsewhere = paths(length, np.array([[0.05], [0.2], [0.4], [0.7], [0.95]]), noise_variance=1e-10)
    assert elsewhere.std(axis=0).max() > 0.01


def test_condition_path_is_a_function_of_its_key():
    x_new = np.linspace(0, 1, NUM_NEW)[:, None]
    first, again, other = (paths(6, x_new, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).min(axis=1).max() > 0.01
