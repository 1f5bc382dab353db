"""Estimated scores against exact ones, and the estimators against their definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from metaprior.gp import Gaussian
from metaprior.processes import (
    MomentMatching,
    SlicedScoreMatching,
    SpectralStein,
    sliced_score_matching_loss,
)
from metaprior.processes._spectral import _coefficient_noise, squared_distances
from metaprior.processes._whitening import population_moments, sample_moments, whitening

KEY = jax.random.key(0)
ESTIMATORS = {"spectral": SpectralStein(), "sliced": SlicedScoreMatching()}
SLICED_IS_SLOW = ["spectral", pytest.param("sliced", marks=pytest.mark.slow)]
# Bandwidths a hundred times too small and too large.
BLIND = [SpectralStein(bandwidth_factor=0.01), SpectralStein(bandwidth_factor=100.0)]


@jax.jit
def fit_and_evaluate(estimator, samples, at, moments=None):
    return estimator.fit(samples, key=KEY, moments=moments)(at)


class CorrelatedGaussian:
    """Three values whose standard deviations span a factor of thirty."""

    covariance = np.diag([1.0, 0.2, 0.03]) @ np.array(
        [[1.0, 0.9, 0.3], [0.9, 1.0, 0.5], [0.3, 0.5, 1.0]]
    )
    covariance = covariance @ np.diag([1.0, 0.2, 0.03])
    mean = np.array([0.5, -1.0, 2.0])

    def sample(self, num, seed):
        return np.random.default_rng(seed).multivariate_normal(self.mean, self.covariance, num)

    def score(self, values):
        return -np.linalg.solve(self.covariance, (values - self.mean).T).T


class Bimodal:
    """Two standard normals, four standard deviations apart along the first axis."""

    def __init__(self, n):
        self.shift = np.eye(n)[0] * 2.0

    def sample(self, num, seed):
        rng = np.random.default_rng(seed)
        signs = rng.choice([-1.0, 1.0], size=(num, 1))
        return signs * self.shift + rng.normal(size=(num, len(self.shift)))

    def score(self, values):
        # The weights of the two normals at h are 1 / (1 + exp(-+2 shift h)).
        return -values + np.tanh(values @ self.shift)[:, None] * self.shift


def relative_error(estimator, distribution, num, seeds=2) -> float:
    """Root of the mean squared error at unseen samples, in units of the score itself."""
    errors = []
    for seed in range(seeds):
        samples, unseen = distribution.sample(num, seed), distribution.sample(200, seed + 100)
        got = fit_and_evaluate(estimator, jnp.asarray(samples), jnp.asarray(unseen))
        exact = distribution.score(unseen)
        errors.append(np.sum((np.asarray(got) - exact) ** 2) / np.sum(exact**2))
    return float(np.sqrt(np.mean(errors)))


@pytest.mark.parametrize("name", SLICED_IS_SLOW)
def test_score_estimators_find_the_score_of_a_correlated_gaussian(name):
    few, many = (relative_error(ESTIMATORS[name], CorrelatedGaussian(), num) for num in (50, 800))
    # Mean and covariance of 800 samples of three values alone make the score wrong by
    # sqrt((3 + 2) / 800) = 0.08.
    assert many < 0.12
    assert many < 0.5 * few


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_score_estimators_find_the_score_of_a_mixture(name):
    few, many = (relative_error(ESTIMATORS[name], Bimodal(1), num) for num in (60, 800))
    # The slope is steepest between the modes, where there are hardly any samples; a Gaussian of
    # the same moments is off by 0.87, whatever the number of samples.
    assert many < 0.35
    assert many < few


@pytest.mark.parametrize("estimator", [MomentMatching(), *BLIND], ids=["none", "0.01", "100"])
def test_spectral_score_of_a_mixture_is_missed_without_a_fitting_bandwidth(estimator):
    assert relative_error(estimator, Bimodal(1), 800) > 0.7


@pytest.mark.parametrize("name", SLICED_IS_SLOW)
def test_score_estimators_see_two_modes_among_more_values(name):
    # A Gaussian of the same moments is off by 0.56.
    assert relative_error(ESTIMATORS[name], Bimodal(2), 800) < 0.35


def exact_expansion(samples, at, share) -> np.ndarray:
    """The definition, one eigenfunction and one sample at a time, for whitened samples."""
    num = len(samples)
    bandwidth = 0.5 * np.median(cdist(samples, samples).mean(axis=1))

    def kernel(a, b):
        return np.exp(-np.sum((a - b) ** 2) / (2 * bandwidth**2))

    gram = np.array([[kernel(a, b) for b in samples] for a in samples])
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    result, total = -at.copy(), 0.0
    for value, vector in zip(eigenvalues[::-1], eigenvectors.T[::-1], strict=True):
        if total >= share * eigenvalues.sum():
            break
        total += value

        def psi(z, value=value, vector=vector):
            return np.sqrt(num) / value * (vector @ [kernel(z, s) for s in samples])

        def gradient(z, value=value, vector=vector):
            terms = [u * kernel(z, s) * (s - z) for u, s in zip(vector, samples, strict=True)]
            return np.sqrt(num) / value * np.sum(terms, axis=0) / bandwidth**2

        beta = np.mean([psi(z) * z - gradient(z) for z in samples], axis=0)
        result += np.array([psi(z) for z in at])[:, None] * beta
    return result


def standard_moments(n) -> Gaussian:
    return Gaussian(jnp.zeros(n), jnp.eye(n))


def test_spectral_estimate_matches_its_definition():
    samples, at = Bimodal(2).sample(20, 0) / 2, Bimodal(2).sample(6, 1) / 2
    estimator = SpectralStein(0.5, eigenvalue_share=0.9, noise_factor=0.0)
    got = fit_and_evaluate(estimator, jnp.asarray(samples), jnp.asarray(at), standard_moments(2))
    np.testing.assert_allclose(got, exact_expansion(samples, at, 0.9), rtol=1e-7)


def test_score_estimators_with_all_eigenfunctions_give_the_original_estimate():
    samples = np.random.default_rng(0).normal(size=(12, 3))
    estimator = SpectralStein(0.5, eigenvalue_share=1.0, noise_factor=0.0)
    got = fit_and_evaluate(
        estimator, jnp.asarray(samples), jnp.asarray(samples), standard_moments(3)
    )
    # The original: -K^{-1} times the sum of the kernel's gradients, if no eigenvalue is cut.
    distances = cdist(samples, samples)
    bandwidth = 0.5 * np.median(distances.mean(axis=1))
    gram = np.exp(-0.5 * distances**2 / bandwidth**2)
    gradients = [gram[:, i] @ (samples[i] - samples) / bandwidth**2 for i in range(12)]
    np.testing.assert_allclose(got, -np.linalg.solve(gram, np.array(gradients)), rtol=1e-6)


def test_score_estimators_noise_of_coefficients_is_what_they_scatter_by():
    num, n, bandwidth = 400, 2, 1.5
    samples = jax.random.normal(KEY, (num, n))
    squared = squared_distances(samples, samples)
    gram = jnp.exp(-0.5 * squared / bandwidth**2)
    values, vectors = (leaf[..., -6:] for leaf in jnp.linalg.eigh(gram))
    got = _coefficient_noise(samples, squared * gram, vectors, 1 / values, jnp.asarray(bandwidth))

    def terms(z):
        def psi(z):
            weights = jnp.exp(-0.5 * jnp.sum((samples - z[None, :]) ** 2, axis=1) / bandwidth**2)
            return jnp.sqrt(num) * (weights @ vectors) / values

        return jnp.sum((psi(z)[:, None] * z[None, :] - jax.jacobian(psi)(z)) ** 2, axis=1)

    scatter = np.mean(jax.jit(jax.vmap(terms))(samples), axis=0)
    # Both are averages over 400 samples, of a quantity that varies as much as it is large.
    np.testing.assert_allclose(got, scatter, rtol=0.2)
    # Constant, two linear, three quadratic functions, the largest eigenvalue last.
    np.testing.assert_allclose(got, [4, 4, 4, 3, 3, 2], rtol=0.3)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31 - 1))
def test_spectral_estimates_do_not_depend_on_coordinates(seed):
    rng = np.random.default_rng(seed)
    samples, at = Bimodal(2).sample(40, seed), Bimodal(2).sample(10, seed + 1)
    rotation, _ = np.linalg.qr(rng.normal(size=(2, 2)))
    matrix, shift = rotation @ np.diag([10.0, 0.1]) @ rotation, rng.normal(size=2)

    def moved(values):
        return jnp.asarray(values @ matrix.T + shift)

    there = fit_and_evaluate(SpectralStein(), moved(samples), moved(at))
    here = fit_and_evaluate(SpectralStein(), jnp.asarray(samples), jnp.asarray(at))
    np.testing.assert_allclose(there @ matrix, here, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@settings(deadline=None, max_examples=5)
@given(scale=st.floats(0.01, 100.0), shift=st.floats(-10.0, 10.0))
def test_sliced_estimates_do_not_depend_on_units(scale, shift):
    samples, at = jnp.asarray(Bimodal(2).sample(40, 0)), jnp.asarray(Bimodal(2).sample(10, 1))
    estimator = SlicedScoreMatching(num_steps=20)
    there = fit_and_evaluate(estimator, samples * scale + shift, at * scale + shift)
    here = fit_and_evaluate(estimator, samples, at)
    np.testing.assert_allclose(there * scale, here, rtol=1e-5, atol=1e-7)


def test_score_estimators_whiten_exactly_by_known_moments():
    gaussian = CorrelatedGaussian()
    moments = Gaussian(jnp.asarray(gaussian.mean), jnp.asarray(gaussian.covariance))
    coordinates, values = whitening(moments), jnp.asarray(gaussian.sample(5, 0))
    factor = np.asarray(coordinates.inverse_factor)
    np.testing.assert_allclose(factor @ gaussian.covariance @ factor.T, np.eye(3), atol=1e-9)
    score = fit_and_evaluate(MomentMatching(), values, values, moments)
    np.testing.assert_allclose(score, gaussian.score(np.asarray(values)), rtol=1e-8)


def test_score_estimators_inverse_of_an_estimated_covariance_is_not_too_large():
    draws = jax.random.normal(KEY, (4000, 25, 8))

    def mean_precision(moments):
        inverse = jax.jit(jax.vmap(lambda samples: jnp.linalg.inv(moments(samples).covariance)))
        precision = inverse(draws)
        diagonal = np.diagonal(precision, axis1=1, axis2=2).mean(axis=1)
        return diagonal.mean(), diagonal.std() / np.sqrt(len(draws))

    mean, standard_error = mean_precision(population_moments)
    assert abs(mean - 1.0) < 4 * standard_error
    # Uncorrected it is off by 24 / 15.
    mean, standard_error = mean_precision(sample_moments)
    assert abs(mean - 24 / 15) < 4 * standard_error


@pytest.mark.parametrize("num", [2, 8])
def test_score_estimators_stay_sane_with_fewer_samples_than_values(num):
    samples, at = jax.random.normal(KEY, (num, 8)), jax.random.normal(jax.random.key(1), (50, 8))
    got = fit_and_evaluate(SpectralStein(), samples, at)
    # The exact score is -at; an inverted covariance of 8 samples would be off by thousands.
    assert np.sqrt(np.mean((np.asarray(got) + at) ** 2)) < 3.0


def test_score_estimators_accept_coinciding_samples():
    samples = jnp.asarray(np.repeat(Bimodal(2).sample(20, 0), 2, axis=0))
    assert np.isfinite(fit_and_evaluate(SpectralStein(), samples, samples)).all()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_score_estimators_pass_no_gradient_through_an_estimate(name):
    samples = jnp.asarray(Bimodal(2).sample(20, 0))
    estimator = ESTIMATORS[name]

    @jax.jit
    @jax.grad
    def by_samples(samples):
        return jnp.sum(estimator.fit(samples, key=KEY)(jnp.ones((1, 2))))

    np.testing.assert_array_equal(by_samples(samples), 0.0)


def test_sliced_loss_of_a_linear_score_worked_by_hand():
    # s(z) = -A z with A = [[2, 1], [0, 1]]: -(v^T A v) + |A z|^2 / 2 for each sample.
    def score(z):
        return -z @ jnp.asarray([[2.0, 0.0], [1.0, 1.0]])

    samples, directions = jnp.asarray([[1.0, 0.0], [1.0, 2.0]]), jnp.asarray([[1.0, 1], [1, -1]])
    # v^T A v is 4 and 2; A z is (2, 0) and (4, 2).
    np.testing.assert_allclose(
        sliced_score_matching_loss(score, samples, directions), ((-4 + 2) + (-2 + 10)) / 2
    )


def test_sliced_loss_is_least_at_the_exact_score():
    samples = jax.random.normal(KEY, (20_000, 2)) * jnp.asarray([[1.0, 2.0]])
    directions = jax.random.rademacher(jax.random.key(1), samples.shape, samples.dtype)

    def loss(precision):
        return sliced_score_matching_loss(lambda z: -z * precision[None, :], samples, directions)

    exact = loss(jnp.asarray([1.0, 0.25]))
    # Half the mean squared error of other precisions is 0.2^2 * 1 / 2, and 0.1^2 * 4 / 2.
    np.testing.assert_allclose(loss(jnp.asarray([1.2, 0.25])) - exact, 0.02, rtol=0.3)
    np.testing.assert_allclose(loss(jnp.asarray([1.0, 0.35])) - exact, 0.02, rtol=0.3)


def test_score_estimators_refuse_bad_input():
    with pytest.raises(ValueError, match="cannot be estimated from 1 sample; give 2 or more"):
        SpectralStein().fit(jnp.ones((1, 3)), key=None)
    with pytest.raises(ValueError, match="got 3 samples and leaves a quarter"):
        SlicedScoreMatching().fit(jnp.eye(3), key=KEY)
    with pytest.raises(ValueError, match="random directions; give a `key`"):
        SlicedScoreMatching().fit(jnp.eye(8), key=None)
