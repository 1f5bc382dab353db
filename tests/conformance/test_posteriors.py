"""What every surrogate promises about one task: its posterior after any run."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Float
from scipy.integrate import cumulative_trapezoid, trapezoid

from metaprior.data import Run
from tests.conformance.cases import (
    CAPACITY,
    QUERIES,
    SPACE,
    TRACES,
    assert_same,
    condition,
    moments,
    predict,
    unseen_run,
)

REPEATED = Run(
    jnp.asarray(np.tile(QUERIES[:2], (CAPACITY // 2, 1))),
    jnp.asarray(np.linspace(-1.0, 2.0, CAPACITY)),
    jnp.asarray(7),
)
RUNS = {
    "no points": unseen_run(0),
    "one point": unseen_run(1),
    "many points": unseen_run(CAPACITY),
    "repeated points": REPEATED,
    "constant values": eqx.tree_at(lambda r: r.y, unseen_run(7), jnp.ones(CAPACITY)),
    "an outlier": eqx.tree_at(lambda r: r.y, unseen_run(7), unseen_run(7).y.at[3].set(-1e4)),
}


@eqx.filter_jit
def bound_gradients(posterior, x):
    """Slopes of a confidence bound: what a search for the next query follows."""

    def bound(x):
        at_x = posterior.moments(x)
        return at_x.mean + 2.0 * jnp.sqrt(at_x.variance)

    return jax.vmap(jax.grad(bound))(x)


@pytest.mark.parametrize("kind", RUNS)
def test_posterior_any_run_gives_finite_moments_and_slopes(trained, kind):
    posterior = condition(trained.surrogate, RUNS[kind])
    for x in (jnp.asarray(QUERIES), RUNS[kind].x):
        found = moments(posterior, x)
        assert np.isfinite(found.mean).all()
        assert (np.asarray(found.function_variance) > 0).all()
        assert (np.asarray(found.noise_variance) >= 0).all()
        assert np.isfinite(found.variance).all()
        assert np.isfinite(bound_gradients(posterior, x)).all()


def test_posterior_results_have_the_promised_shapes_in_double_precision(trained):
    x, y, key = jnp.asarray(QUERIES), jnp.asarray(0.0), jr.key(0)

    def everything(run):
        posterior = trained.surrogate.condition(run)
        at_one = (posterior.log_density(x[0], y), posterior.cdf(x[0], y))
        path = posterior.path(x, key=key)
        return (*posterior.moments(x[0]), *at_one, path(x[0])), posterior.sample(x, 3, key=key)

    scalars, samples = jax.eval_shape(everything, unseen_run(2))
    assert [s.shape for s in scalars] == [()] * 6
    assert samples.shape == (3, CAPACITY)
    assert {s.dtype for s in (*scalars, samples)} == {jnp.dtype("float64")}


def test_posterior_order_of_the_observations_does_not_matter(trained):
    run = unseen_run(9)
    order = np.concatenate([np.random.default_rng(0).permutation(9), np.arange(9, CAPACITY)])
    permuted = Run(run.x[order], run.y[order], run.length)
    expected = predict(trained.surrogate, run)
    assert_same(predict(trained.surrogate, permuted), expected, 1e-6)


def test_posterior_padded_rows_never_matter(trained):
    junk = 1e3 * np.random.default_rng(0).normal(size=(CAPACITY, SPACE.num_columns))
    for num in (0, 1, 9):
        run = unseen_run(num)
        mask = np.asarray(run.mask)
        x = jnp.asarray(np.where(mask[:, None], run.x, junk))
        dirty = Run(x, jnp.asarray(np.where(mask, run.y, junk[:, 0])), run.length)
        clean = predict(trained.surrogate, run)
        for mine, theirs in zip(predict(trained.surrogate, dirty), clean, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_posterior_growing_run_compiles_once(trained):
    predict(trained.surrogate, unseen_run(0))
    compiled = len(TRACES)
    for num in range(CAPACITY + 1):
        predict(trained.surrogate, unseen_run(num))
    assert len(TRACES) == compiled


@pytest.mark.parametrize("num", [1, 9])
def test_posterior_mean_moves_to_the_data_and_its_variance_shrinks(trained, num):
    """Compared with the prior at the observed points of a few tasks."""
    missed, shrinking = [], []
    for seed in range(100, 108):
        run = unseen_run(num, seed)
        seen = np.asarray(run.mask)
        pair = [predict(trained.surrogate, r, run.x) for r in (unseen_run(0), run)]
        variances = [np.asarray(m.function_variance)[seen] for m in pair]
        missed.append([np.mean(np.asarray(m.mean - run.y)[seen] ** 2) for m in pair])
        shrinking.append(variances[1] / variances[0])
    before, after = np.array(missed).T
    if trained.case.contracts == "everywhere":
        assert (after < before).all()
        assert (np.array(shrinking) < 1.0).all()
    if trained.case.contracts == "on average":
        assert np.mean(np.log(shrinking)) < 0.0
    # One value ranks nothing: an ensemble that weighs by ranks cannot have learned from it.
    if trained.case.contracts != "no" or num > 1:
        assert after.mean() < 0.8 * before.mean()


@eqx.filter_jit
def densities(posterior, x, y):
    """Log density and distribution function at each point and each of its values."""

    def at_all(function):
        return jax.vmap(jax.vmap(function, (None, 0)))(x, y)

    return at_all(posterior.log_density), at_all(posterior.cdf)


@pytest.mark.parametrize("num", [0, 5])
def test_posterior_density_has_its_moments(trained, num):
    """Of an observation: noise is part of it."""
    posterior = condition(trained.surrogate, unseen_run(num))
    expected = predict(trained.surrogate, unseen_run(num))
    mean = np.asarray(expected.mean)[:3, None]
    std = np.sqrt(np.asarray(expected.variance))[:3, None]
    y = mean + std * np.linspace(-12.0, 12.0, 6001)
    log_density, below = (np.asarray(v) for v in densities(posterior, QUERIES[:3], y))
    density = np.exp(log_density)
    np.testing.assert_allclose(trapezoid(density, y), 1.0, atol=1e-3)
    mass = cumulative_trapezoid(density, y, initial=0.0)
    np.testing.assert_allclose(below, mass, atol=1e-3)
    found = trapezoid(density * y, y)
    np.testing.assert_allclose((found - mean[:, 0]) / std[:, 0], 0.0, atol=1e-3)
    spread = trapezoid(density * (y - mean) ** 2, y)
    np.testing.assert_allclose(spread, std[:, 0] ** 2, rtol=1e-3)


NUM_DRAWS = 2000
# The first point twice: one function has one value there.
DRAWN_AT = QUERIES[np.array([0, 0, 1, 9])]
STEP = 1e-4


def a_line() -> np.ndarray:
    """Points along the real column, each with its neighbours at a small distance."""
    middle = np.tile(QUERIES[3], (21, 1))
    middle[:, 0] = np.linspace(0.1, 0.9, 21)
    neighbours = STEP * np.eye(SPACE.num_columns)[0]
    return np.concatenate([middle - neighbours, middle, middle + neighbours])


class Drawn(NamedTuple):
    """Functions drawn from a posterior: values of many, and one of them along a line."""

    samples: Float[Array, "num points"]
    on_paths: Float[Array, "num points"]
    line: Float[Array, " line"]
    slopes: Float[Array, "line d"]


@eqx.filter_jit
def draw(posterior, key) -> Drawn:
    x, keys = jnp.asarray(DRAWN_AT), jr.split(key, NUM_DRAWS)
    path = posterior.path(jnp.asarray(QUERIES), key=key)
    return Drawn(
        posterior.sample(x, NUM_DRAWS, key=key),
        jax.vmap(lambda key: jax.vmap(posterior.path(x, key=key))(x))(keys),
        *jax.vmap(jax.value_and_grad(path))(jnp.asarray(a_line())),
    )


@pytest.mark.parametrize("num", [0, 5])
def test_posterior_samples_and_paths_have_the_moments_of_the_function(trained, num):
    """Within five standard errors."""
    run = unseen_run(num)
    drawn = draw(condition(trained.surrogate, run), jr.key(0))
    expected = predict(trained.surrogate, run, np.resize(DRAWN_AT, QUERIES.shape))
    mean, variance = (np.asarray(v)[:4] for v in (expected.mean, expected.function_variance))
    latents = trained.case.num_latents
    share = 1.0 / NUM_DRAWS + (1.0 / latents if latents else 0.0)
    for values in (np.asarray(drawn.samples), np.asarray(drawn.on_paths)):
        distance = np.abs(values.mean(axis=0) - mean)
        np.testing.assert_array_less(distance, 5 * np.sqrt(variance * share))
        squares = (values - mean) ** 2
        distance = np.abs(squares.mean(axis=0) - variance)
        np.testing.assert_array_less(distance, 5 * squares.std(axis=0) * np.sqrt(share))
        assert np.std(values[:, 0] - values[:, 1]) < 0.05 * np.sqrt(variance[0])


def test_posterior_path_is_one_smooth_function(trained):
    posterior = condition(trained.surrogate, unseen_run(5))
    drawn = draw(posterior, jr.key(0))
    assert np.isfinite(drawn.line).all() and np.isfinite(drawn.slopes).all()
    left, _, right = np.split(np.asarray(drawn.line), 3)
    slope = np.split(np.asarray(drawn.slopes)[:, 0], 3)[1]
    np.testing.assert_allclose((right - left) / (2 * STEP), slope, atol=1e-3 * np.abs(slope).max())


def test_posterior_key_decides_what_is_drawn(trained):
    posterior = condition(trained.surrogate, unseen_run(5))
    first, again, other = (draw(posterior, jr.key(seed)) for seed in (0, 0, 1))
    for mine, same, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(mine, same)
        assert not np.allclose(mine, different)


@eqx.filter_jit
def joint(posterior, x, key):
    return posterior.covariance(x), posterior.sample(x, NUM_DRAWS, key=key)


@pytest.mark.parametrize("num", [0, 5])
def test_posterior_covariance_is_that_of_the_function(trained, num):
    """Its diagonal is the variance, and draws agree with it within five standard errors."""
    run = unseen_run(num)
    covariance, samples = map(
        np.asarray, joint(condition(trained.surrogate, run), jnp.asarray(QUERIES), jr.key(0))
    )
    variance = np.asarray(predict(trained.surrogate, run).function_variance)
    largest = variance.max()
    np.testing.assert_allclose(np.diag(covariance), variance, rtol=1e-8, atol=1e-10 * largest)
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-12 * largest)
    assert np.linalg.eigvalsh(covariance).min() > -1e-10 * len(QUERIES) * largest
    latents = trained.case.num_latents
    share = 1.0 / NUM_DRAWS + (1.0 / latents if latents else 0.0)
    centred = samples - samples.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error = np.sqrt(products.var(axis=0) * share) + 1e-8 * largest
    np.testing.assert_array_less(np.abs(products.mean(axis=0) - covariance), 5 * error)
