"""Processes: noise, marginal likelihood and its gradient against scipy and sklearn."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metaprior.gp import (
    ConstantMean,
    FeatureKernel,
    GaussianProcess,
    NeuralMean,
    SquaredExponential,
)

# scipy's stubs take a covariance for a whole number.
multivariate_normal: Any = scipy.stats.multivariate_normal

CAPACITY = 8
JITTER = 1e-8
MEAN, VARIANCE, LENGTHSCALE, NOISE_VARIANCE = 0.4, 1.7, 0.6, 0.09

likelihood = eqx.filter_jit(GaussianProcess.log_marginal_likelihood)


def simple_process() -> GaussianProcess:
    kernel = SquaredExponential(jnp.log(LENGTHSCALE), jnp.log(VARIANCE))
    return GaussianProcess(ConstantMean(jnp.asarray(MEAN)), kernel, jnp.log(NOISE_VARIANCE))


def neural_process(d: int) -> GaussianProcess:
    key_mean, key_features = jax.random.split(jax.random.key(0))
    mean = NeuralMean(eqx.nn.MLP(d, 1, 4, 1, jnp.tanh, key=key_mean))
    features = eqx.nn.MLP(d, 2, 4, 1, jnp.tanh, key=key_features)
    kernel = FeatureKernel(SquaredExponential(jnp.log(0.5), jnp.log(1.3)), features)
    return GaussianProcess(mean, kernel, jnp.log(0.05))


def padded_run(d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(CAPACITY, d)), rng.normal(size=CAPACITY)


def test_gaussian_process_observations_add_a_variance_not_a_standard_deviation():
    process = simple_process()
    x, _ = padded_run(2)
    marginal = process.marginal(jnp.asarray(x))
    observed = process.observe(marginal)
    np.testing.assert_allclose(process.noise_variance, 0.09, rtol=1e-12)
    oracle = (ConstantKernel(VARIANCE) * RBF(LENGTHSCALE))(x)
    np.testing.assert_allclose(marginal.covariance, oracle, rtol=1e-10)
    np.testing.assert_allclose(observed.covariance, oracle + 0.09 * np.eye(CAPACITY), rtol=1e-10)
    np.testing.assert_array_equal(observed.mean, np.full(CAPACITY, MEAN))


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 2, 5, CAPACITY])
def test_gaussian_process_log_marginal_likelihood_matches_scipy_and_sklearn(d, length):
    x, y = padded_run(d, seed=d)
    mask = jnp.arange(CAPACITY) < length
    got = likelihood(simple_process(), jnp.asarray(x), jnp.asarray(y), mask)
    seen_x, seen_y = x[:length], y[:length]
    kernel = ConstantKernel(VARIANCE) * RBF(LENGTHSCALE)
    covariance = kernel(seen_x) + (NOISE_VARIANCE + JITTER) * np.eye(length)
    density = multivariate_normal(np.full(length, MEAN), covariance)
    # A padded row leaves half the logarithm of 1 + jitter behind.
    np.testing.assert_allclose(got, density.logpdf(seen_y), rtol=1e-9, atol=1e-7)
    settings: Any = {"alpha": NOISE_VARIANCE + JITTER, "optimizer": None}
    regressor = GaussianProcessRegressor(kernel, **settings)
    regressor.fit(seen_x, seen_y - MEAN)
    expected = regressor.log_marginal_likelihood(kernel.theta)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-7)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(0, CAPACITY))
def test_gaussian_process_padded_rows_never_matter(seed, length):
    rng = np.random.default_rng(seed)
    (x, y), mask = padded_run(2, seed), np.arange(CAPACITY) < length
    junk = 1e3 * rng.normal(size=(CAPACITY, 3))
    dirty_x, dirty_y = np.where(mask[:, None], x, junk[:, :2]), np.where(mask, y, junk[:, 2])
    process = PROCESS
    clean = likelihood(process, jnp.asarray(x), jnp.asarray(y), jnp.asarray(mask))
    dirty = likelihood(process, jnp.asarray(dirty_x), jnp.asarray(dirty_y), jnp.asarray(mask))
    np.testing.assert_allclose(dirty, clean, rtol=1e-12, atol=1e-12)


PROCESS = neural_process(2)


def test_gaussian_process_gradient_by_every_parameter_matches_finite_differences():
    x, y = padded_run(2, seed=3)
    mask = jnp.arange(CAPACITY) < 5
    params, static = eqx.partition(PROCESS, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(params)

    def value(flat):
        process = eqx.combine(unravel(flat), static)
        return process.log_marginal_likelihood(jnp.asarray(x), jnp.asarray(y), mask)

    step = 1e-5
    steps = step * np.eye(len(flat))
    values = jax.jit(jax.vmap(value))
    base = np.asarray(flat)[None, :]
    expected = (values(jnp.asarray(base + steps)) - values(jnp.asarray(base - steps))) / (2 * step)
    got = jax.jit(jax.grad(value))(flat)
    assert np.abs(np.asarray(expected)).max() > 0.1
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)
