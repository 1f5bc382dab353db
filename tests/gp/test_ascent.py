"""Ascent in a box: known maxima, scipy's answers, and never a step back."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.gp import Ascent, ascend

NUM_STEPS = 60


def positive_definite(d: int, rng: np.random.Generator) -> np.ndarray:
    """Eigenvalues from 1 to 100 in random directions."""
    directions, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return directions @ np.diag(np.geomspace(1, 100, d)) @ directions.T


@partial(jax.jit, static_argnames="num_steps")
def ascend_quadratic(hessian, centre, start, lower, upper, num_steps=NUM_STEPS) -> Ascent:
    def function(x):
        return -0.5 * (x - centre) @ hessian @ (x - centre)

    return ascend(function, start, lower, upper, num_steps=num_steps)


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_ascend_quadratics_with_their_maximum_inside(d, seed):
    rng = np.random.default_rng(seed)
    hessian, centre = positive_definite(d, rng), rng.uniform(0.2, 0.8, d)
    start = rng.uniform(size=d)
    top = ascend_quadratic(hessian, centre, start, jnp.zeros(d), jnp.ones(d))
    np.testing.assert_allclose(top.x, centre, atol=1e-6)
    np.testing.assert_allclose(top.value, 0.0, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_ascend_quadratics_with_their_maximum_on_the_boundary(d, seed):
    """The maximum is that of bounded least squares, by scipy."""
    rng = np.random.default_rng(10 + seed)
    hessian, centre = positive_definite(d, rng), rng.uniform(-1.0, 2.0, d)
    centre[0] = 1.5
    start = rng.uniform(size=d)
    top = ascend_quadratic(hessian, centre, start, jnp.zeros(d), jnp.ones(d))
    root = np.linalg.cholesky(hessian).T
    expected = scipy.optimize.lsq_linear(root, root @ centre, bounds=(0, 1), tol=1e-14)
    assert np.any((expected.x < 1e-6) | (expected.x > 1 - 1e-6))
    np.testing.assert_allclose(top.x, expected.x, atol=1e-4)
    np.testing.assert_allclose(-top.value, expected.cost, rtol=1e-6)
    assert np.all((np.asarray(top.x) >= 0) & (np.asarray(top.x) <= 1))


def test_ascend_separable_quadratic_on_the_boundary_by_hand():
    """Coordinates whose maximum lies outside stop exactly at the bound."""
    centre = jnp.asarray([-3.0, 0.25, 7.0])
    top = ascend_quadratic(
        jnp.diag(jnp.asarray([1.0, 4.0, 9.0])),
        centre,
        jnp.asarray([0.5, 0.9, 0.5]),
        jnp.zeros(3),
        jnp.ones(3),
    )
    np.testing.assert_allclose(top.x, [0.0, 0.25, 1.0], atol=1e-7)
    assert float(top.x[0]) == 0.0 and float(top.x[2]) == 1.0
    np.testing.assert_allclose(top.value, -0.5 * (9.0 + 9.0 * 36.0), rtol=1e-12)
    np.testing.assert_allclose(top.gradient, [-3.0, 0.0, 54.0], atol=1e-5)


def test_ascend_start_at_the_maximum_stays_there():
    for corner, centre in ((0.5, 0.5), (1.0, 2.0)):
        x = jnp.full(2, corner)
        top = ascend_quadratic(jnp.eye(2), jnp.full(2, centre), x, jnp.zeros(2), jnp.ones(2))
        np.testing.assert_array_equal(top.x, x)


def test_ascend_closed_dimension_does_not_move():
    lower, upper = jnp.asarray([0.0, 0.3]), jnp.asarray([1.0, 0.3])
    start = jnp.asarray([0.9, 0.3])
    top = ascend_quadratic(jnp.eye(2), jnp.asarray([0.2, 0.8]), start, lower, upper)
    np.testing.assert_allclose(top.x, [0.2, 0.3], atol=1e-8)


def negative_rosenbrock(x):
    return -jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@pytest.mark.parametrize(("d", "num_steps"), [(2, 100), (6, 200)])
def test_ascend_rosenbrock(d, num_steps):
    lower, upper = jnp.full(d, -2.0), jnp.full(d, 2.0)
    start = jnp.asarray(np.where(np.arange(d) % 2, 1.0, -1.2))
    top = jax.jit(lambda s: ascend(negative_rosenbrock, s, lower, upper, num_steps=num_steps))(
        start
    )
    local = scipy.optimize.minimize(
        lambda x: -float(negative_rosenbrock(x)),
        np.asarray(start),
        bounds=[(-2, 2)] * d,
        method="L-BFGS-B",
    )
    # From d = 4 on there is a second, local maximum; scipy's answer says which one is near.
    np.testing.assert_allclose(-top.value, local.fun, atol=1e-6)
    np.testing.assert_allclose(top.x, local.x, atol=1e-3)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**31 - 1), num_steps=st.integers(0, 3))
def test_ascend_is_never_below_the_start_nor_outside(seed, num_steps):
    rng = np.random.default_rng(seed)
    # Indefinite and badly scaled, so early steps mislead.
    hessian = np.diag(10.0 ** rng.uniform(-3, 3, 3) * rng.choice([-1, 1], 3))
    centre, start = rng.uniform(-1, 2, 3), rng.uniform(size=3)
    top = ascend_quadratic(hessian, centre, start, jnp.zeros(3), jnp.ones(3), num_steps)
    before = -0.5 * (start - centre) @ hessian @ (start - centre)
    assert float(top.value) >= before - 1e-12 * abs(before)
    assert np.all((np.asarray(top.x) >= 0) & (np.asarray(top.x) <= 1))
    if num_steps == 0:
        np.testing.assert_array_equal(top.x, start)


def test_ascend_undefined_values_are_stepped_around():
    """A function that is NaN from 0.6 on, where long steps land."""

    def function(x):
        return 0.0 * jnp.log(0.6 - x[0]) - (x[0] - 0.5) ** 2

    start = jnp.asarray([0.1])
    top = jax.jit(lambda s: ascend(function, s, jnp.zeros(1), jnp.ones(1), num_steps=30))(start)
    np.testing.assert_allclose(top.x, [0.5], atol=1e-5)


class Waves:
    """Smooth random functions with several local maxima: sums of 6 sine waves, written twice."""

    def __init__(self, d: int, seed: int):
        rng = np.random.default_rng(seed)
        self.frequencies = 3.0 * rng.normal(size=(6, d))
        self.phases, self.weights = rng.uniform(0, 2 * np.pi, 6), rng.normal(size=6)
        self.starts = rng.uniform(size=(12, d))

    def numpy(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        angles = self.frequencies @ x + self.phases
        gradient = (self.weights * np.cos(angles)) @ self.frequencies
        return -float(self.weights @ np.sin(angles)), -gradient


@partial(jax.jit, static_argnames="num_steps")
def climb_waves(frequencies, phases, weights, starts, num_steps=60) -> Ascent:
    def function(x):
        return weights @ jnp.sin(frequencies @ x + phases)

    d = starts.shape[1]
    climb = partial(ascend, function, lower=jnp.zeros(d), upper=jnp.ones(d), num_steps=num_steps)
    return jax.vmap(lambda start: climb(start))(starts)


def slope_left(waves: Waves, point: np.ndarray) -> float:
    """How far a step down the gradient of the loss leads inside the box: 0 at a local maximum."""
    _, slope = waves.numpy(point)
    return np.abs(np.clip(point - slope, 0, 1) - point).max()


@pytest.mark.parametrize("d", [2, 5])
def test_ascend_is_as_good_as_scipy_on_random_smooth_functions(d):
    """Every ascent ends at a local maximum, and from 12 starts the best of ours is scipy's best."""
    for seed in range(15):
        waves = Waves(d, seed)
        tops = climb_waves(waves.frequencies, waves.phases, waves.weights, waves.starts)
        values = np.asarray(tops.value)
        for point, value in zip(np.asarray(tops.x), values, strict=True):
            np.testing.assert_allclose(value, -waves.numpy(point)[0], rtol=1e-9, atol=1e-12)
            assert slope_left(waves, point) < 1e-4
        found = [
            -scipy.optimize.minimize(
                waves.numpy, start, jac=True, bounds=[(0, 1)] * d, method="L-BFGS-B"
            ).fun
            for start in waves.starts
        ]
        assert values.max() > max(found) - 1e-6


def test_ascend_needs_at_most_twenty_steps_from_most_starts():
    """Also where some coordinates end at a bound, where steepest ascent is slow."""
    slopes = []
    for seed in range(15):
        waves = Waves(5, seed)
        tops = climb_waves(waves.frequencies, waves.phases, waves.weights, waves.starts, 20)
        slopes += [slope_left(waves, point) for point in np.asarray(tops.x)]
    assert np.mean(np.array(slopes) < 1e-4) > 0.85


def test_ascend_batch_of_ascents_equals_single_ones():
    waves = Waves(3, 0)
    together = climb_waves(waves.frequencies, waves.phases, waves.weights, waves.starts)
    for index in (0, 5, 11):
        alone = climb_waves(
            waves.frequencies, waves.phases, waves.weights, waves.starts[index : index + 1]
        )
        # Where the function is flat, the last digits of x do not show in its value.
        np.testing.assert_allclose(alone.x[0], together.x[index], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(alone.value[0], together.value[index], rtol=1e-10)
