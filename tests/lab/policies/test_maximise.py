"""The maximiser against brute force: dense grids, and every value of what is discrete."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from metaprior.data import Categorical, Integer, Real, Run, Space, empty_run, run_of
from metaprior.lab.policies import CompiledConfidenceBound, CompiledSearch, maximise
from metaprior.lab.policies._maximise import maximise_over
from metaprior.methods import FixedGP

MIXED = Space(
    x=Real(0.0, 1.0), k=Integer(1, 6), c=Categorical(["a", "b", "c"]), z=Real(1e-3, 1.0, log=True)
)


def unit_grid(per_axis, d):
    axes = np.meshgrid(*[np.linspace(0.0, 1.0, per_axis)] * d, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)


@partial(jax.jit, static_argnums=0)
def found_and_grid_best(d, run, grid, key):
    """Score of the maximum found, and the best score on a grid, of a fixed GP's UCB."""
    space = Space(**{f"x{j}": Real(0.0, 1.0) for j in range(d)})
    posterior = FixedGP(lengthscale=0.3).from_scratch(d).condition(run)
    search = CompiledSearch()
    candidates = search.candidates(space, run, key=key)
    score = CompiledConfidenceBound().score(posterior, run, candidates, key=key)
    return score(maximise(score, space, candidates, search)), jnp.max(jax.vmap(score)(grid))


@pytest.mark.slow
@pytest.mark.parametrize("d, per_axis", [(1, 40_000), (2, 200)])
def test_maximise_reaches_the_best_of_a_dense_grid(d, per_axis):
    grid = unit_grid(per_axis, d)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(3 + 2 * seed, d))
        run = run_of(x, np.sin(7 * x).sum(axis=1) + 0.1 * rng.normal(size=len(x)))
        found, best = found_and_grid_best(d, run, grid, jr.key(seed))
        assert found >= best - 1e-6


def interacting(u, weights):
    """Smooth in the reals, with a peak whose place depends on the integer and the category.

    Columns of `MIXED`: x, position of k, one-hot of c, position of z."""
    place = 0.5 + 0.4 * jnp.sin(weights[0] * u[1] * 6 + u[2:5] @ weights[1:4])
    bump = jnp.exp(-20 * (u[0] - place) ** 2 - 10 * (u[5] - u[1]) ** 2)
    return bump + u[2:5] @ weights[4:7] + 0.3 * jnp.cos(weights[7] * u[1] * 5)


@jax.jit
def best_of_mixed(weights, key):
    def score(u):
        return interacting(u, weights)

    search = CompiledSearch()
    candidates = search.candidates(MIXED, empty_run(4, MIXED.num_columns), key=key)
    x = maximise(score, MIXED, candidates, search)
    return x, score(x)


@jax.jit
def best_of_enumeration(weights, points):
    return jnp.max(jax.vmap(lambda u: interacting(u, weights))(points))


@pytest.mark.slow
def test_maximise_on_a_mixed_space_matches_enumeration():
    """All 18 combinations of integer and category, each with a grid of the two reals."""
    reals = unit_grid(41, 2)
    levels = MIXED.encode([{"x": 0, "k": k, "c": c, "z": 1} for k in range(1, 7) for c in "abc"])
    points = np.concatenate([np.tile(level, (len(reals), 1)) for level in levels])
    points[:, 0], points[:, 5] = np.tile(reals, (len(levels), 1)).T
    for seed in range(6):
        weights = jnp.asarray(np.random.default_rng(seed).uniform(0.3, 1.5, 8))
        x, found = best_of_mixed(weights, jr.key(seed))
        np.testing.assert_array_equal(MIXED.snap(x), x)
        assert found >= best_of_enumeration(weights, points) - 1e-6


def test_maximise_searches_a_purely_discrete_space_completely():
    """From few candidates: steps to neighbours must do what they miss."""
    space = Space(a=Integer(0, 20), b=Integer(0, 20))
    search = CompiledSearch(
        num_global=64, num_local=0, num_starts=4, neighbour_rounds=20, num_steps=1
    )
    every = space.encode([{"a": a, "b": b} for a in range(21) for b in range(21)])

    @jax.jit
    def best(top, key):
        def score(u):
            return -jnp.sum(jnp.abs(u - top))

        candidates = search.candidates(space, empty_run(4, 2), key=key)
        return maximise(score, space, candidates, search), jax.vmap(score)(every)

    for seed in range(5):
        top = np.random.default_rng(seed).uniform(size=2)
        x, scores = best(top, jr.key(seed))
        np.testing.assert_allclose(x, every[np.argmax(scores)], atol=1e-12)


@pytest.mark.parametrize("num_starts", [1, 2, 5])
def test_maximise_takes_any_number_of_starts(num_starts):
    space = Space(x=Real(0.0, 1.0))
    candidates = jnp.linspace(0.05, 0.95, 8)[:, None]
    search = CompiledSearch(num_starts=num_starts)
    x = jax.jit(lambda c: maximise(lambda u: -((u[0] - 0.3) ** 2), space, c, search))(candidates)
    np.testing.assert_allclose(x, [0.3], atol=1e-6)


def test_maximise_over_takes_the_best_allowed_candidate():
    candidates = jnp.array([[0.1], [0.9], [0.5], [0.7]])
    allowed = jnp.array([True, False, True, True])
    assert maximise_over(lambda u: u[0], candidates, allowed) == 3
    assert maximise_over(lambda u: -u[0], candidates, allowed) == 0


def test_maximise_over_scores_50000_candidates_in_bounded_memory():
    """Scored all at once, their distances to 256 observations alone would take 100 MB."""
    observed = jnp.asarray(np.random.default_rng(0).uniform(size=(256, 4)))

    def score(u):
        squares = jnp.sum((observed - u[None, :]) ** 2, axis=1)
        return jnp.sum(jnp.sort(jnp.exp(-squares))[:8])

    def scratch_bytes(num):
        shapes = (jax.ShapeDtypeStruct((num, 4), float), jax.ShapeDtypeStruct((num,), bool))
        compiled = jax.jit(lambda c, a: maximise_over(score, c, a)).lower(*shapes).compile()
        analysis = compiled.memory_analysis()
        assert analysis is not None
        return analysis.temp_size_in_bytes

    few, many = scratch_bytes(4096), scratch_bytes(50_000)
    copies = 50_000 * (4 + 2) * 8  # the candidates in blocks, and their scores
    assert few > 4096 * 256 * 8  # the measure sees what one block needs
    assert many < few + 2 * copies


def test_search_candidates_cover_the_space_and_the_best_points():
    search = CompiledSearch(num_global=512, num_local=512)
    run = run_of(np.array([[0.2, 0.2], [0.8, 0.3]]), np.array([-5.0, 3.0]))
    space = Space(x=Real(0.0, 1.0), z=Real(0.0, 1.0))
    points = np.asarray(eqx.filter_jit(search.candidates)(space, run, key=jr.key(0)))
    everywhere, nearby = points[:512], points[512:]
    for column in everywhere.T:
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-3
    distances = np.linalg.norm(nearby[:, None] - run.x[None, :2], axis=2).min(axis=1)
    assert np.median(distances) < 0.1 < np.median(np.linalg.norm(everywhere - 0.2, axis=1))
    assert points.min() >= 0 and points.max() <= 1


def test_search_candidates_of_a_mixed_space_are_valid_points_for_any_run():
    search = CompiledSearch(num_global=64, num_local=64)

    @jax.jit
    def draw(length, key):
        run = Run(jnp.zeros((4, 6)), jnp.zeros(4), length)
        points = search.candidates(MIXED, run, key=key)
        return points, jax.vmap(MIXED.snap)(points)

    for length in (0, 3):
        points, snapped = draw(length, jr.key(length))
        np.testing.assert_array_equal(snapped, points)
        assert len(np.unique(np.asarray(points[:, 1]))) == 6
