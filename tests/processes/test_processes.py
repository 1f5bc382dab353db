"""The shipped processes against sklearn, scipy and moments known by theory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import sklearn.gaussian_process.kernels
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.gp import Reference
from metaprior.processes import (
    AbstractProcess,
    ConstantMean,
    DensityScore,
    EstimatedScore,
    Matern,
    Periodic,
    SampledProcess,
    Scored,
    SpectralStein,
    SquaredExponential,
    StudentTProcess,
    functional_kl,
    gaussian_process,
    random_sinusoids,
    target_of,
)

JITTER = 1e-4
VARIANCE = 1.7
# The stubs of scipy and sklearn take matrices for other things.
sklearn_kernels: Any = sklearn.gaussian_process.kernels
multivariate_t: Any = scipy.stats.multivariate_t


def points(num: int, d: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, size=(num, d)))


def smooth_process(lengthscale: float = 0.5, mean: float = 0.3):
    kernel = SquaredExponential(jnp.log(lengthscale), jnp.log(VARIANCE))
    return gaussian_process(kernel, ConstantMean(jnp.asarray(mean)))


def covariance_of(x) -> np.ndarray:
    """What `smooth_process` has at `x`, from sklearn, with jitter."""
    return VARIANCE * sklearn_kernels.RBF(0.5)(np.asarray(x)) + JITTER * np.eye(len(x))


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_matern_matches_sklearn(smoothness, d):
    lengthscale = np.linspace(0.4, 1.3, d)
    kernel = Matern(jnp.log(lengthscale), jnp.log(VARIANCE), smoothness)
    oracle = sklearn_kernels.Matern(lengthscale, nu=smoothness)
    x, z = points(6, d), points(4, d, seed=1)
    expected = VARIANCE * oracle(np.asarray(x), np.asarray(z))
    np.testing.assert_allclose(kernel.gram(x, z), expected, rtol=1e-9)


def test_periodic_matches_sklearn():
    kernel = Periodic(jnp.log(0.8), jnp.log(0.6), jnp.log(VARIANCE))
    oracle = sklearn_kernels.ExpSineSquared(length_scale=0.6, periodicity=0.8)
    x = points(7, 1)
    expected = VARIANCE * oracle(np.asarray(x))
    np.testing.assert_allclose(kernel.matrix(x), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(jnp.log(0.5), jnp.log(1.0), 1.5),
        Matern(jnp.log(0.5), jnp.log(1.0), 2.5),
        Periodic(jnp.log(0.5), jnp.log(1.0), jnp.log(1.0)),
    ],
    ids=["matern 3/2", "matern 5/2", "periodic"],
)
def test_kernels_have_a_gradient_where_points_coincide(kernel):
    x = jnp.asarray([0.3, -0.2])
    by_parameters, by_point = jax.jit(jax.grad(lambda k, z: k(x, z), argnums=(0, 1)))(kernel, x)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(by_parameters))
    np.testing.assert_allclose(by_point, 0.0, atol=1e-12)
    np.testing.assert_allclose(by_parameters.log_variance, 1.0)


def test_matern_refuses_an_unknown_smoothness():
    with pytest.raises(ValueError, match="smoothness of a Matern kernel is 2.0; give 0.5, 1.5"):
        Matern(jnp.log(0.5), jnp.log(1.0), 2.0)


@settings(deadline=None, max_examples=30)
@given(nu=st.floats(2.1, 50.0), scale=st.floats(0.1, 5.0))
def test_student_t_density_matches_scipy(nu, scale):
    x, values = points(5, 2), scale * np.random.default_rng(1).normal(size=5)
    got = student_t_density(jnp.asarray(nu), x, jnp.asarray(values))
    # scipy's shape matrix is the covariance times (nu - 2) / nu.
    shape = covariance_of(x) * (nu - 2) / nu
    expected = multivariate_t(np.full(5, 0.3), shape, df=nu).logpdf(values)
    np.testing.assert_allclose(got, expected, rtol=1e-8)


@jax.jit
def student_t_density(nu, x, values):
    return StudentTProcess(smooth_process(), nu).log_density(x, values, jitter=JITTER)


def test_student_t_samples_have_the_covariance_and_kurtosis_of_theory():
    nu, x = 12.0, points(3, 1)
    sample = eqx.filter_jit(StudentTProcess(smooth_process(), nu).sample)
    samples = np.asarray(sample(x, 40_000, key=jax.random.key(0), jitter=JITTER)) - 0.3
    expected = covariance_of(x)
    products = samples[:, :, None] * samples[:, None, :]
    standard_error = products.std(axis=0) / np.sqrt(len(samples))
    assert (np.abs(products.mean(axis=0) - expected) < 4 * standard_error).all()
    fourth = (samples / np.sqrt(np.diag(expected))) ** 4
    standard_error = fourth.std(axis=0) / np.sqrt(len(samples))
    kurtosis = 3 + 6 / (nu - 4)
    assert (np.abs(fourth.mean(axis=0) - kurtosis) < 4 * standard_error).all()
    # A Gaussian would be found out.
    assert (np.abs(fourth.mean(axis=0) - 3) > 4 * standard_error).all()


def test_student_t_refuses_too_few_degrees_of_freedom():
    with pytest.raises(ValueError, match="with 2.0 degrees of freedom has no covariance"):
        StudentTProcess(smooth_process(), 2.0)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31 - 1))
def test_process_sample_of_a_key_is_one_function(seed):
    key, x = jax.random.key(seed), points(6, 2)
    values = np.asarray(draw_sinusoid(x, key))
    np.testing.assert_allclose(draw_sinusoid(x[:3], key), values[:3], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(draw_sinusoid(x[::-1], key), values[::-1], rtol=1e-9, atol=1e-12)


draw_sinusoid = jax.jit(random_sinusoids(frequency=0.7).draw)


def test_sinusoids_have_the_moments_of_a_wave():
    amplitude, frequency, x = 1.5, 0.7, jnp.asarray([[0.0], [0.2], [0.9]])
    sample = eqx.filter_jit(random_sinusoids(frequency, amplitude).sample)
    samples = np.asarray(sample(x, 20_000, key=jax.random.key(0), jitter=0.01))
    # The phase is uniform: the covariance is a cosine of the distance, of the wave's frequency.
    angle = 2 * np.pi * frequency * np.asarray(x - x.T)
    expected = amplitude**2 * np.cos(angle) + 0.01 * np.eye(3)
    products = samples[:, :, None] * samples[:, None, :]
    standard_error = products.std(axis=0) / np.sqrt(len(samples))
    assert (np.abs(products.mean(axis=0) - expected) < 4 * standard_error).all()
    assert (np.abs(samples.mean(axis=0)) < 4 * amplitude / np.sqrt(len(samples))).all()


class RandomSteps(AbstractProcess):
    """What a user would write: functions that jump once, by a learnable height."""

    log_height: jax.Array

    def sample(self, x, num, *, key, jitter=1e-8):
        key_place, key_height, key_noise = jax.random.split(key, 3)
        place = jax.random.uniform(key_place, (num, 1), minval=-1, maxval=1)
        height = jnp.exp(self.log_height) * jax.random.normal(key_height, (num, 1))
        values = height * jnp.where(x[:, 0][None, :] > place, 1.0, -1.0)
        return values + jnp.sqrt(jitter) * jax.random.normal(key_noise, values.shape)


@pytest.mark.parametrize(
    "process, kind, score",
    [
        (smooth_process(), Reference, None),
        (StudentTProcess(smooth_process(), 5.0), Scored, DensityScore),
        (random_sinusoids(), Scored, EstimatedScore),
        (RandomSteps(jnp.asarray(0.0)), Scored, EstimatedScore),
    ],
    ids=["Gaussian", "density", "sampling function", "user's own"],
)
def test_target_of_uses_the_best_description_of_each_process(process, kind, score):
    target = eqx.filter_jit(target_of)(
        process,
        points(4, 1),
        jitter=JITTER,
        estimator=SpectralStein(),
        num_samples=30,
        key=jax.random.key(0),
    )
    assert isinstance(target, kind)
    assert target.jitter == JITTER
    if isinstance(target, Scored):
        assert isinstance(target.score, score)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", [smooth_process(mean=0.0), SampledProcess(random_sinusoids().draw)]
)
def test_process_of_a_user_can_be_pulled_anywhere(target):
    x = points(8, 1)

    @eqx.filter_jit
    def slope(log_height):
        def divergence(log_height):
            return functional_kl(RandomSteps(log_height), target, x, key=jax.random.key(0))

        return jax.grad(divergence)(log_height)

    # Jumps of any height are less likely under a smooth process than small ones are unlikely,
    # until they are tiny: the height is pulled down from above and up from below.
    assert slope(jnp.asarray(0.0)) > 0
    assert slope(jnp.log(1e-3)) < 0
