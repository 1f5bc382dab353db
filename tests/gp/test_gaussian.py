"""Gaussians: densities, divergences and samples against scipy, closed forms and Monte Carlo."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metaprior.gp import Gaussian, kl_divergence, log_density, reference, sample
from metaprior.gp._gaussian import _centred_log_density

# scipy's stubs take a covariance for a whole number.
multivariate_normal: Any = scipy.stats.multivariate_normal

N = 6
JITTER = 1e-8

density = jax.jit(log_density)
divergence = jax.jit(lambda q, p, jitter: kl_divergence(q, reference(p, jitter)))


def smooth_gaussian(d: int, seed: int) -> Gaussian:
    """A noisy GP marginal whose covariance comes from sklearn."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(N, d))
    covariance = (ConstantKernel(1.7) * RBF(0.6))(x) + 0.05 * np.eye(N)
    return Gaussian(jnp.asarray(np.sin(3 * x).sum(axis=1)), jnp.asarray(covariance))


def random_gaussian(seed: int, n: int = N) -> Gaussian:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return Gaussian(jnp.asarray(rng.normal(size=n)), jnp.asarray(root @ root.T + np.eye(n)))


def closed_form_kl(q: Gaussian, p: Gaussian, jitter_q: float, jitter_p: float) -> float:
    """The textbook formula with explicit inverses and determinants."""
    n = len(q.mean)
    k_q = np.asarray(q.covariance) + jitter_q * np.eye(n)
    k_p = np.asarray(p.covariance) + jitter_p * np.eye(n)
    shift = np.asarray(q.mean) - np.asarray(p.mean)
    precision = np.linalg.inv(k_p)
    log_ratio = np.linalg.slogdet(k_p)[1] - np.linalg.slogdet(k_q)[1]
    return 0.5 * (np.trace(precision @ k_q) + shift @ precision @ shift - n + log_ratio)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("mask", [[1] * 6, [1, 1, 1, 0, 0, 0], [0, 1, 0, 0, 1, 1], [0, 0, 1] * 2])
def test_log_density_matches_scipy(d, mask):
    gaussian, y = smooth_gaussian(d, seed=d), np.random.default_rng(9).normal(size=N)
    mask = np.array(mask, bool)
    kept = np.asarray(gaussian.covariance)[np.ix_(mask, mask)] + JITTER * np.eye(mask.sum())
    expected = multivariate_normal(np.asarray(gaussian.mean)[mask], kept)
    got = density(jnp.asarray(y), gaussian, jnp.asarray(mask))
    # An unselected entry leaves half the logarithm of 1 + jitter behind.
    np.testing.assert_allclose(got, expected.logpdf(y[mask]), rtol=1e-9, atol=1e-7)


def test_gaussian_without_a_mask_all_entries_count():
    gaussian, y = smooth_gaussian(2, seed=1), np.random.default_rng(2).normal(size=N)
    covariance = np.asarray(gaussian.covariance) + JITTER * np.eye(N)
    expected = multivariate_normal(np.asarray(gaussian.mean), covariance).logpdf(y)
    np.testing.assert_allclose(density(jnp.asarray(y), gaussian), expected, rtol=1e-10)


def test_log_density_of_nothing_is_zero():
    got = density(jnp.ones(N), smooth_gaussian(1, seed=0), jnp.zeros(N, bool))
    np.testing.assert_allclose(got, 0.0, atol=1e-7)


def test_log_density_gradients_match_finite_differences():
    rng = np.random.default_rng(3)
    residual, root = jnp.asarray(rng.normal(size=N)), jnp.asarray(rng.normal(size=(N, N)))

    # Through a square root, so that perturbed covariances stay symmetric.
    def value(residual, root):
        return _centred_log_density(residual, root @ root.T + jnp.eye(N))

    check_grads(jax.jit(value), (residual, root), order=1, modes=["rev"], rtol=1e-6, atol=1e-6)


def test_log_density_gradients_under_a_mask_match_finite_differences():
    rng = np.random.default_rng(4)
    y, mask = jnp.asarray(rng.normal(size=N)), jnp.asarray([True, False, True, True, False, True])

    def value(mean, root):
        return log_density(y, Gaussian(mean, root @ root.T + jnp.eye(N)), mask)

    arguments = (jnp.asarray(rng.normal(size=N)), jnp.asarray(rng.normal(size=(N, N))))
    check_grads(jax.jit(value), arguments, order=1, modes=["rev"], rtol=1e-6, atol=1e-6)
    by_mean = jax.jit(jax.grad(value))(*arguments)
    assert np.asarray(by_mean != 0).tolist() == mask.tolist()


def test_log_density_is_the_same_under_differentiation():
    """The hand-written forward pass is a second implementation: it must give the same number."""
    gaussian = random_gaussian(5)
    p = reference(random_gaussian(6))
    for function in (lambda g: _centred_log_density(*g), lambda g: kl_divergence(g, p)):
        value, _ = jax.jit(jax.value_and_grad(function))(gaussian)
        np.testing.assert_allclose(value, jax.jit(function)(gaussian), rtol=1e-13)


@pytest.mark.parametrize("jitter", [1e-8, 1e-4, 0.5])
def test_kl_divergence_matches_the_closed_form_with_the_jitter_on_both_sides(jitter):
    q, p = smooth_gaussian(2, seed=1), random_gaussian(2)
    got = float(divergence(q, p, jitter))
    np.testing.assert_allclose(got, closed_form_kl(q, p, jitter, jitter), rtol=1e-9)
    if jitter == 0.5:  # The control: one-sided jitter would be noticed.
        assert abs(got - closed_form_kl(q, p, 0.0, jitter)) > 0.01
        assert abs(got - closed_form_kl(q, p, jitter, 0.0)) > 0.01


def test_kl_divergence_matches_monte_carlo():
    q, p = random_gaussian(7), random_gaussian(8)

    def frozen(g: Gaussian):
        return multivariate_normal(np.asarray(g.mean), np.asarray(g.covariance))

    f = frozen(q).rvs(200_000, random_state=0)
    log_ratio = frozen(q).logpdf(f) - frozen(p).logpdf(f)
    standard_error = log_ratio.std() / np.sqrt(len(f))
    assert abs(float(divergence(q, p, JITTER)) - log_ratio.mean()) < 4 * standard_error
    # The control: the divergence the other way round is far outside.
    assert abs(float(divergence(p, q, JITTER)) - log_ratio.mean()) > 40 * standard_error


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**31 - 1), log_jitter=st.floats(-16, 3))
def test_kl_divergence_of_a_process_from_itself_is_zero(seed, log_jitter):
    """Whatever the jitter, and although the matrix is singular without it."""
    x = np.random.default_rng(seed).uniform(size=(N, 1))
    smooth = Gaussian(jnp.asarray(np.cos(x[:, 0])), jnp.asarray(RBF(2.0)(x)))
    got = divergence(smooth, smooth, jnp.exp(log_jitter))
    np.testing.assert_allclose(got, 0.0, atol=1e-6)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**31 - 2), log_jitter=st.floats(-16, 3))
def test_kl_divergence_is_positive_between_different_gaussians(seed, log_jitter):
    got = divergence(random_gaussian(seed), random_gaussian(seed + 1), jnp.exp(log_jitter))
    assert got > 1e-6


def test_kl_divergence_gradients_match_finite_differences():
    rng = np.random.default_rng(10)
    p = reference(random_gaussian(11), 0.01)

    def value(mean, root):
        return kl_divergence(Gaussian(mean, root @ root.T + jnp.eye(N)), p)

    arguments = (jnp.asarray(rng.normal(size=N)), jnp.asarray(rng.normal(size=(N, N))))
    check_grads(jax.jit(value), arguments, order=1, modes=["rev"], rtol=1e-6, atol=1e-6)


def test_kl_divergence_gives_no_gradient_to_the_reference():
    q = random_gaussian(12)
    by_mean = jax.grad(lambda mean: kl_divergence(q, reference(Gaussian(mean, jnp.eye(N)))))
    assert not np.asarray(by_mean(jnp.ones(N))).any()


def assert_moments(samples: np.ndarray, gaussian: Gaussian) -> None:
    """Means and covariances within 5 standard errors, which a true sampler misses at one of the 27
    numbers about once in 60 000 runs."""
    num = len(samples)
    mean, covariance = np.asarray(gaussian.mean), np.asarray(gaussian.covariance)
    variance = np.diag(covariance)
    assert np.all(np.abs(samples.mean(axis=0) - mean) < 5 * np.sqrt(variance / num))
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / num)
    assert np.all(np.abs(np.cov(samples.T) - covariance) < 5 * error)


def test_gaussian_samples_have_the_right_moments():
    gaussian = random_gaussian(13)
    samples = np.asarray(sample(gaussian, 50_000, key=jax.random.key(0)))
    assert samples.shape == (50_000, N)
    assert_moments(samples, gaussian)


def test_gaussian_sample_test_can_fail():
    """The controls: the factor transposed, correlations dropped, a std taken for a variance."""
    gaussian = random_gaussian(13)
    noise = np.random.default_rng(0).normal(size=(50_000, N))
    mean, covariance = np.asarray(gaussian.mean), np.asarray(gaussian.covariance)
    factor = np.linalg.cholesky(covariance)
    assert_moments(mean + noise @ factor.T, gaussian)
    for wrong in (factor, np.diag(np.sqrt(np.diag(covariance))), covariance):
        with pytest.raises(AssertionError):
            assert_moments(mean + noise @ wrong, gaussian)
