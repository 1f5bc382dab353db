"""A learned prior as a scikit-learn regressor: its own posterior, in scikit-learn's words."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import metaprior as mp
from metaprior.adapters.sklearn import PriorRegressor
from tests.adapters.hand_made import learned, prior_of


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


WIDTH = "fits arrays of another width than the prior's space"
RANGE = "fits points outside of the ranges that the prior knows"
# A regressor with a prior is for one space; scikit-learn's checks bring data of their own.
NOT_OF_THE_SPACE = {
    "check_dict_unchanged": WIDTH,
    "check_dont_overwrite_parameters": WIDTH,
    "check_dtype_object": WIDTH,
    "check_estimators_dtypes": WIDTH,
    "check_estimators_nan_inf": WIDTH,
    "check_estimators_pickle": WIDTH,
    "check_f_contiguous_array_estimator": WIDTH,
    "check_fit2d_1feature": WIDTH,
    "check_fit2d_1sample": WIDTH,
    "check_fit2d_predict1d": WIDTH,
    "check_fit_check_is_fitted": RANGE,
    "check_fit_idempotent": RANGE,
    "check_fit_score_takes_y": WIDTH,
    "check_methods_sample_order_invariance": WIDTH,
    "check_methods_subset_invariance": WIDTH,
    "check_n_features_in": RANGE,
    "check_n_features_in_after_fitting": WIDTH,
    "check_pipeline_consistency": WIDTH,
    "check_positive_only_tag_during_fit": WIDTH,
    "check_regressor_data_not_an_array": WIDTH,
    "check_regressors_int": WIDTH,
    "check_regressors_no_decision_function": WIDTH,
    "check_regressors_train": WIDTH,
    "check_supervised_y_2d": WIDTH,
}


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
def test_regressor_with_a_prior_passes_all_checks_whose_data_lie_in_its_space():
    space = mp.Space(a=mp.Real(-10.0, 10.0), b=mp.Real(-10.0, 10.0))
    regressor = PriorRegressor(prior_of(learned(0, 2), space=space))
    results = check_estimator(regressor, on_fail=None, expected_failed_checks=NOT_OF_THE_SPACE)
    assert not {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert sum(r["status"] == "passed" for r in results) == 23
    # Each of the others fails for the reason given, and none of them passes unnoticed.
    expected = [r for r in results if r["status"] == "xfail"]
    assert {r["check_name"] for r in expected} == NOT_OF_THE_SPACE.keys()
    for result in expected:
        causes = f"{result['exception']} {result['exception'].__cause__}"
        assert re.search("for a space of 2|outside|raised ValueError|inf in fit", causes)


def test_regressor_refuses_sparse_and_empty_data(hill_prior):
    points, values = np.array([[0.3, 6.0], [-0.9, 1.0]]), [1.0, 2.0]
    fitted = PriorRegressor(hill_prior).fit(points, values)
    for take in (lambda x: fitted.fit(x, values), fitted.predict):
        with pytest.raises(TypeError, match="needs dense data; give `X.toarray"):
            take(csr_array(points))
    with pytest.raises(ValueError, match=r"0 sample\(s\) .* call `predict` without `fit`"):
        fitted.fit(np.zeros((0, 2)), [])
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(2, 0\)\)"):
        fitted.fit(np.zeros((2, 0)), values)


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
