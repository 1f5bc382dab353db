"""Task features: their codes, what is refused, and tasks that have them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metaprior as mp
from metaprior.data import TaskFeatures, checked_bounds

SPACE = mp.Space(x=mp.Real(0.0, 1.0), act=mp.Categorical(["relu", "tanh"]))
RUN = ([{"x": 0.25, "act": "tanh"}, {"x": 0.5, "act": "relu"}], [1.0, 2.0])
finite = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def tasks_with(features, runs=None, **options):
    runs = [RUN] * len(features) if runs is None else runs
    return mp.Tasks.from_runs(runs, space=SPACE, features=features, **options)


def features_with(features) -> TaskFeatures:
    return tasks_with(features).features


def test_features_codes_of_numbers_are_places_in_the_past_range():
    features = features_with([{"size": 2.0}, {"size": 6.0}, {"size": 3.0}])
    assert features.names == ("size",) and features.num_columns == 1
    for size, place in ((2.0, 0.0), (3.0, 0.25), (6.0, 1.0)):
        np.testing.assert_allclose(features.code({"size": size}), [place])
    # Outside: 1 + s tanh((u - 1) / s), s = 0.25, and the mirror image below.
    np.testing.assert_allclose(features.code({"size": 6.4}), [1.0 + 0.25 * math.tanh(0.4)])
    np.testing.assert_allclose(features.code({"size": 1.6}), [-0.25 * math.tanh(0.4)])


def test_features_take_numbers_over_more_than_two_decades_on_a_log_scale():
    wide = features_with([{"size": 10}, {"size": 1_000}, {"size": 100_000}])
    np.testing.assert_allclose(wide.code({"size": 1_000}), [0.5])
    narrow = features_with([{"size": 10}, {"size": 505}, {"size": 1_000}])
    np.testing.assert_allclose(narrow.code({"size": 505}), [0.5])
    # Not all positive: no logarithm. And a number that has none lies far below.
    zero = features_with([{"size": 0}, {"size": 50_000}, {"size": 100_000}])
    np.testing.assert_allclose(zero.code({"size": 50_000}), [0.5])
    np.testing.assert_allclose(wide.code({"size": 0}), [-0.25])


@settings(max_examples=200, deadline=None)
@given(numbers=st.lists(finite, min_size=2, max_size=6, unique=True), asked=st.lists(finite))
def test_features_codes_keep_the_order_of_numbers_and_stay_near_the_range(numbers, asked):
    features = features_with([{"size": number} for number in numbers])
    codes = [features.code({"size": number}).item() for number in sorted([*numbers, *asked])]
    assert all(one <= other for one, other in zip(codes, codes[1:], strict=False))
    assert -0.25 <= codes[0] and codes[-1] <= 1.25
    own = [features.code({"size": number}).item() for number in numbers]
    assert min(own) == 0.0 and max(own) == 1.0
    np.testing.assert_allclose(features.code({}), [np.mean(own)], atol=1e-12)


def test_features_codes_of_texts_and_bools_are_one_hot_and_unknown_ones_the_shares():
    told = [{"site": "B", "wet": True}, {"site": "A", "wet": False}, {"site": "B"}]
    features = features_with([*told, {"wet": True}])
    np.testing.assert_allclose(features.code({"site": "A", "wet": True}), [1, 0, 0, 1])
    np.testing.assert_allclose(features.code({"site": "C"}), [1 / 3, 2 / 3, 1 / 3, 2 / 3])
    np.testing.assert_allclose(features.code(None), [1 / 3, 2 / 3, 1 / 3, 2 / 3])


def test_features_that_say_nothing_are_known_and_have_no_column():
    told = [{"site": "A", "id": f"run {i}", "size": i, "hall": None} for i in range(3)]
    features = features_with(told)
    assert [feature.name for feature in features.used] == ["size"]
    reasons = dict(features.unused)
    assert reasons.keys() == {"site", "id", "hall"}
    assert "the same in all" in reasons["site"] and "another text" in reasons["id"]
    assert "not known" in reasons["hall"]
    assert features.code({"site": "Z", "id": "new", "size": 1}).shape == (1,)


def test_features_come_back_from_json():
    features = features_with(
        [{"n": 1, "s": "a", "b": True}, {"n": 1000, "s": "b"}, {"n": 7, "b": False}]
    )
    features = features.without({"s": "it rains"})
    written = json.loads(json.dumps(features.to_json()))
    assert TaskFeatures.from_json(written) == features
    told = {"n": 50, "b": True, "s": "a"}
    np.testing.assert_array_equal(TaskFeatures.from_json(written).code(told), features.code(told))


def test_tasks_with_feature_columns_repeat_the_code_in_every_row_and_pad_with_zeros():
    longer = (RUN[0] * 3, RUN[1] * 3)
    tasks = tasks_with([{"size": 1.0}, {"size": 3.0}, {}], [RUN, longer, RUN])
    seen = tasks.with_feature_columns(tasks.features)
    assert seen.space.names == ("x", "act", "size")
    assert seen.space.num_columns == tasks.space.num_columns + 1
    np.testing.assert_array_equal(seen.x[:, :, :3], tasks.x)
    codes = np.where(tasks.mask, np.array([[0.0], [1.0], [0.5]]), 0.0)
    np.testing.assert_array_equal(seen.x[:, :, 3], codes)


def test_tasks_keep_their_features_in_subsets_and_when_joined():
    tasks = tasks_with([{"size": 1}, {"size": 2}, {"size": 5}])
    assert tasks.subset([2, 0]).feature_values == ({"size": 5}, {"size": 1})
    plain = mp.Tasks.from_runs([RUN], space=SPACE)
    joined = tasks + plain
    assert joined.feature_values == ({"size": 1}, {"size": 2}, {"size": 5}, {})
    assert (plain + plain).feature_values == () and plain.features == TaskFeatures()
    assert "features size" in repr(tasks) and "features" not in repr(plain)
    with pytest.raises(ValueError, match="task 3: the feature 'size' is 'many', and other tasks"):
        tasks.join(tasks_with([{"size": "many"}]))


@pytest.mark.parametrize(
    "features, problem",
    [
        ([{"n": 1}], "Received 1 features for 2 runs; give one dict"),
        ([{"n": 1}, {"n": "many"}], "task 1: the feature 'n' is 'many', and other tasks have numb"),
        ([{"n": "few"}, {"n": 3}], "task 1: the feature 'n' is 3, and other tasks have texts"),
        ([{"n": True}, {"n": 3}], "task 1: the feature 'n' is 3, and other tasks have True or F"),
        ([{"n": 1}, {"n": math.inf}], "task 1: the feature 'n' is inf; give a finite number"),
        ([{"n": 1}, {"n": [1, 2]}], "task 1: the feature 'n' is [1, 2]; give a number, a text"),
        ([{"n": 1}, {"x": 2}], "task 1: the feature 'x' is called like a dimension"),
    ],
)
def test_tasks_name_task_and_feature_of_bad_features(features, problem):
    with pytest.raises(ValueError) as raised:
        tasks_with(features, [RUN, RUN])
    assert str(raised.value).startswith(problem), raised.value


def test_tasks_refuse_features_that_are_no_dicts():
    with pytest.raises(TypeError, match="task 1: received 7 as features; give a dict"):
        tasks_with([{"n": 1}, 7])
    with pytest.raises(ValueError, match="one dict of features for each run"):
        tasks_with({"n": 1}, [RUN])


def test_features_name_what_is_wrong_with_a_new_task():
    features = features_with([{"n": 1, "s": "a"}, {"n": 2, "s": "b"}, {"n": 2, "s": "b"}])
    with pytest.raises(ValueError, match="study 'a': there is no feature 'm' among those"):
        features.code({"m": 3}, where="study 'a'")
    with pytest.raises(ValueError, match="the feature 'n' is 'two', and other tasks have numbers"):
        features.code({"n": "two"})
    with pytest.raises(ValueError, match="the feature 's' is 3, and other tasks have texts"):
        features.code({"s": 3})


def test_tasks_take_nan_and_numpy_scalars_as_features():
    tasks = tasks_with([{"n": np.int64(3)}, {"n": float("nan")}, {"n": np.float32(5)}])
    assert tasks.feature_values == ({"n": 3}, {"n": None}, {"n": 5.0})


def test_tasks_refuse_values_beyond_their_bounds():
    assert tasks_with([{}], value_bounds=(0, 2)).value_bounds == (0.0, 2.0)
    with pytest.raises(ValueError, match="task 0, row 1, y: received 2, which is not between the"):
        tasks_with([{}], value_bounds=(0, 1.5))
    for bounds in ((2, 1), (0,), (0, math.inf), "ab", 3):
        with pytest.raises(ValueError, match="give a lower and a higher number"):
            checked_bounds(bounds)
    with pytest.raises(ValueError, match="cannot be joined; build both with the same bounds"):
        tasks_with([{}], value_bounds=(0, 2)).join(tasks_with([{}]))
