"""Refinement: what a run may change, and that it is the best of the grid."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metaprior.gp import ConstantMean, GaussianProcess, Spread, SquaredExponential, refine
from metaprior.gp._refine import NOISE_STEPS, SCALE_STEPS

CAPACITY = 16
JITTER = 1e-8
MEAN, LENGTHSCALE, VARIANCE, NOISE_VARIANCE = 0.3, 0.3, 1.2, 0.01
X = np.linspace(0, 1, CAPACITY)[:, None]
PROCESS = GaussianProcess(
    ConstantMean(jnp.asarray(MEAN)),
    SquaredExponential(jnp.log(LENGTHSCALE), jnp.log(VARIANCE)),
    jnp.log(NOISE_VARIANCE),
)


@eqx.filter_jit
def refined(x, y, mask, spread) -> tuple:
    """Noise variance and kernel variance of the refined process."""
    process = refine(PROCESS, x, y, mask, spread)
    return process.noise_variance, process.kernel(x[0], x[0]), process.mean(x[0])


def refine_on(y: np.ndarray, length: int, noise: float, scale: float, x: np.ndarray = X):
    mask = jnp.arange(CAPACITY) < length
    spread = Spread(jnp.asarray(noise), jnp.asarray(scale))
    noise_variance, variance, mean = refined(jnp.asarray(x), jnp.asarray(y), mask, spread)
    assert mean == MEAN
    return float(noise_variance), float(variance)


def draw(seed: int, noise_variance: float = NOISE_VARIANCE, scale: float = 1.0) -> np.ndarray:
    """A function of the process itself, by NumPy, times the square root of a scale."""
    rng = np.random.default_rng(seed)
    covariance = (ConstantKernel(scale * VARIANCE) * RBF(LENGTHSCALE))(X) + noise_variance * np.eye(
        CAPACITY
    )
    return MEAN + np.linalg.cholesky(covariance + 1e-12 * np.eye(CAPACITY)) @ rng.normal(
        size=CAPACITY
    )


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(0, CAPACITY), size=st.floats(0, 100))
def test_refine_no_spread_keeps_everything(seed, length, size):
    y = size * np.random.default_rng(seed).normal(size=CAPACITY)
    noise_variance, variance = refine_on(y, length, 0.0, 0.0)
    np.testing.assert_allclose(noise_variance, NOISE_VARIANCE, rtol=1e-12)
    np.testing.assert_allclose(variance, VARIANCE, rtol=1e-12)


def test_refine_empty_run_changes_nothing():
    noise_variance, variance = refine_on(np.full(CAPACITY, 1e6), 0, 3.0, 1.0)
    np.testing.assert_allclose([noise_variance, variance], [NOISE_VARIANCE, VARIANCE], rtol=1e-12)


def test_refine_each_spread_opens_its_own_quantity_only():
    y = MEAN + 30 * (draw(0, noise_variance=0.0) - MEAN)
    noise_variance, variance = refine_on(y, CAPACITY, 0.0, 2.0)
    assert noise_variance == pytest.approx(NOISE_VARIANCE) and variance > 2 * VARIANCE
    noise_variance, variance = refine_on(draw(0, noise_variance=0.0), CAPACITY, 3.0, 0.0)
    assert noise_variance < 0.1 * NOISE_VARIANCE and variance == pytest.approx(VARIANCE)


@pytest.mark.parametrize("seed", range(5))
def test_refine_data_without_noise_lower_the_noise(seed):
    noise_variance, _ = refine_on(draw(seed, noise_variance=0.0), CAPACITY, 3.0, 1.0)
    assert noise_variance < 1e-2 * NOISE_VARIANCE


@pytest.mark.parametrize("seed", range(5))
def test_refine_data_with_more_noise_raise_the_noise(seed):
    noise_variance, _ = refine_on(draw(seed, noise_variance=0.3), CAPACITY, 3.0, 1.0)
    assert 2 * NOISE_VARIANCE < noise_variance < 0.3 * 10


@pytest.mark.parametrize("seed", range(5))
def test_refine_task_ten_times_as_large_raises_the_scale(seed):
    y = MEAN + 10 * (draw(seed) - MEAN)
    _, variance = refine_on(y, CAPACITY, 3.0, 1.0)
    assert variance > 4 * VARIANCE
    _, usual = refine_on(draw(seed), CAPACITY, 3.0, 1.0)
    assert usual < 3 * VARIANCE < variance


def test_refine_short_run_changes_less_than_a_long_one():
    """With a tight prior, two noise-free points prove little and sixteen prove something."""
    y = draw(1, noise_variance=0.0)
    kept, _ = refine_on(y, 2, 0.5, 0.3)
    lowered, _ = refine_on(y, CAPACITY, 0.5, 0.3)
    assert kept == pytest.approx(NOISE_VARIANCE)
    assert lowered < 0.5 * NOISE_VARIANCE


@pytest.mark.parametrize("length", [1, 4, 11, CAPACITY])
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_refine_choice_is_the_best_of_the_grid(length, size):
    """Evidence by a direct solve, kernel by sklearn, and the Gaussian prior on the logarithms."""
    y = MEAN + size * (draw(length, noise_variance=1e-4) - MEAN)
    noise_spread, scale_spread = 2.0, 0.8
    x = X[:length]

    def log_posterior(noise_variance: float, variance: float) -> float:
        covariance = (ConstantKernel(variance) * RBF(LENGTHSCALE))(x)
        covariance = covariance + (noise_variance + JITTER) * np.eye(length)
        residual = y[:length] - MEAN
        quadratic = residual @ np.linalg.solve(covariance, residual)
        determinant = np.linalg.slogdet(2 * np.pi * covariance)[1]
        return (
            -0.5 * (quadratic + determinant)
            + scipy.stats.norm.logpdf(np.log(noise_variance / NOISE_VARIANCE), 0, noise_spread)
            + scipy.stats.norm.logpdf(np.log(variance / VARIANCE), 0, scale_spread)
        )

    grid = [
        log_posterior(NOISE_VARIANCE * np.exp(noise_step), VARIANCE * np.exp(scale_step))
        for noise_step in NOISE_STEPS
        for scale_step in SCALE_STEPS
    ]
    chosen = log_posterior(*refine_on(y, length, noise_spread, scale_spread))
    np.testing.assert_allclose(chosen, max(grid), rtol=1e-6, atol=1e-6)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(0, CAPACITY))
def test_refine_padded_rows_never_matter(seed, length):
    rng = np.random.default_rng(seed)
    mask = np.arange(CAPACITY) < length
    y, junk = draw(seed), 1e3 * rng.normal(size=(CAPACITY, 2))
    dirty_x, dirty_y = np.where(mask[:, None], X, junk[:, :1]), np.where(mask, y, junk[:, 1])
    assert refine_on(dirty_y, length, 3.0, 1.0, dirty_x) == refine_on(y, length, 3.0, 1.0)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**31 - 1),
    length=st.integers(1, CAPACITY),
    size=st.sampled_from([0.1, 1.0, 30.0]),
    noise_spread=st.floats(0.3, 4.0),
    scale_spread=st.floats(0.3, 2.0),
)
def test_refine_steps_are_those_of_a_search_by_scipy(
    seed, length, size, noise_spread, scale_spread
):
    """At random points, with junk behind the end of the run."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(size=(CAPACITY, 1)), MEAN + size * rng.normal(size=CAPACITY)
    noise_variance, variance = refine_on(y, length, noise_spread, scale_spread, x)
    kernel = RBF(LENGTHSCALE)(x[:length])

    def log_posterior(noise_step: float, scale_step: float) -> float:
        covariance = VARIANCE * np.exp(scale_step) * kernel
        covariance += (NOISE_VARIANCE * np.exp(noise_step) + JITTER) * np.eye(length)
        likelihood = scipy.stats.multivariate_normal(
            np.full(length, MEAN), covariance, allow_singular=True
        )
        prior = scipy.stats.norm.logpdf([noise_step, scale_step], 0, [noise_spread, scale_spread])
        return likelihood.logpdf(y[:length]) + prior.sum()

    found = np.log(noise_variance / NOISE_VARIANCE), np.log(variance / VARIANCE)
    others = [log_posterior(noise, scale) for noise in NOISE_STEPS for scale in SCALE_STEPS]
    assert min(abs(NOISE_STEPS - found[0])) < 1e-9 and min(abs(SCALE_STEPS - found[1])) < 1e-9
    np.testing.assert_allclose(log_posterior(*found), max(others), rtol=1e-6, atol=1e-6)
