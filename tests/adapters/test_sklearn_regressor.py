"""A learned prior as a scikit-learn regressor: its own posterior, in scikit-learn's words."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import metaprior as mp
from metaprior.adapters.sklearn import PriorRegressor


@pytest.fixture(scope="module")
def run(hill_runs):
    points, values = hill_runs[-1]
    return points, values


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
def test_regressor_without_a_prior_passes_all_checks_of_estimators():
    results = check_estimator(PriorRegressor(), on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40


def test_regressor_predicts_what_the_prior_does(hill_prior, run):
    points, values = run
    queries = np.array([[0.3, 6.0], [-0.9, 1.0], [0.9, 9.5]])
    fitted = PriorRegressor(hill_prior).fit(points, values)
    expected = hill_prior.condition(points, values)
    mean, std = expected.predict(queries, noiseless=True)
    np.testing.assert_array_equal(fitted.predict(queries), mean)
    np.testing.assert_array_equal(fitted.predict(queries, return_std=True), (mean, std))
    _, covariance = fitted.predict(queries, return_cov=True)
    np.testing.assert_array_equal(covariance, expected.covariance(queries))
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-6)
    assert vars(fitted)["n_features_in_"] == 2


def test_regressor_is_the_prior_before_it_is_fitted(hill_prior):
    queries = [[0.3, 6.0], [-0.9, 1.0]]
    expected, _ = hill_prior.condition([], []).predict(queries)
    np.testing.assert_array_equal(PriorRegressor(hill_prior).predict(queries), expected)
    with pytest.raises(NotFittedError):
        PriorRegressor().predict(queries)


def test_regressor_takes_frames_in_any_order(hill_prior, run):
    points, values = run
    frame = pd.DataFrame({"z": points[:, 1], "x": points[:, 0]})
    by_frame = PriorRegressor(hill_prior).fit(frame, values)
    by_array = PriorRegressor(hill_prior).fit(points, values)
    assert list(vars(by_frame)["feature_names_in_"]) == ["z", "x"]
    np.testing.assert_array_equal(by_frame.predict(frame), by_array.predict(points))


def test_regressor_in_a_pipeline_is_cross_validated(hill_prior, run):
    points, values = run
    centred = points - [0.0, 5.0]
    shift = FunctionTransformer(lambda x: x + [0.0, 5.0])
    pipeline = make_pipeline(shift, PriorRegressor(hill_prior))
    scores = cross_val_score(pipeline, centred, values, cv=4)
    constant = cross_val_score(PriorRegressor(hill_prior), points, np.ones(len(values)), cv=4)
    assert scores.shape == (4,) and np.isfinite(scores).all()
    # Six hills of one family were learned from: two held-out points of one are predicted.
    assert np.median(scores) > 0.5 and constant.shape == (4,)


def test_regressor_samples_have_its_moments_and_repeat(hill_prior, run):
    points, values = run
    fitted = PriorRegressor(hill_prior).fit(points[:3], values[:3])
    queries = np.array([[0.3, 6.0], [-0.9, 1.0]])
    samples = fitted.sample_y(queries, 4000, random_state=1)
    mean, std = fitted.predict(queries, return_std=True)
    assert samples.shape == (2, 4000)
    np.testing.assert_array_less(np.abs(samples.mean(axis=1) - mean), 5.0 * std / np.sqrt(4000))
    np.testing.assert_allclose(samples.std(axis=1), std, rtol=0.1)
    np.testing.assert_array_equal(samples, fitted.sample_y(queries, 4000, random_state=1))


def test_regressor_is_cloned_copied_and_pickled(hill_prior, run):
    points, values = run
    regressor = PriorRegressor(hill_prior)
    assert not hasattr(clone(regressor.fit(points, values)), "posterior_")
    expected = regressor.predict(points)
    for again in (copy.deepcopy(regressor), pickle.loads(pickle.dumps(regressor))):
        np.testing.assert_array_equal(again.predict(points), expected)


def test_regressor_minimises_in_the_users_sign(hill_prior, run):
    points, values = run
    loss = mp.Prior(hill_prior.space, "minimize", hill_prior.contents)
    np.testing.assert_allclose(
        PriorRegressor(loss).fit(points, -values).predict(points),
        -PriorRegressor(hill_prior).fit(points, values).predict(points),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("points", "values", "message"),
    [
        (np.zeros((1, 3)), [1.0], r"shape \(1, 3\) for a space of 2"),
        ([[0.0, 1.0, 2.0]], [1.0], "not a point of 2"),
        ([[0.0, 11.0]], [1.0], "outside"),
        ([[0.0, np.nan]], [1.0], "nan"),
        ([[0.0, 1.0]], [np.inf], "value in row 0 is inf"),
        ([[0.0, 1.0]], [1.0, 2.0], "1 points but 2 values"),
        (pd.DataFrame({"x": [0.0], "width": [1.0]}), [1.0], "'z'"),
    ],
)
def test_regressor_says_what_is_wrong(hill_prior, points, values, message):
    with pytest.raises(ValueError, match=message) as error:
        PriorRegressor(hill_prior).fit(points, values)
    assert "\n" not in str(error.value)


def test_regressor_gives_std_or_covariance(hill_prior):
    with pytest.raises(ValueError, match="ask for one"):
        PriorRegressor(hill_prior).predict([[0.0, 1.0]], return_std=True, return_cov=True)


def test_regressor_says_what_a_prior_is():
    with pytest.raises(TypeError, match="'prior/'; give a prior"):
        PriorRegressor("prior/").fit([[0.0, 1.0]], [1.0])
