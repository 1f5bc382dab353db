"""ABLR: Bayesian linear regression as the textbook has it, in both spaces, and what it learns."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import metaprior as mp
from metaprior.data import Real, Space, empty_run, run_of
from metaprior.gp import Spread
from metaprior.gp._bayesian_linear import (
    DataSpaceWeights,
    FeatureSpaceWeights,
    LinearPrior,
    evidence_in_data_space,
    evidence_in_feature_space,
    weights_in_data_space,
    weights_in_feature_space,
)
from metaprior.methods import FixedGP
from metaprior.methods._ablr import ABLR

# Their published types know scalars only.
multivariate_normal: Any = scipy.stats.multivariate_normal
normal: Any = scipy.stats.norm

JITTER = 1e-8
WEIGHT_VARIANCE, NOISE_VARIANCE = 0.7, 0.02
PRIOR = LinearPrior(jnp.asarray(WEIGHT_VARIANCE), jnp.asarray(NOISE_VARIANCE))
EVIDENCES = [jax.jit(evidence_in_data_space), jax.jit(evidence_in_feature_space)]
WEIGHTS = [jax.jit(weights_in_data_space), jax.jit(weights_in_feature_space)]


def observations(seed, num, dimension):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num, dimension))
    y = features @ rng.normal(size=dimension) * 0.8 + 0.1 * rng.normal(size=num)
    return jnp.asarray(features), jnp.asarray(y)


def textbook(features, y):
    """Posterior mean and covariance of the weights: Bishop, equations 3.53 and 3.54."""
    features, y = np.asarray(features), np.asarray(y)
    alpha, beta = 1 / WEIGHT_VARIANCE, 1 / (NOISE_VARIANCE + JITTER)
    covariance = np.linalg.inv(alpha * np.eye(features.shape[1]) + beta * features.T @ features)
    return beta * covariance @ features.T @ y, covariance


@pytest.mark.parametrize("condition", WEIGHTS)
@pytest.mark.parametrize(("num", "dimension"), [(1, 5), (6, 6), (20, 4)])
def test_ablr_posterior_matches_the_textbook(condition, num, dimension):
    features, y = observations(0, num, dimension)
    weights = condition(PRIOR, features, y, jnp.ones(num, bool))
    mean, covariance = textbook(features, y)
    np.testing.assert_allclose(weights.mean, mean, rtol=0, atol=1e-8)
    # All entries of the covariance, from variances along sums of two axes.
    axes = np.eye(dimension)
    pairs = jnp.asarray(axes[:, None, :] + axes[None, :, :])
    sums = jax.vmap(jax.vmap(weights.variance))(pairs)
    singles = np.asarray(jax.vmap(weights.variance)(jnp.asarray(axes)))
    found = (sums - singles[:, None] - singles[None, :]) / 2
    np.testing.assert_allclose(found, covariance, rtol=0, atol=1e-8)


@pytest.mark.parametrize("evidence", EVIDENCES)
@pytest.mark.parametrize(("num", "dimension"), [(1, 5), (6, 6), (20, 4)])
def test_ablr_evidence_is_the_density_of_the_data(evidence, num, dimension):
    features, y = observations(1, num, dimension)
    phi = np.asarray(features)
    covariance = WEIGHT_VARIANCE * phi @ phi.T + (NOISE_VARIANCE + JITTER) * np.eye(num)
    expected = multivariate_normal(np.zeros(num), covariance).logpdf(y)
    found = evidence(PRIOR, features, y, jnp.ones(num, bool))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * max(1, abs(expected)))


@pytest.mark.parametrize(("num", "dimension"), [(4, 9), (9, 4)])
def test_ablr_smaller_space_is_chosen(num, dimension):
    features, y = observations(2, num, dimension)
    weights = PRIOR.condition(features, y, jnp.ones(num, bool))
    assert isinstance(weights, DataSpaceWeights if num < dimension else FeatureSpaceWeights)
    expected = EVIDENCES[int(num > dimension)](PRIOR, features, y, jnp.ones(num, bool))
    np.testing.assert_allclose(
        PRIOR.log_evidence(features, y, jnp.ones(num, bool)), expected, rtol=1e-12
    )


CAPACITY, DIMENSION = 8, 5


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**31 - 1),
    length=st.integers(0, CAPACITY),
    log_noise=st.floats(-16.0, 2.0),
    log_weight=st.floats(-3.0, 3.0),
)
def test_ablr_spaces_agree_and_padded_rows_never_matter(seed, length, log_noise, log_weight):
    features, y = observations(seed, CAPACITY, DIMENSION)
    mask = jnp.arange(CAPACITY) < length
    junk = 1e3 * jr.normal(jr.key(seed), (CAPACITY, DIMENSION + 1))
    dirty = jnp.where(mask[:, None], features, junk[:, :-1]), jnp.where(mask, y, junk[:, -1])
    prior = LinearPrior(jnp.exp(log_weight), jnp.exp(log_noise))
    evidences = [f(prior, *data, mask) for f in EVIDENCES for data in ((features, y), dirty)]
    beliefs = [f(prior, *data, mask) for f in WEIGHTS for data in ((features, y), dirty)]
    np.testing.assert_allclose(evidences, evidences[0], rtol=1e-6, atol=1e-6)
    for belief in beliefs[1:]:
        np.testing.assert_allclose(belief.mean, beliefs[0].mean, rtol=1e-5, atol=1e-6)
        along = [b.variance(jnp.arange(1.0, DIMENSION + 1)) for b in (belief, beliefs[0])]
        np.testing.assert_allclose(along[0], along[1], rtol=1e-5, atol=1e-8)


def test_ablr_gradients_of_the_evidence_match_finite_differences_in_both_spaces():
    num, dimension = 6, 4
    features, y = observations(3, num, dimension)
    mask = jnp.arange(num) < num - 1
    start = np.concatenate([np.log([WEIGHT_VARIANCE, NOISE_VARIANCE]), np.ravel(features), y])

    def value(flat, evidence):
        prior = LinearPrior(jnp.exp(flat[0]), jnp.exp(flat[1]))
        end = 2 + num * dimension
        return evidence(prior, flat[2:end].reshape(num, dimension), flat[end:], mask)

    def density(flat):
        """By numpy alone, without the padded row."""
        phi, values = flat[2 : 2 + num * dimension].reshape(num, dimension)[:-1], flat[-num:-1]
        covariance = np.exp(flat[0]) * phi @ phi.T + (np.exp(flat[1]) + JITTER) * np.eye(num - 1)
        quadratic = values @ np.linalg.solve(covariance, values)
        return -0.5 * (quadratic + np.linalg.slogdet(2 * np.pi * covariance)[1])

    steps = 1e-6 * np.eye(len(start))
    numeric = [(density(start + step) - density(start - step)) / 2e-6 for step in steps]
    for evidence in (evidence_in_data_space, evidence_in_feature_space):
        gradient = jax.jit(jax.grad(lambda flat, e=evidence: value(flat, e)))(start)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("condition", WEIGHTS)
def test_ablr_drawn_weights_have_the_posterior_mean_and_covariance(condition):
    num_draws = 40_000
    features, y = observations(4, 3, 4)
    weights = condition(PRIOR, features, y, jnp.ones(3, bool))
    draw = jax.jit(jax.vmap(lambda key: weights.draw(key=key)))
    draws = np.asarray(draw(jr.split(jr.key(0), num_draws)))
    mean, covariance = textbook(features, y)
    std = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) < 4.5 * std / np.sqrt(num_draws)).all()
    # The standard error of a sample covariance of Gaussians.
    error = np.sqrt((np.outer(std, std) ** 2 + covariance**2) / num_draws)
    assert (np.abs(np.cov(draws.T) - covariance) < 4.5 * error).all()


SPACE = Space(x=Real(-1.0, 1.0))


def wave(seed, num):
    """A combination of two functions that all tasks share, far from zero and small."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (num, 1))
    first, second = rng.normal(size=2)
    return x, 50.0 + 0.1 * (first * np.sin(6.0 * x[:, 0]) + second * np.cos(9.0 * x[:, 0]))


@pytest.fixture(scope="module")
def wave_tasks():
    return mp.Tasks.from_runs([wave(seed, 12) for seed in range(16)], space=SPACE)


@pytest.fixture(scope="module")
def method():
    return ABLR(num_steps=1500, learning_rate=1e-2)


@pytest.fixture(scope="module")
def wave_prior(wave_tasks, method):
    return mp.learn(wave_tasks, method=method, seed=0)


@pytest.mark.slow
def test_ablr_learns_features_that_a_fixed_gp_lacks(wave_prior, wave_tasks):
    fixed = mp.learn(wave_tasks, method=FixedGP())
    errors = {"ours": [], "fixed": []}
    for seed in range(100, 110):
        x, y = wave(seed, 60)
        for name, prior in (("ours", wave_prior), ("fixed", fixed)):
            mean, _ = prior.condition(x[:4], y[:4]).predict(x[4:])
            errors[name].append(np.mean((mean - y[4:]) ** 2))
    assert np.median(errors["ours"]) < 0.2 * np.median(errors["fixed"])


@eqx.filter_jit
def condition_on(surrogate, run):
    return surrogate.condition(run)


def kept(surrogate):
    """The surrogate with the learned precisions for every run."""
    spread = Spread(jnp.asarray(0.0), jnp.asarray(0.0))
    return eqx.tree_at(lambda s: s.spread, surrogate, spread)


@pytest.mark.slow
@pytest.mark.parametrize("spare", [0, 50])
@pytest.mark.parametrize("length", [0, 9])
def test_ablr_predictions_match_the_textbook_in_the_units_of_the_run(wave_prior, spare, length):
    """Capacities 16 and 64, on either side of the 32 features."""
    surrogate = kept(wave_prior.surrogate)
    model, standardiser = surrogate.model, surrogate.standardiser
    rng = np.random.default_rng(5)
    x, y = rng.uniform(size=(length, 1)), 50 + 0.1 * rng.normal(size=length)
    run = run_of(x, y, spare=spare)
    posterior = condition_on(surrogate, run)
    moments = posterior.moments(jnp.asarray([0.3]))

    def features(x):
        return np.asarray(jax.vmap(model.network)(standardiser.x(jnp.asarray(x))))

    mean, scale = float(standardiser.y_mean), float(standardiser.y_std)
    alpha, beta = np.exp(model.log_weight_precision), np.exp(model.log_noise_precision)
    phi, new = features(x.reshape(-1, 1)), features([[0.3]])[0]
    noise = 1 / (1 / beta + JITTER)
    covariance = np.linalg.inv(alpha * np.eye(32) + noise * phi.T @ phi)
    weights = noise * covariance @ phi.T @ ((y - mean) / scale)
    np.testing.assert_allclose(moments.mean, mean + scale * new @ weights, rtol=1e-8)
    np.testing.assert_allclose(
        moments.function_variance, scale**2 * new @ covariance @ new, rtol=1e-6
    )
    np.testing.assert_allclose(moments.noise_variance, scale**2 / beta)
    expected = normal(moments.mean, np.sqrt(moments.variance))
    at = moments.mean + 0.05
    np.testing.assert_allclose(posterior.log_density(jnp.asarray([0.3]), at), expected.logpdf(at))
    np.testing.assert_allclose(posterior.cdf(jnp.asarray([0.3]), at), expected.cdf(at), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [16, 64])
def test_ablr_samples_and_paths_have_the_moments(wave_prior, capacity):
    num_draws = 20_000
    x, y = wave(200, 3)
    run = empty_run(capacity, 1)
    for point, value in zip(0.5 + x / 2, y, strict=True):
        run = run.append(jnp.asarray(point), jnp.asarray(value))
    posterior = condition_on(wave_prior.surrogate, run)
    points = jnp.asarray([[0.1], [0.6]])
    moments = jax.vmap(posterior.moments)(points)
    keys = jr.split(jr.key(0), num_draws)
    draw_path = jax.jit(jax.vmap(lambda key: jax.vmap(posterior.path(points, key=key))(points)))
    for draws in (posterior.sample(points, num_draws, key=jr.key(1)), draw_path(keys)):
        shift = np.abs(np.mean(draws, axis=0) - moments.mean)
        assert (shift < 4.5 * np.sqrt(moments.function_variance / num_draws)).all()
        ratio = np.var(draws, axis=0) / moments.function_variance
        assert (np.abs(ratio - 1) < 4.5 * np.sqrt(2 / num_draws)).all()


@pytest.mark.slow
def test_ablr_run_refines_the_precisions(wave_prior):
    """Noise of a fifth of the range raises the noise; a spread of zero keeps what was learned."""
    x, y = wave(300, 12)
    noisy = y + 0.05 * np.random.default_rng(0).normal(size=12)
    run = run_of(0.5 + x / 2, noisy)
    learned = condition_on(kept(wave_prior.surrogate), run).noise_variance
    np.testing.assert_allclose(learned, np.exp(-wave_prior.surrogate.model.log_noise_precision))
    assert condition_on(wave_prior.surrogate, run).noise_variance > 2 * learned
    nothing = condition_on(wave_prior.surrogate, empty_run(16, 1)).noise_variance
    np.testing.assert_allclose(nothing, learned)


@pytest.mark.slow
def test_ablr_conditioning_is_vectorised_over_runs(wave_prior):
    runs = [run_of(0.5 + x / 2, y) for x, y in (wave(1, 3), wave(2, 7), wave(3, 16))]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
    at = jnp.asarray([0.4])
    together = jax.jit(jax.vmap(lambda run: wave_prior.surrogate.condition(run).moments(at)))
    for i, run in enumerate(runs):
        alone = condition_on(wave_prior.surrogate, run).moments(at)
        for a, b in zip(together(stacked), alone, strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-6)
