"""The rank-weighted ensemble against NumPy, scikit-learn and what the paper promises."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import metaprior as mp
from metaprior.data import Run, run_of
from metaprior.gp import ConstantMean, GaussianProcess, SquaredExponential, condition
from metaprior.methods._rank_weighted_gp import SEARCH_RANGES, RankWeightedGP
from metaprior.methods._rank_weights import leave_one_out, misranked, rank_weights

# Compiled networks and fits: with the slow tests, so that the default suite stays short.
pytestmark = pytest.mark.slow

SPACE = mp.Space(a=mp.Real(0.0, 1.0), b=mp.Real(0.0, 1.0))
LENGTHS = (24, 7, 12)
KEY = jax.random.key(0)
TEST = np.random.default_rng(99).uniform(size=(5, 2))


def wave(x, shift=0.0):
    return np.sin(5.0 * x[:, 0] + shift) + np.cos(4.0 * x[:, 1])


def surrogate_of(*functions):
    """What is learned from one run of each function; the shapes are always the same."""
    rng = np.random.default_rng(0)
    points = [rng.uniform(size=(length, 2)) for length in LENGTHS]
    runs = [(x, function(x)) for x, function in zip(points, functions, strict=True)]
    tasks = mp.Tasks.from_runs(runs, space=SPACE)
    return tasks, RankWeightedGP().meta_train(tasks, key=KEY)


@pytest.fixture(scope="module")
def waves():
    """Past tasks of different levels and scales: only the first is like the `wave` itself."""
    return surrogate_of(
        lambda x: 40.0 + 3.0 * wave(x),
        lambda x: -7.0 * wave(x, shift=2.0),
        lambda x: 2.0 * np.sin(9.0 * x.sum(axis=1)),
    )


@pytest.fixture(scope="module")
def conditioned():
    """The compiled posterior and its moments at the test points, traced once for each capacity."""

    def both(surrogate, run):
        posterior = surrogate.condition(run)
        return posterior, jax.vmap(posterior.moments)(jnp.asarray(TEST))

    return eqx.filter_jit(eqx.debug.assert_max_traces(both, max_traces=2))


def wave_run(length, *, seed=1, spare=0):
    x = np.random.default_rng(seed).uniform(size=(length, 2))
    return run_of(x, wave(x), spare)


# ---- the ranking


def brute_force_posterior(x, y, seen, process):
    """Mean and covariance of f at all points given some of the observations, in NumPy."""
    lengthscales = np.exp(np.asarray(process.kernel.log_lengthscale))
    variance = np.exp(float(process.kernel.log_variance))
    k = variance * np.exp(-0.5 * cdist(x / lengthscales, x / lengthscales, "sqeuclidean"))
    noise = np.exp(float(process.log_noise_variance))
    gain = k[:, seen] @ np.linalg.inv(k[np.ix_(seen, seen)] + noise * np.eye(len(seen)))
    centre = float(process.mean.value)
    return centre + gain @ (y[seen] - centre), k - gain @ k[seen]


@pytest.mark.parametrize("m", [2, 6])
def test_rank_weighted_gp_leaving_one_out_equals_refitting_without_it(m):
    process = GaussianProcess(
        ConstantMean(jnp.asarray(0.3)),
        SquaredExponential(jnp.log(jnp.array([0.4, 0.9])), jnp.log(1.7)),
        jnp.log(0.05),
    )
    run = wave_run(m)
    model = condition(process, run.x, run.y, run.mask)
    # The draws are a linear function of the noises: unit vectors show all of it.
    capacity = run.y.shape[0]
    unit = np.concatenate([np.zeros((capacity, 1)), np.eye(capacity), 0 * np.eye(capacity)], axis=1)
    other = np.concatenate(
        [np.zeros((capacity, 1)), 0 * np.eye(capacity), np.eye(capacity)], axis=1
    )
    f = leave_one_out(model, run.x, run.mask, jnp.asarray(unit), jnp.asarray(other))
    for j in range(m):
        drawn = np.asarray(f(jnp.asarray(j)))[:m]
        seen = [k for k in range(m) if k != j]
        mean, covariance = brute_force_posterior(
            np.asarray(run.x)[:m], np.asarray(run.y)[:m], seen, process
        )
        spread = drawn[:, 1:] - drawn[:, :1]
        np.testing.assert_allclose(drawn[:, 0], mean, rtol=1e-6)
        np.testing.assert_allclose(spread @ spread.T, covariance, atol=1e-6)


@jax.jit
def misranked_both(f, y, mask):
    return misranked(lambda j: f, y, mask, f.shape[1])


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(0, 8))
def test_rank_weighted_gp_misranked_pairs_are_those_counted_by_hand(seed, length):
    rng = np.random.default_rng(seed)
    f, y = rng.normal(size=(8, 2)), rng.integers(0, 4, size=8).astype(float)  # with ties in y
    expected = [
        sum((f[j, s] < f[k, s]) != (y[j] < y[k]) for j in range(length) for k in range(length))
        for s in range(2)
    ]
    np.testing.assert_array_equal(misranked_both(f, y, np.arange(8) < length), expected)


def test_rank_weighted_gp_weights_of_a_case_worked_by_hand():
    past = jnp.array([[0.0, 2, 4, 2], [6, 6, 0, 6], [2, 2, 2, 2], [0, 0, 0, 0]])
    target = jnp.array([2.0, 2, 4, 4])
    usable = jnp.array([True, True, True, False])
    # Model 1 has median 6, above the largest loss of the target, and is discarded with its win
    # in the third draw; model 3 does not exist. The winners: 0; 0, 2 and target; 2; 0 and 2.
    weights, own = rank_weights(past, target, usable, jnp.asarray(1.0))
    np.testing.assert_allclose(weights, [(1 + 1 / 3 + 1 / 2) / 4, 0, (1 / 3 + 1 + 1 / 2) / 4, 0])
    np.testing.assert_allclose(own, (1 / 3) / 4)
    # A median equal to the limit stays in: with the target's smallest loss, 2, so do 0 and 2.
    strict, _ = rank_weights(past, target, usable, jnp.asarray(0.0))
    np.testing.assert_allclose(strict, weights)
    none, all_own = rank_weights(past, jnp.zeros(4), usable, jnp.asarray(0.95))
    np.testing.assert_array_equal([*none, all_own], [0, 0, 0, 0, 1])


# ---- the ensemble


def by_sklearn(process, x, y):
    """Mean and variance of f at the test points under one member, by scikit-learn."""
    kernel = ConstantKernel(np.exp(process.kernel.log_variance), "fixed") * RBF(
        np.exp(process.kernel.log_lengthscale), "fixed"
    )
    alpha = np.exp(float(process.log_noise_variance)) + 1e-8
    gp = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None)  # pyright: ignore[reportArgumentType]
    mean, std = gp.fit(x, y - process.mean.value).predict(TEST, return_std=True)
    return process.mean.value + mean, np.square(std)


def test_rank_weighted_gp_moments_are_weighted_sums_of_those_of_sklearn(waves, conditioned):
    tasks, surrogate = waves
    run = wave_run(6, seed=3)
    posterior, moments = conditioned(surrogate, run)
    x, y = np.asarray(run.x)[:6], np.asarray(run.y)[:6]
    members = [by_sklearn(posterior.target.process, x, (y - y.mean()) / y.std())]
    noises = [np.exp(posterior.target.process.log_noise_variance)]
    for i, length in enumerate(LENGTHS):
        process = jax.tree.map(lambda leaf, i=i: leaf[i], surrogate.past.process)
        past_y = tasks.y[i, :length]
        standardised = (past_y - past_y.mean()) / past_y.std()
        members.append(by_sklearn(process, tasks.x[i, :length], standardised))
        noises.append(np.exp(process.log_noise_variance))
    weights = np.array([posterior.target_weight, *posterior.past_weights[: len(LENGTHS)]])
    assert (weights > 0.01).sum() >= 2, "the case should mix several members"
    means, variances = (np.array(part) for part in zip(*members, strict=True))
    np.testing.assert_allclose(weights.sum(), 1.0)
    np.testing.assert_allclose(moments.mean, y.mean() + y.std() * weights @ means, rtol=1e-5)
    np.testing.assert_allclose(
        moments.function_variance, y.var() * weights**2 @ variances, rtol=1e-4
    )
    np.testing.assert_allclose(
        moments.noise_variance, np.full(5, y.var() * weights**2 @ np.array(noises)), rtol=1e-6
    )


def test_rank_weighted_gp_identical_past_task_gets_most_of_the_weight(waves, conditioned):
    _, surrogate = waves
    posterior, moments = conditioned(surrogate, wave_run(8))
    assert posterior.past_weights[0] > 0.6
    assert posterior.past_weights[1:].max() < 0.1
    assert np.abs(moments.mean - wave(TEST)).max() < 0.35  # the wave spans 4


def test_rank_weighted_gp_ignores_past_tasks_of_noise(conditioned):
    rng = np.random.default_rng(5)
    _, surrogate = surrogate_of(*[lambda x: rng.normal(size=len(x))] * 3)
    posterior, moments = conditioned(surrogate, wave_run(30))
    assert posterior.target_weight > 0.95
    assert np.abs(moments.mean - wave(TEST)).max() < 0.1


def test_rank_weighted_gp_predictions_follow_the_units_of_the_run(waves, conditioned):
    _, surrogate = waves
    run = wave_run(6)
    scaled_run = Run(run.x, 500.0 * run.y - 3e4, run.length)
    plain, scaled = conditioned(surrogate, run)[1], conditioned(surrogate, scaled_run)[1]
    np.testing.assert_allclose(scaled.mean, 500.0 * plain.mean - 3e4, rtol=1e-6)
    np.testing.assert_allclose(scaled.variance, 500.0**2 * plain.variance, rtol=1e-3)


@pytest.mark.parametrize("y", [[], [1e6]], ids=["none", "one"])
def test_rank_weighted_gp_weights_past_tasks_equally_before_two_points(y, waves, conditioned):
    tasks, surrogate = waves
    posterior, moments = conditioned(surrogate, run_of(np.full((len(y), 2), 0.5), np.array(y)))
    np.testing.assert_allclose(posterior.past_weights, [1 / 3, 1 / 3, 1 / 3, 0.0])
    assert posterior.target_weight == 0.0
    pooled = tasks.y[tasks.mask]
    np.testing.assert_allclose(posterior.y_mean, pooled.mean())
    np.testing.assert_allclose(posterior.y_std, pooled.std())
    assert (moments.function_variance > 0).all() and np.isfinite(moments.mean).all()


@pytest.mark.parametrize("y", [[3.0, 3.0, 3.0], [0.0, 1.0, 1e6]], ids=str)
def test_rank_weighted_gp_awkward_runs_give_finite_predictions(y, waves, conditioned):
    tasks, surrogate = waves
    run = run_of(np.full((len(y), 2), 0.5), np.array(y))  # all at one place
    posterior, moments = conditioned(surrogate, run)
    assert np.isfinite(moments.mean).all() and (moments.variance > 0).all()
    # Equal values have a level but no scale: that of the past stands in for it.
    expected = np.std(y) or tasks.y[tasks.mask].std()
    np.testing.assert_allclose(posterior.y_std, expected)


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(0, 16))
def test_rank_weighted_gp_padded_rows_and_the_capacity_never_matter(
    waves, conditioned, seed, length
):
    _, surrogate = waves
    clean = wave_run(length, seed=seed)
    roomy = wave_run(length, seed=seed, spare=32 - length)
    junk = 1e3 * np.random.default_rng(seed).normal(size=(32, 3))
    seen = roomy.mask
    dirty = Run(
        jnp.where(seen[:, None], roomy.x, junk[:, :2]),
        jnp.where(seen, roomy.y, junk[:, 2]),
        roomy.length,
    )
    posterior, moments = conditioned(surrogate, clean)
    dirty_posterior, dirty_moments = conditioned(surrogate, dirty)
    # Rounding errors may tip one nearly tied pair in one of the 256 draws.
    np.testing.assert_allclose(dirty_posterior.past_weights, posterior.past_weights, atol=0.005)
    np.testing.assert_allclose(dirty_moments.mean, moments.mean, atol=0.01)


def test_rank_weighted_gp_batch_of_runs_is_each_run_by_itself(waves, conditioned):
    _, surrogate = waves
    runs = [wave_run(length, seed=length) for length in (0, 2, 9)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)

    @eqx.filter_jit
    def weights(surrogate, batch):
        return jax.vmap(lambda run: surrogate.condition(run).past_weights)(batch)

    expected = [conditioned(surrogate, run)[0].past_weights for run in runs]
    np.testing.assert_allclose(weights(surrogate, batch), np.stack(expected), atol=0.005)


def test_rank_weighted_gp_samples_paths_and_densities_agree_with_the_moments(waves, conditioned):
    _, surrogate = waves
    posterior, moments = conditioned(surrogate, wave_run(6, seed=3))
    num = 4000

    @eqx.filter_jit
    def draw(posterior, x):
        def along_a_path(key):
            return jax.vmap(posterior.path(x, key=key))(x)

        samples = posterior.sample(x, num, key=KEY)
        paths = jax.lax.map(along_a_path, jax.random.split(KEY, num), batch_size=100)
        y = moments.mean + 1.0
        return samples, paths, jax.vmap(posterior.log_density)(x, y), jax.vmap(posterior.cdf)(x, y)

    samples, paths, log_density, below = draw(posterior, jnp.asarray(TEST))
    std = np.sqrt(moments.function_variance)
    for drawn in (samples, paths):
        error = 4 * std / np.sqrt(num)
        assert (np.abs(drawn.mean(axis=0) - moments.mean) < error).all()
        np.testing.assert_allclose(drawn.std(axis=0), std, rtol=4 / np.sqrt(2 * num))
    np.testing.assert_allclose(np.corrcoef(samples.T), np.corrcoef(paths.T), atol=0.1)
    y, mean, std = moments.mean + 1.0, moments.mean, np.sqrt(moments.variance)
    np.testing.assert_allclose(log_density, scipy.stats.norm.logpdf(y, mean, std))
    np.testing.assert_allclose(below, scipy.stats.norm.cdf(y, mean, std))


# ---- the method


def test_rank_weighted_gp_saved_ensemble_is_the_same_when_loaded(waves, monkeypatch, tmp_path):
    tasks, surrogate = waves
    prior = mp.learn(tasks, method=RankWeightedGP(), seed=0)
    loaded = mp.load(prior.save(tmp_path / "prior"))
    assert eqx.tree_equal(loaded.surrogate, prior.surrogate)
    assert eqx.tree_equal(prior.surrogate, surrogate)  # the same seed, the same result
    assert loaded.method == prior.method


def test_rank_weighted_gp_one_task_is_refused():
    tasks = mp.Tasks.from_runs([(TEST, wave(TEST))], space=SPACE)
    with pytest.raises(ValueError, match="at least 2 tasks"):
        RankWeightedGP().meta_train(tasks, key=KEY)


def test_rank_weighted_gp_search_ranges_name_fields_of_the_method():
    for name, (kind, values) in SEARCH_RANGES.items():
        assert kind == "choice" and getattr(RankWeightedGP(), name) in values
