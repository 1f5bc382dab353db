"""Gaussian mixtures against numerical integration, which knows none of the formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from metaprior.methods import Moments
from metaprior.methods._mixture import (
    AbstractParticlePosterior,
    equal_weights,
    mixture_covariance,
    mixture_moments,
)


class Components(AbstractParticlePosterior):
    """The same components everywhere."""

    each: Moments

    def components(self, x):
        return self.each

    def functions(self, x):
        return self.each.mean

    def sample(self, x, num, *, key):
        raise NotImplementedError

    def path(self, anchors, *, key):
        raise NotImplementedError


SOMEWHERE = jnp.zeros(1)
log_density = jax.jit(lambda each, y: Components(each).log_density(SOMEWHERE, y))
cdf = jax.jit(lambda each, y: Components(each).cdf(SOMEWHERE, y))
moments = jax.jit(lambda each: Components(each).moments(SOMEWHERE))

MEANS = [-1.0, 0.4, 0.5, 3.0]
FUNCTION_VARIANCES = [0.3, 0.0, 0.01, 1.0]
NOISE_VARIANCES = [0.2, 0.05, 0.3, 0.7]
COMPONENTS = Moments(*map(jnp.array, (MEANS, FUNCTION_VARIANCES, NOISE_VARIANCES)))
# The mass outside is below 1e-10, and every component is found by the integrator.
LOW, HIGH = -8.0, 12.0


def density(y):
    return float(np.exp(log_density(COMPONENTS, jnp.asarray(y))))


def integral(function, low, high):
    return integrate.quad(function, low, high, points=[-1.0, 0.45, 3.0], limit=200)[0]


def test_mixture_density_integrates_to_one():
    np.testing.assert_allclose(integral(density, LOW, HIGH), 1.0, rtol=1e-7)


@pytest.mark.parametrize("y", [-2.0, 0.3, 0.6, 4.0])
def test_mixture_distribution_function_is_the_integral_of_the_density(y):
    expected = integrate.quad(density, LOW, y, points=sorted({-1.0, min(0.45, y)}), limit=200)[0]
    np.testing.assert_allclose(cdf(COMPONENTS, jnp.asarray(y)), expected, rtol=1e-6)


def test_mixture_moments_are_those_of_the_density():
    mean = integral(lambda y: y * density(y), LOW, HIGH)
    variance = integral(lambda y: (y - mean) ** 2 * density(y), LOW, HIGH)
    got = moments(COMPONENTS)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(got.variance, variance, rtol=1e-6)


def test_mixture_noise_is_what_is_left_when_the_function_is_known():
    """By hand: means 0 and 2 disagree by 1 on either side; noise 0.5 and 1.5."""
    got = moments(Moments(jnp.array([0.0, 2.0]), jnp.array([0.1, 0.3]), jnp.array([0.5, 1.5])))
    np.testing.assert_allclose(got, (1.0, 1.0 + 0.2, 1.0), rtol=1e-12)


@settings(deadline=None, max_examples=100)
@given(
    means=st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4),
    log_variances=st.lists(st.floats(-12, 6), min_size=4, max_size=4),
    y=st.floats(-1e6, 1e6),
)
def test_mixture_values_match_scipy_however_far_away(means, log_variances, y):
    components = Moments(jnp.array(means), jnp.zeros(4), jnp.exp(jnp.array(log_variances)))
    std = np.exp(np.array(log_variances) / 2)
    expected = special.logsumexp(stats.norm.logpdf(y, means, std)) - np.log(4)
    np.testing.assert_allclose(log_density(components, jnp.asarray(y)), expected, rtol=1e-8)
    np.testing.assert_allclose(
        cdf(components, jnp.asarray(y)), stats.norm.cdf(y, means, std).mean(), atol=1e-12
    )


def test_mixture_far_from_every_component_the_log_density_still_has_a_slope():
    value, slope = jax.value_and_grad(lambda y: log_density(COMPONENTS, y))(1e4)
    # There the widest component, N(3, 1.7), is all that counts.
    np.testing.assert_allclose(value, stats.norm.logpdf(1e4, 3.0, np.sqrt(1.7)) - np.log(4))
    np.testing.assert_allclose(slope, -(1e4 - 3.0) / 1.7, rtol=1e-6)


class TwoLines(AbstractParticlePosterior):
    """Components at x: N(x, 0.5) and N(-x, 0.5)."""

    def components(self, x):
        return Moments(self.functions(x), jnp.zeros(2), jnp.full(2, 0.5))

    def functions(self, x):
        return jnp.stack([x[0], -x[0]])

    def sample(self, x, num, *, key):
        raise NotImplementedError

    def path(self, anchors, *, key):
        raise NotImplementedError


def test_mixture_posterior_is_given_by_its_components():
    x, y = jnp.array([3.0]), jnp.asarray(1.0)
    posterior = TwoLines()
    np.testing.assert_allclose(posterior.moments(x), (0.0, 9.0, 0.5), atol=1e-12)
    means, std = [3.0, -3.0], np.sqrt(0.5)
    expected = np.log(stats.norm.pdf(1.0, means, std).mean())
    np.testing.assert_allclose(posterior.log_density(x, y), expected)
    np.testing.assert_allclose(posterior.cdf(x, y), stats.norm.cdf(1.0, means, std).mean())
    # Two equally likely lines x and -x: cov(f(3), f(2)) = 6.
    expected = [[9.0, 6.0], [6.0, 4.0]]
    np.testing.assert_allclose(posterior.covariance(jnp.array([[3.0], [2.0]])), expected)


def test_mixture_moments_follow_the_weights():
    """Against the second moment, which the formula does not use."""
    weights = jnp.array([0.1, 0.2, 0.3, 0.4])
    got = mixture_moments(COMPONENTS, weights)
    second = float(weights @ (COMPONENTS.variance + COMPONENTS.mean**2))
    np.testing.assert_allclose(got.mean, np.average(MEANS, weights=weights), rtol=1e-12)
    np.testing.assert_allclose(got.variance, second - float(got.mean) ** 2, rtol=1e-10)


def test_mixture_covariance_is_that_of_draws_from_its_members():
    """Within five standard errors of 200,000 draws."""
    rng = np.random.default_rng(0)
    weights, means = np.array([0.2, 0.8]), np.array([[0.0, 1.0, -1.0], [2.0, 0.5, 0.0]])
    roots = rng.normal(size=(2, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1)
    member = rng.choice(2, size=200_000, p=weights)
    noise = rng.normal(size=(200_000, 3))
    draws = means[member] + np.einsum("nij,nj->ni", roots[member], noise)
    got = mixture_covariance(*map(jnp.asarray, (means, covariances, weights)))
    centred = draws - draws.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(draws))
    np.testing.assert_array_less(np.abs(products.mean(axis=0) - got), 5 * error)


def test_equal_weights_sum_to_one():
    np.testing.assert_allclose(equal_weights(7), np.full(7, 1 / 7))
