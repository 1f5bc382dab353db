"""Beliefs over spaces with conditions: what does not exist never matters, to any of them."""

import pickle

import jax
import numpy as np
import pytest

import metaprior as mp
from metaprior.data import fit_standardiser, run_of
from metaprior.methods import AveragedGP, FixedGP, Guarded

SPACE = mp.Space(
    kind=mp.Categorical(["tree", "linear"]),
    depth=mp.Integer(1, 8, when={"kind": ["tree"]}),
    eta=mp.Real(1e-3, 1.0, log=True, when={"kind": ["tree"]}),
    alpha=mp.Real(0.0, 1.0, when={"kind": ["linear"]}),
    solver=mp.Categorical(["a", "b", "c"], when={"kind": ["linear"]}),
    share=mp.Real(0.0, 1.0),
)
D = SPACE.num_columns
assert SPACE.conditions is not None
CONDITIONS = SPACE.conditions


def points_and_values(seed, num):
    rng = np.random.default_rng(seed)
    points = SPACE.decode(rng.uniform(size=(num, D)))
    return points, [p["share"] + p.get("alpha", 0.3) + np.sin(seed) for p in points]


def prior_of(method):
    tasks = mp.Tasks.from_runs([points_and_values(seed, 9) for seed in range(4)], space=SPACE)
    return mp.learn(tasks, method=method, seed=0)


@pytest.fixture(scope="module", params=[FixedGP(lengthscale=0.4), Guarded(FixedGP()), AveragedGP()])
def prior(request):
    return prior_of(request.param)


def test_conditional_belief_ignores_what_does_not_exist(prior):
    rng = np.random.default_rng(7)
    points, values = points_and_values(7, 6)
    x, y = SPACE.encode(points), np.array(values)
    queries = SPACE.encode(points_and_values(8, 5)[0])

    def dirty(clean):
        return np.where(CONDITIONS.active(clean), clean, rng.uniform(size=clean.shape))

    clean = prior.belief.condition(x, y)
    other = prior.belief.condition(dirty(x), y)
    for expected, found in zip(clean.slopes(queries), other.slopes(dirty(queries)), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(other.covariance(dirty(queries)), clean.covariance(queries))
    assert prior.belief.trust(dirty(x), y) == prior.belief.trust(x, y)


def test_conditional_belief_has_the_slopes_of_its_moments(prior):
    points, values = points_and_values(1, 7)
    believed = prior.belief.condition(SPACE.encode(points), np.array(values))
    queries = SPACE.encode(points_and_values(2, 6)[0])
    _, mean, variance = believed.slopes(queries)
    exists = CONDITIONS.active(queries)
    assert (mean[~exists] == 0.0).all()
    step = 1e-5
    for column in np.flatnonzero(SPACE.is_real | SPACE.is_integer):
        aside = np.zeros(D)
        aside[column] = step
        ahead, behind = believed.moments(queries + aside), believed.moments(queries - aside)
        for slopes, name in ((mean, "mean"), (variance, "function_variance")):
            expected = (getattr(ahead, name) - getattr(behind, name)) / (2 * step)
            np.testing.assert_allclose(
                slopes[exists[:, column], column],
                expected[exists[:, column]],
                rtol=1e-4,
                atol=1e-6,
            )


def test_conditional_belief_equals_the_compiled_posterior():
    prior = prior_of(FixedGP(lengthscale=0.4))
    points, values = points_and_values(3, 8)
    x, y = SPACE.encode(points), np.array(values)
    queries = SPACE.encode(points_and_values(4, 5)[0])
    believed = prior.belief.condition(x, y).moments(queries)
    compiled = prior.surrogate.condition(run_of(SPACE.embed(x), y))
    moments = jax.vmap(compiled.moments)(SPACE.embed(queries))
    np.testing.assert_allclose(believed.mean, moments.mean, rtol=1e-8)
    np.testing.assert_allclose(believed.function_variance, moments.function_variance, rtol=1e-8)


def test_conditional_belief_compares_branches_by_what_they_share():
    """After a value at one tree, all linear models of the same share are equally correlated."""
    prior = prior_of(FixedGP(lengthscale=1.0))
    linears = [
        {"kind": "linear", "alpha": alpha, "solver": solver, "share": 0.4}
        for alpha in (0.0, 0.2, 0.9)
        for solver in "abc"
    ]
    elsewhere = [{**point, "share": 0.9} for point in linears]
    tree = {"kind": "tree", "depth": 7, "eta": 0.9, "share": 0.4}
    covariance = prior.condition([], []).covariance([tree, *linears, *elsewhere])[0]
    np.testing.assert_allclose(covariance[1:10], covariance[1], rtol=1e-12)
    np.testing.assert_allclose(covariance[10:], covariance[10], rtol=1e-12)
    assert covariance[1] > 1.1 * covariance[10] > 0.0


def test_conditional_standardiser_takes_no_scale_from_absence():
    """However rare a branch, its columns are scaled as uniform ones; the others follow the data."""
    rng = np.random.default_rng(0)
    rare = [
        {"kind": "linear", "alpha": 0.5, "solver": "a", "share": s} for s in rng.uniform(size=30)
    ]
    rare.append({"kind": "tree", "depth": 2, "eta": 0.1, "share": 0.5})
    tasks = mp.Tasks.from_runs([(rare, rng.normal(size=31))], space=SPACE)
    units = jax.tree.map(np.asarray, fit_standardiser(tasks.x, tasks.y, tasks.mask, SPACE))
    embedded = SPACE.embed(rng.uniform(size=(20_000, D)))
    names = ["kind", "kind", "depth", "eta", "alpha", "solver", "solver", "solver", "share"]
    for column, name in enumerate(names):
        if name in ("depth", "eta", "alpha"):
            assert units.x_mean[column] == 0.5
            assert units.x_std[column] == pytest.approx(12**-0.5)
        if name == "solver":
            assert units.x_std[column] == pytest.approx(np.sqrt(2) / 3)
    assert units.x_mean[8] == pytest.approx(np.mean([p["share"] for p in rare]))
    # What says that a set exists is within two units of the middle, on both sides.
    assert np.max(np.abs((embedded - units.x_mean) / units.x_std)[:, D:]) < 2.0


def test_prior_over_a_conditional_space_is_pickled_as_its_files_hold_it(prior):
    points, values = points_and_values(3, 4)
    back = pickle.loads(pickle.dumps(prior))
    assert jax.tree.structure(back.surrogate) == jax.tree.structure(prior.surrogate)
    for ours, theirs in zip(
        prior.condition(points, values).predict(points),
        back.condition(points, values).predict(points),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
