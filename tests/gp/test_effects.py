"""Tasks that differ in level and amplitude: kernel, posterior, and what is trained of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import metaprior as mp
from metaprior.gp import EffectsProcess, GaussianProcess, SquaredExponential, Warp, condition
from metaprior.gp._means import AbstractMean
from metaprior.methods import FPacohMap

CAPACITY = 8
LENGTHSCALE, VARIANCE, NOISE_VARIANCE = 0.4, 0.7, 0.02
X = np.random.default_rng(0).uniform(size=(CAPACITY, 2))
X_NEW = np.random.default_rng(1).uniform(-0.5, 1.5, size=(5, 2))


class Wave(AbstractMean):
    """A mean that is large in one place, and negative in another."""

    slope: jnp.ndarray

    def __call__(self, x):
        return 3.0 * jnp.sin(4.0 * x[0]) + self.slope * x[1]


def wave(x: np.ndarray) -> np.ndarray:
    return 3.0 * np.sin(4.0 * x[:, 0]) - 0.5 * x[:, 1]


PLAIN = GaussianProcess(
    Wave(jnp.asarray(-0.5)),
    SquaredExponential(jnp.log(LENGTHSCALE), jnp.log(VARIANCE)),
    jnp.log(NOISE_VARIANCE),
)
UNWARPED = Warp(jnp.zeros(2), jnp.zeros(2), jnp.asarray(False))
BASE = ConstantKernel(VARIANCE) * RBF(LENGTHSCALE)


def process(v_c: float, v_a: float, offset: bool = True, amplitude: bool = True) -> EffectsProcess:
    numbers = jnp.log(v_c), jnp.log(v_a), jnp.asarray(offset), jnp.asarray(amplitude)
    # What the abstract class declares are properties here, and no arguments.
    return EffectsProcess(PLAIN, UNWARPED, *numbers)  # pyright: ignore[reportCallIssue]


def base(x: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
    return np.asarray(BASE(x, z))


def covariance(x: np.ndarray, z: np.ndarray, v_c: float, v_a: float) -> np.ndarray:
    return base(x, z) + v_c + v_a * np.outer(wave(x), wave(z))


@eqx.filter_jit
def marginal(process, x):
    return process.marginal(x)


variances = st.floats(1e-3, 1e2)


@settings(deadline=None, max_examples=30)
@given(v_c=variances, v_a=variances, offset=st.booleans(), amplitude=st.booleans())
def test_effects_process_marginal_has_the_two_terms_of_the_formula(v_c, v_a, offset, amplitude):
    found = marginal(process(v_c, v_a, offset, amplitude), jnp.asarray(X))
    expected = covariance(X, X, v_c * offset, v_a * amplitude)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.mean, wave(X), rtol=1e-12)


def test_effects_process_effects_are_those_of_random_levels_and_amplitudes():
    """Moments of (1 + a) m + c by drawing a and c, with what the base kernel adds taken away."""
    rng, num, v_c, v_a = np.random.default_rng(0), 200_000, 0.5, 0.3
    a, c = np.sqrt(v_a) * rng.normal(size=(num, 1)), np.sqrt(v_c) * rng.normal(size=(num, 1))
    drawn = (1 + a) * wave(X) + c
    found = marginal(process(v_c, v_a), jnp.asarray(X))
    effects = np.asarray(found.covariance) - base(X)
    np.testing.assert_allclose(np.cov(drawn.T), effects, atol=0.04)
    np.testing.assert_allclose(drawn.mean(axis=0), found.mean, atol=0.02)
    # The control: amplitude and level are not the same thing.
    assert np.abs(np.cov(drawn.T) - (v_a + v_c * np.outer(wave(X), wave(X)))).max() > 0.5


@settings(deadline=None, max_examples=20)
@given(v_c=st.floats(1e-6, 1e6), v_a=st.floats(1e-6, 1e6))
def test_effects_process_switched_off_is_its_base_process_exactly(v_c, v_a):
    found = marginal(process(v_c, v_a, False, False), jnp.asarray(X))
    plain = marginal(PLAIN, jnp.asarray(X))
    np.testing.assert_array_equal(found.covariance, plain.covariance)
    np.testing.assert_array_equal(found.mean, plain.mean)


def posterior(process, x, y, length: int, new):
    # As an array, so that all lengths share one compiled function.
    return _posterior(process, x, y, jnp.asarray(length), new)


@eqx.filter_jit
def _posterior(process, x, y, length, new):
    found = condition(process, x, y, jnp.arange(CAPACITY) < length)
    joint = found.joint(new)
    return joint.mean, joint.covariance, found.log_evidence


def by_weights(y: np.ndarray, length: int, v_c: float, v_a: float) -> tuple:
    """The effects as coefficients with a Gaussian prior, and the base process for the rest:
    first the posterior of the coefficients, then of the function given them."""
    x, y = X[:length], y[:length]
    noisy = base(x) + NOISE_VARIANCE * np.eye(length)
    features, new_features = (np.column_stack([np.ones(len(z)), wave(z)]) for z in (x, X_NEW))
    cross = base(X_NEW, x)
    precision = np.diag([1 / v_c, 1 / v_a]) + features.T @ np.linalg.solve(noisy, features)
    residual = y - wave(x)
    coefficients = np.linalg.solve(precision, features.T @ np.linalg.solve(noisy, residual))
    rest = residual - features @ coefficients
    mean = wave(X_NEW) + new_features @ coefficients + cross @ np.linalg.solve(noisy, rest)
    left = new_features - cross @ np.linalg.solve(noisy, features)
    rest_covariance = base(X_NEW) - cross @ np.linalg.solve(noisy, cross.T)
    return mean, rest_covariance + left @ np.linalg.solve(precision, left.T)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**31 - 1),
    length=st.integers(1, CAPACITY),
    v_c=st.floats(0.05, 20.0),
    v_a=st.floats(0.05, 20.0),
)
def test_effects_process_posterior_is_that_of_coefficients_with_a_prior(seed, length, v_c, v_a):
    rng = np.random.default_rng(seed)
    y = 5.0 + 2.0 * wave(X) + rng.normal(size=CAPACITY)
    padded = np.where(np.arange(CAPACITY) < length, y, 1e6)
    mean, covariance_found, _ = posterior(
        process(v_c, v_a), jnp.asarray(X), jnp.asarray(padded), length, jnp.asarray(X_NEW)
    )
    expected_mean, expected_covariance = by_weights(y, length, v_c, v_a)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(covariance_found, expected_covariance, rtol=1e-5, atol=1e-4)


def test_effects_process_without_points_the_posterior_is_the_prior():
    mean, found, evidence = posterior(
        process(0.5, 0.3), jnp.asarray(X), jnp.zeros(CAPACITY), 0, jnp.asarray(X_NEW)
    )
    np.testing.assert_allclose(mean, wave(X_NEW), rtol=1e-12)
    np.testing.assert_allclose(found, covariance(X_NEW, X_NEW, 0.5, 0.3), rtol=1e-10)
    assert abs(float(evidence)) < 1e-6


def test_effects_process_learns_the_level_of_a_task_from_one_point():
    """Far from the point, where the base kernel says nothing, the mean moves by nearly the
    whole surprise; without the effect it stays."""
    x, y = jnp.zeros((CAPACITY, 2)), jnp.zeros(CAPACITY).at[0].set(10.0)
    far = jnp.full((1, 2), 9.0)
    with_level, _, _ = posterior(process(100.0, 1.0, True, False), x, y, 1, far)
    without, _, _ = posterior(process(100.0, 1.0, False, False), x, y, 1, far)
    here = wave(np.full((1, 2), 9.0))
    expected = 10.0 * 100.0 / (100.0 + VARIANCE + NOISE_VARIANCE)
    np.testing.assert_allclose(with_level, here + expected, rtol=1e-6)
    np.testing.assert_allclose(without, here, rtol=1e-6)


@eqx.filter_jit
def evidence(process, x, y):
    return process.log_marginal_likelihood(x, y, jnp.ones(CAPACITY, bool))


gradient = eqx.filter_jit(eqx.filter_grad(evidence))


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("amplitude", [False, True])
def test_effects_process_switches_have_no_gradient_and_turn_off_those_of_others(offset, amplitude):
    x, y = jnp.asarray(X), jnp.asarray(wave(X) + 2.0)
    this = process(0.4, 0.2, offset, amplitude)
    found = gradient(this, x, y)
    assert found.has_offset is None and found.has_amplitude is None
    for name, is_on in (("log_offset_variance", offset), ("log_amplitude_variance", amplitude)):
        slope = float(getattr(found, name))

        def moved(step: float, name=name) -> float:
            there = eqx.tree_at(
                lambda p: getattr(p, name), this, getattr(this, name) + jnp.asarray(step)
            )
            return float(evidence(there, x, y))

        np.testing.assert_allclose(slope, (moved(1e-4) - moved(-1e-4)) / 2e-4, atol=1e-5)
        assert (slope != 0.0) == is_on


@pytest.fixture(scope="module")
def tasks(hill_space, hill_runs):
    """Hills, each of its own level."""
    rng = np.random.default_rng(5)
    runs = [(points, values + 3.0 * rng.normal()) for points, values in hill_runs]
    return mp.Tasks.from_runs(runs, space=hill_space)


@pytest.fixture(scope="module")
def priors(tasks):
    """By offset and amplitude."""
    return {
        (offset, amplitude): mp.learn(
            tasks, method=FPacohMap(num_steps=20, offset=offset, amplitude=amplitude)
        )
        for offset in (False, True)
        for amplitude in (False, True)
    }


def test_effects_process_training_moves_the_variances_that_are_on_and_no_switch(priors):
    for (offset, amplitude), prior in priors.items():
        trained = prior.surrogate.process
        assert trained.has_offset.dtype == trained.has_amplitude.dtype == bool
        assert bool(trained.has_offset) == offset
        assert bool(trained.has_amplitude) == amplitude
        start = np.log(0.25)
        assert (float(trained.log_offset_variance) != start) == offset
        assert (float(trained.log_amplitude_variance) != start) == amplitude


def test_effects_process_prior_with_effects_is_saved_and_loaded_bit_for_bit(
    priors, hill_runs, tmp_path
):
    prior = priors[True, True]
    loaded = mp.load(prior.save(tmp_path / "prior"))
    assert loaded.method == prior.method == FPacohMap(num_steps=20, offset=True, amplitude=True)
    grid = [[-1.0, 0.0], [0.3, 6.0], [1.0, 10.0]]
    points, values = hill_runs[3]
    for x, y in (([], []), (points, values + 4.0)):
        ours, theirs = (p.condition(x, y).predict(grid) for p in (prior, loaded))
        np.testing.assert_array_equal(ours, theirs)
    # The control: without the effects it is another prior.
    other = priors[False, False].condition(points, values + 4.0).predict(grid)
    assert np.abs(np.asarray(other) - ours).max() > 1e-3


def test_effects_mean_and_embedded_are_those_of_mean_and_kernel():
    """The one pass for both gives what each gives alone; so do its gradients."""
    bent = Warp(jnp.array([0.3, -0.2]), jnp.array([0.1, 0.4]), jnp.asarray(True))
    both = eqx.tree_at(lambda p: p.warp, process(0.3, 0.2), bent)
    x = jnp.asarray(np.random.default_rng(2).uniform(size=(2, 3, 2)))

    def together(process):
        return process.mean_and_embedded(x)

    def apart(process):
        return jax.vmap(jax.vmap(process.mean))(x), process.kernel.embed_batch(x)

    def total(function, process):
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(function(process)))

    for found, expected in [
        (together(both), apart(both)),
        *[(eqx.filter_grad(lambda p, f=f: total(f, p))(both) for f in (together, apart))],
    ]:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14), found, expected
        )
