"""A prior asked with features of a task: the same as its network given further columns."""

import numpy as np
import pytest

import metaprior as mp
from metaprior.belief import AveragedBelief, Prior
from metaprior.data import TaskFeatures
from metaprior.methods import TrainedContents

RUNS = [([{"x": 0.1}, {"x": 0.9}], [0.0, 1.0])] * 3
X = np.linspace(0.0, 1.0, 7)[:, None]


@pytest.fixture(scope="module")
def space():
    return mp.Space(x=mp.Real(0.0, 1.0))


@pytest.fixture(scope="module")
def features(space):
    told = [{"size": 1.0, "site": "A"}, {"size": 3.0, "site": "B"}, {"site": "A"}]
    return mp.Tasks.from_runs(RUNS, space=space, features=told).features


@pytest.fixture(scope="module")
def prior(space, features):
    """An untrained network that sees three columns of features, behind a guard."""
    method = mp.methods.Guarded(mp.methods.FPacohMap())
    surrogate = method.blank_surrogate(space.num_columns + features.num_columns)
    contents = TrainedContents(method, surrogate)
    return Prior(space, "maximize", contents, features=features, value_bounds=(-0.5, 0.5))


def beside(x, code):
    return np.concatenate([x, np.broadcast_to(code, (len(x), len(code)))], axis=1)


@pytest.mark.parametrize("known", [{"size": 3.0, "site": "B"}, {"size": 9.0}, {}])
@pytest.mark.parametrize("y", [[], [0.3, 0.2]])
def test_prior_with_features_predicts_like_its_network_on_all_columns(prior, features, known, y):
    points = X[: len(y)]
    posterior = prior.condition(points, y, features=known)
    # The network itself, over x and the columns of the features.
    whole = prior.contents.belief(1 + features.num_columns).unguarded
    expected = whole.condition(beside(points, features.code(known)), np.array(y)).moments(
        beside(X, features.code(known))
    )
    mean, std = posterior.predict(X)
    np.testing.assert_allclose(mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(std, np.sqrt(expected.variance), rtol=1e-12)


def test_prior_with_features_has_the_slopes_of_its_predictions(prior):
    conditioned = prior.for_task({"size": 2.5}).belief.condition(X[:2], np.array([0.3, 0.1]))
    at, step = np.array([[0.43]]), 1e-6
    slopes = conditioned.slopes(at)
    above, below = conditioned.moments(at + step), conditioned.moments(at - step)
    assert slopes.mean.shape == (1, 1)
    np.testing.assert_allclose(slopes.mean[0], (above.mean - below.mean) / (2 * step), rtol=1e-5)


def test_prior_predicts_otherwise_for_another_task(prior):
    means = [
        prior.condition([], [], features={"size": size, "site": site}).predict(X)[0]
        for size, site in ((1.0, "A"), (3.0, "A"), (3.0, "B"))
    ]
    assert np.abs(means[0] - means[1]).max() > 1e-3 < np.abs(means[1] - means[2]).max()


def test_prior_falls_back_to_a_gp_that_does_not_see_the_features(prior):
    guarded = prior.for_task({"size": 3.0}).belief
    alone = guarded.settled(0.0)
    assert isinstance(alone, AveragedBelief)
    # Its grid of lengthscales is that of one dimension, and it takes points of one column.
    y = np.array([0.3, 0.1])
    expected = AveragedBelief(0.0, 1.0).condition(X[:2], y).moments(X)
    np.testing.assert_array_equal(alone.condition(X[:2], y).moments(X).mean, expected.mean)


def test_prior_for_a_task_refuses_unknown_features(prior):
    with pytest.raises(ValueError, match="there is no feature 'colour' among those that the prior"):
        prior.for_task({"colour": "red"})
    with pytest.raises(ValueError, match="the feature 'size' is 'big'"):
        prior.condition([], [], features={"size": "big"})
    plain = Prior(prior.space, "maximize", prior.contents)
    with pytest.raises(ValueError, match="there is no feature 'size' .* .none.; leave it out"):
        plain.for_task({"size": 1.0})
    assert prior.for_task({}) is prior


def test_optimizer_asks_in_the_users_space_for_the_best_point_of_its_task(prior):
    rows = [{"x": float(x)} for x in X[:, 0]]
    firsts = {}
    for size in (1.0, 3.0):
        known = {"size": size, "site": "B"}
        optimizer = mp.Optimizer(prior, candidates=rows, features=known, seed=0)
        mean, std = prior.condition([], [], features=known).predict(X)
        firsts[size] = optimizer.ask()
        # The first query is where mean + std is largest: the default bound before any data.
        assert firsts[size] == rows[int(np.argmax(mean + std))]
    free = mp.Optimizer(prior, features={"size": 1.0, "site": "B"}, seed=0).ask()
    assert free.keys() == {"x"} and 0.0 <= free["x"] <= 1.0


def test_posterior_band_is_within_the_bounds_of_the_value(prior):
    posterior = prior.condition([], [])
    mean, std = posterior.predict(X)
    lower, upper = posterior.band(X)
    assert (mean + 1.96 * std).max() > 0.5  # or the test would say nothing
    np.testing.assert_allclose(upper, np.clip(mean + 1.959964 * std, -0.5, 0.5), rtol=1e-6)
    np.testing.assert_allclose(lower, np.clip(mean - 1.959964 * std, -0.5, 0.5), rtol=1e-6)
    free = Prior(prior.space, "maximize", prior.contents, features=prior.features)
    assert free.condition([], []).band(X)[1].max() > 0.5


def test_prior_with_features_is_saved_and_loaded(prior, tmp_path):
    loaded = mp.load(prior.for_task({"size": 3.0}).save(tmp_path / "prior"))
    assert loaded.features == prior.features and loaded.value_bounds == (-0.5, 0.5)
    assert loaded.task == {}  # of one use, not of the prior
    for known in ({}, {"size": 1.2, "site": "B"}):
        expected = prior.condition(X[:2], [0.1, 0.2], features=known).predict(X)
        got = loaded.condition(X[:2], [0.1, 0.2], features=known).predict(X)
        np.testing.assert_array_equal(got, expected)
    card = (tmp_path / "prior" / "README.md").read_text()
    assert "## Task features" in card and "`size`: number, 1 to 3" in card
    assert "The value is between -0.5 and 0.5." in card


def test_prior_names_its_features_and_task(prior):
    text = repr(prior.for_task({"size": 3.0}))
    assert "task features: size, site" in text and "for a task of: size 3.0" in text
    assert "value: between -0.5 and 0.5" in text
    assert "task features" not in repr(Prior(prior.space, "maximize", prior.contents))


def test_prior_without_features_writes_the_file_it_always_wrote(prior, tmp_path):
    plain = Prior(prior.space, "maximize", prior.contents, features=TaskFeatures())
    plain.save(tmp_path / "prior")
    written = (tmp_path / "prior" / "prior.json").read_text()
    assert '"features"' not in written and '"value_bounds"' not in written
