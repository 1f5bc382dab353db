"""Optuna's distributions and dimensions: whatever Optuna suggests has a place, and comes back."""

import math

import optuna
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import metaprior as mp
from metaprior.adapters.histories import as_choice
from metaprior.adapters.optuna._distributions import merged_dimension, nearest_value

optuna.logging.set_verbosity(optuna.logging.ERROR)


@st.composite
def floats(draw):
    kind = draw(st.sampled_from(["plain", "log", "step"]))
    if kind == "log":
        low = draw(st.floats(1e-8, 1e3))
        return FloatDistribution(low, low * draw(st.floats(1.0, 1e6)), log=True)
    low = draw(st.integers(-500, 500)) / 10
    if kind == "plain":
        return FloatDistribution(low, low + draw(st.floats(0.0, 1e4)))
    # In tenths, so that the range is divisible by the step, as Optuna wants it.
    step, count = draw(st.integers(1, 30)), draw(st.integers(0, 40))
    return FloatDistribution(low, round(low + step * count / 10, 6), step=step / 10)


@st.composite
def integers(draw):
    if draw(st.booleans()):
        low = draw(st.integers(1, 50))
        return IntDistribution(low, low + draw(st.integers(0, 10**6)), log=True)
    low, step = draw(st.integers(-(10**6), 10**6)), draw(st.integers(1, 7))
    return IntDistribution(low, low + step * draw(st.integers(0, 100)), step=step)


CHOICES = st.lists(
    st.sampled_from([None, "relu", "tanh", "", "1", True, False, 2, 0.5, math.nan, math.inf]),
    min_size=1,
    max_size=6,
    unique_by=str,
)


def suggested(distribution, seed, count=5):
    """What Optuna's own sampler gives for the distribution."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    return [study.ask({"p": distribution}).params["p"] for _ in range(count)]


def there_and_back(distributions, seed):
    """Every suggestion of every distribution, and what it is after a journey through the space."""
    values = [(d, value) for d in distributions for value in suggested(d, seed)]
    inner = [as_choice(value) for _, value in values]
    assume(len(set(inner)) > 1)
    space = mp.Space(p=merged_dimension(distributions, inner).dimension)
    unit = space.encode([{"p": value} for value in inner])
    assert ((0 <= unit) & (unit <= 1)).all()
    for (distribution, value), point in zip(values, space.decode(unit), strict=True):
        yield distribution, value, nearest_value(point["p"], distribution)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(floats(), integers()), min_size=1, max_size=3), st.integers(0, 10**6))
def test_merged_dimension_and_nearest_value_round_trip_numbers(distributions, seed):
    span = max(d.high for d in distributions) - min(d.low for d in distributions)
    for distribution, value, back in there_and_back(distributions, seed):
        if isinstance(distribution, IntDistribution):
            assert back == value and isinstance(back, int)
        else:
            assert abs(back - value) <= 1e-12 * max(span, abs(value))
            assert distribution.low <= back <= distribution.high


@settings(deadline=None, max_examples=60)
@given(st.lists(CHOICES, min_size=1, max_size=3), st.integers(0, 10**6))
def test_merged_dimension_and_nearest_value_round_trip_choices(lists, seed):
    distributions = [CategoricalDistribution(choices) for choices in lists]
    for _, value, back in there_and_back(distributions, seed):
        # NaN is not equal to itself.
        assert str(back) == str(value) and type(back) is type(value)


F, I = FloatDistribution, IntDistribution  # noqa: E741


@pytest.mark.parametrize(
    ("distributions", "values", "dimension", "remark"),
    [
        ([F(0, 1)], [0.2, 0.3], mp.Real(0, 1), None),
        ([F(0, 1), F(-3, 0.5)], [0.2, 0.3], mp.Real(-3, 1), "has bounds that differ: all of [-3"),
        ([F(1e-4, 1, log=True)], [0.1, 1], mp.Real(1e-4, 1, log=True), None),
        ([F(0.1, 1, log=True), F(0.1, 1)], [0.2, 1], mp.Real(0.1, 1), "on a log scale in some"),
        # A parameter that one study had fixed does not decide on the scale.
        ([F(0.1, 1, log=True), F(2, 2)], [0.2, 2], mp.Real(0.1, 2, log=True), None),
        ([F(0.1, 1, log=True), F(0, 0)], [0.2, 0], mp.Real(0, 1), "on a log scale in some"),
        ([F(1, 1), F(3, 3)], [1.0, 3.0], mp.Real(1, 3), None),
        ([F(0, 1, step=0.25)], [0.25, 1.0], mp.Real(0, 1, step=0.25), None),
        ([F(0, 1, step=0.5), F(-1, 0, step=0.5)], [0, 1.0], mp.Real(-1, 1, step=0.5), "bounds"),
        ([F(0, 1, step=0.5), F(0.25, 1.25, step=0.5)], [0, 1.0], mp.Real(0, 1.25), "bounds"),
        ([F(0, 1, step=0.25), F(0, 1)], [0, 0.3], mp.Real(0, 1), "has steps that differ"),
        ([F(0, 1, step=0.25)], [0, 0.3], mp.Real(0, 1), "has steps that differ, or values between"),
        ([I(2, 8, step=2), I(6, 6)], [2, 6], mp.Integer(2, 8, step=2), None),
        ([I(1, 9, log=True)], [1, 3], mp.Integer(1, 9, log=True), None),
        ([I(0, 9, step=3), I(5, 11)], [3, 11], mp.Integer(0, 11), "bounds that differ"),
        ([I(1, 9), F(1, 9)], [1, 3.5], mp.Real(1, 9), "an integer in some studies and a float"),
        ([I(0, 2**50)], [0, 2**49], mp.Real(0, 2**50), None),
        # Enqueued values are taken as they are.
        ([F(0, 1)], [0.5, 7.0], mp.Real(0, 7), "has values outside of its bounds"),
        ([I(3, 5)], [-2, 4], mp.Integer(-2, 5), "has values outside of its bounds"),
        (
            [CategoricalDistribution(["b", None]), CategoricalDistribution(["a", "b"])],
            ["b", "a"],
            mp.Categorical(["b", "None", "a"]),
            "has other choices in other studies: all 3 are kept",
        ),
        (
            [CategoricalDistribution([True, 2]), CategoricalDistribution([2, True])],
            [2, True],
            mp.Categorical([True, 2]),
            None,
        ),
    ],
)
def test_merged_dimension_covers_several_distributions(distributions, values, dimension, remark):
    merged = merged_dimension(distributions, values)
    assert merged.dimension == dimension
    if remark is None:
        assert merged.remarks == []
    else:
        assert any(remark in each for each in merged.remarks)


@pytest.mark.parametrize(
    ("lists", "choices", "is_noted"),
    [
        ([[None, "None", "a"]], ["None", "a"], True),
        ([[None, "a"], ["None", "a"]], ["None", "a"], True),
        ([[float("nan"), "nan", 1]], ["nan", 1], True),
        ([[None, "a"], [None, "b"]], ["None", "a", "b"], False),
        ([["None", "a"]], ["None", "a"], False),
        ([[True, "True", 1.5]], [True, "True", 1.5], False),
    ],
)
def test_merged_dimension_notes_values_that_become_the_text_of_another(lists, choices, is_noted):
    distributions = [CategoricalDistribution(each) for each in lists]
    merged = merged_dimension(distributions, lists[0])
    assert isinstance(merged.dimension, mp.Categorical)
    assert list(merged.dimension.choices) == choices
    noted = [remark for remark in merged.remarks if "each the same choice as that text" in remark]
    assert len(noted) == is_noted
    assert not noted or str(choices[0]) in noted[0]


@pytest.mark.parametrize(
    ("value", "distribution", "expected"),
    [
        (0.26, FloatDistribution(0, 1), 0.26),
        (1.5, FloatDistribution(0, 1), 1.0),
        (0.26, FloatDistribution(0.1, 0.7, step=0.2), 0.3),
        (9.0, FloatDistribution(0.1, 0.7, step=0.2), 0.7),
        (5, IntDistribution(0, 9, step=3), 6),
        (2.6, IntDistribution(0, 9), 3),
        (-4, IntDistribution(2, 9, log=True), 2),
        ("None", CategoricalDistribution(["a", None]), None),
    ],
)
def test_nearest_value_respects_bounds_and_steps(value, distribution, expected):
    found = nearest_value(value, distribution)
    assert found == (expected if expected is None else pytest.approx(expected, rel=1e-12))
    assert type(found) is type(expected)


def test_nearest_value_refuses_an_unknown_choice():
    with pytest.raises(ValueError, match=r"'c' is none of the choices \['a', None\]; add it"):
        nearest_value("c", CategoricalDistribution(["a", None]))
