"""Windows: every point lies in the whole space where it would lie without a window."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metaprior as mp
from metaprior.belief import AveragedBelief, ExtendedBelief
from metaprior.bo import Numbers, Options, Window, whole_range

WHOLE = mp.Space(
    rate=mp.Real(1e-4, 1.0, log=True),
    width=mp.Real(-3.0, 9.0),
    depth=mp.Integer(1, 12),
    units=mp.Integer(2, 500, log=True),
    kind=mp.Categorical(["a", "b", "c"]),
)
# Every way in which a task may differ: bounds, a step, another scale, fewer choices.
NARROW = Window(
    WHOLE,
    (
        ("rate", Numbers(0.01, 0.5)),
        ("width", Numbers(-2.0, 8.0, step=0.5)),
        ("depth", Numbers(2.0, 11.0, step=3.0)),
        ("units", Numbers(4.0, 100.0, log=True, step=1.0)),
        ("kind", Options(("c", "a"))),
    ),
)
BENT = Window(
    WHOLE,
    (
        ("width", Numbers(0.1, 9.0, log=True)),
        ("depth", Numbers(1.0, 12.0, log=True, step=1.0)),
        ("units", Numbers(2.0, 500.0, step=2.0)),
    ),
)


def in_whole(window, point):
    """The point of the whole cube for a point in the task's units, through the window."""
    own = window.encode(point)
    (unit,) = window.space.encode([own])
    return window.map()(unit[None])[0]


@settings(deadline=None, max_examples=60)
@given(
    rate=st.floats(0.01, 0.5),
    steps=st.integers(0, 20),
    depth=st.sampled_from([2, 5, 8, 11]),
    units=st.integers(4, 100),
    kind=st.sampled_from("ac"),
)
def test_window_point_lies_where_it_would_without_a_window(rate, steps, depth, units, kind):
    point = dict(rate=rate, width=-2.0 + 0.5 * steps, depth=depth, units=units, kind=kind)
    (expected,) = WHOLE.encode([point])
    np.testing.assert_allclose(in_whole(NARROW, point), expected, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(width=st.floats(0.1, 9.0), depth=st.integers(1, 12), half=st.integers(1, 250))
def test_window_takes_other_scales_and_holds_dimensions_in_the_middle(width, depth, half):
    point = dict(width=width, depth=depth, units=2 * half)
    # The middle of a log scale from 1e-4 to 1 is 1e-2; categories are held at the first.
    (expected,) = WHOLE.encode([{**point, "rate": 0.01, "kind": "a"}])
    np.testing.assert_allclose(in_whole(BENT, point), expected, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(unit=st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6))
def test_window_decodes_to_points_that_the_task_allows(unit):
    (own,) = NARROW.space.decode(np.array([unit]))
    point = NARROW.decode(own)
    assert NARROW.encode(point) == pytest.approx(own)
    assert 0.01 <= point["rate"] <= 0.5 and point["kind"] in ("a", "c")
    assert (point["width"] + 2.0) % 0.5 == 0.0 and point["depth"] in (2, 5, 8, 11)


# Wider than the prior's space in every way, and with dimensions that it lacks or has otherwise.
WIDE = Window(
    WHOLE,
    (
        ("rate", Numbers(1e-6, 1.0, log=True)),
        ("width", Numbers(-3.0, 21.0)),
        ("depth", Numbers(-8.0, 12.0, step=4.0)),
        ("units", Options((16, 32))),
        ("kind", Options(("new", "b", "a"))),
        ("other", Numbers(0.0, 5.0)),
    ),
)


def test_window_says_what_is_new_in_it():
    for window in (NARROW, BENT):
        assert window.novelty().is_nothing
    novelty = WIDE.novelty()
    # rate 1e-4 of 1e-6 to 1; width 9 of -3 to 21; depth from 1 on, of steps between -10 and 14.
    np.testing.assert_allclose(novelty.low[:3], [1 / 3, 0.0, 11 / 24])
    np.testing.assert_allclose(novelty.high[:3], [1.0, 0.5, 1.0])
    assert not np.isfinite(novelty.low[3:]).any() and not np.isfinite(novelty.high[3:]).any()
    np.testing.assert_array_equal(np.flatnonzero(novelty.is_new), [3, 4, 8])
    np.testing.assert_array_equal(np.flatnonzero(novelty.is_new_choice), [5])


@settings(deadline=None, max_examples=60)
@given(
    rate=st.floats(1e-6, 1.0),
    width=st.floats(-3.0, 21.0),
    step=st.integers(0, 5),
    kind=st.sampled_from(["a", "b", "new"]),
)
def test_window_shows_new_points_at_the_nearest_that_is_known(rate, width, step, kind):
    """A new choice lies between all that are known; a dimension of another kind in the middle."""
    point = dict(rate=rate, width=width, depth=-8 + 4 * step, units=32, kind=kind, other=1.0)
    nearest = dict(rate=max(rate, 1e-4), width=min(width, 9.0), depth=max(-8 + 4 * step, 1))
    (expected,) = WHOLE.encode([dict(nearest, units=2, kind="a" if kind == "new" else kind)])
    expected[3] = 0.5
    if kind == "new":
        expected[4:] = 1 / 3
    if point["depth"] < 1:
        expected[2] = 0.0  # where integers end, half a step below the lowest
    belief = WIDE.through(AveragedBelief(0.0, 1.0))
    assert isinstance(belief, ExtendedBelief)
    found = belief.view(in_own(WIDE, point)[None])[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    known = WIDE.novelty()(in_own(WIDE, point)[None])
    assert known.new[0] == 1.0  # there is a new dimension
    if rate >= 1e-4 and width <= 9.0 and point["depth"] >= 1:
        assert known.share[0] == 1.0
    if rate < 0.9e-4 or width > 9.1 or point["depth"] < 1:
        assert known.share[0] < 1.0


def in_own(window, point):
    (unit,) = window.space.encode([window.encode(point)])
    return unit


def test_window_has_no_place_for_points_outside():
    inside = dict(rate=0.1, width=1.0, depth=5, units=10, kind="a")
    assert NARROW.encode(inside) is not None
    for name, value in dict(rate=0.6, width=0.7, depth=4, units=3, kind="b").items():
        assert NARROW.encode({**inside, name: value}) is None


def test_window_takes_a_missing_dimension_in_its_middle():
    point = NARROW.encode(dict(rate=0.255, depth=5, units=10))
    assert point == {"x0": pytest.approx(0.5), "x1": 10, "x2": 1, "x3": 10, "x4": 0}


@pytest.mark.parametrize(
    "name, value, other", [("rate", 0.3, 0.2), ("units", 40, 41), ("kind", "c", "a")]
)
def test_window_keeps_a_dimension_of_one_value_there(name, value, other):
    """Other values of it are outside of the window; a point that lacks it is inside."""
    window = Window(WHOLE, (("width", Numbers(0.0, 5.0)),), ((name, value),))
    middle = {"rate": 0.01, "width": 2.0, "depth": 6.5, "units": 31.0, "kind": "a"}
    (low,), (high,) = (WHOLE.encode([{**middle, "depth": d, "units": 31}]) for d in (6, 7))
    expected = np.where(np.arange(7) == 2, (low + high) / 2, low)
    (at_value,) = WHOLE.encode([{**middle, "depth": 6, "units": 31, name: value}])
    columns = {"rate": [0], "units": [3], "kind": [4, 5, 6]}[name]
    expected[columns] = at_value[columns]
    if name != "units":
        expected[3] = 0.5
    np.testing.assert_allclose(in_whole(window, {"width": 2.0, name: value}), expected, atol=1e-12)
    assert window.encode({"width": 2.0}) is not None
    assert window.encode({"width": 2.0, name: other}) is None


def test_window_range_on_a_log_scale_ends_where_it_ends():
    numbers = Numbers(1e-8, 10.0, log=True)
    assert numbers.coordinate(1e-8 * (1 - 1e-12)) == 0.0
    for value in (1e-15, 0.99e-8, 0.0, -1.0, 10.1, float("inf"), float("nan"), "inf"):
        assert numbers.coordinate(value) is None


def test_window_gradient_is_finite_half_a_step_below_the_lowest_number():
    # Even numbers from 2 on, relaxed: below 2 the logarithm of 500's range ends at 1.5.
    gradient = BENT.map().pullback(np.zeros((1, 3)), np.eye(7)[:, None])
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize(
    "wanted, dimension, expected",
    [
        (Numbers(0.0, 5.0), mp.Real(2.0, 9.0), Numbers(2.0, 5.0)),
        (Numbers(0.0, 5.0), mp.Real(5.0, 9.0), Numbers(5.0, 5.0)),  # one value
        (Numbers(0.0, 5.0), mp.Real(6.0, 9.0), None),
        (Numbers(0.0, 5.0), mp.Integer(2, 9), None),  # reals in an integer dimension
        (Numbers(0.0, 10.0, step=4.0), mp.Integer(2, 9), Numbers(4.0, 8.0, step=4.0)),
        (Numbers(0.0, 1.0, step=0.1), mp.Real(0.25, 9.0), Numbers(0.3, 1.0, step=0.1)),
        (Numbers(1.0, 64.0, log=True, step=1.0), mp.Real(2.0, 9.0),
         Numbers(2.0, 9.0, log=True, step=1.0)),
        (Numbers(0.0, 5.0), mp.Categorical(["a", "b"]), None),
        (Options(("b", "z", "a")), mp.Categorical(["a", "b"]), Options(("b", "a"))),
        (Options(("b", "z")), mp.Categorical(["a", "b"]), Options(("b",))),
        (Options(("y", "z")), mp.Categorical(["a", "b"]), None),
        (Options((True, False, 2)), mp.Categorical([1, 0, 2]), Options((2,))),  # 1 is not True
    ],
)  # fmt: skip
def test_range_and_dimension_share_their_common_values(wanted, dimension, expected):
    found = wanted.within(dimension)
    if expected is None or isinstance(expected, Options):
        assert found == expected
    else:
        assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(expected))


def test_windows_that_differ_in_bounds_share_their_space():
    other = Window(WHOLE, (("rate", Numbers(1e-3, 0.7)), *NARROW.ranges[1:]))
    assert other.space == NARROW.space


@pytest.mark.parametrize("guarded", [False, True])
def test_window_leaves_predictions_of_a_prior_unchanged(guarded):
    space = mp.Space(x=mp.Real(0.0, 10.0), z=mp.Integer(0, 6))
    points = [[{"x": 2.0 * i + j, "z": i + j} for i in range(4)] for j in range(3)]
    tasks = mp.Tasks.from_runs([(p, [q["x"] - q["z"] for q in p]) for p in points], space=space)
    method = mp.methods.FixedGP()
    prior = mp.learn(tasks, method=mp.methods.Guarded(method) if guarded else method, seed=0)
    every_x = ("x", whole_range(space.dimensions[0]))
    window = Window(space, (("z", Numbers(1.0, 5.0, step=2.0)), every_x))
    seen = window.through(prior.belief)
    tried = {"x": 4.0, "z": 3}
    own = window.encode(tried)
    assert own is not None
    at = window.space.encode([own, {"x0": 0, "x1": 0.7}])
    moments = seen.condition(at[:1], [2.0]).moments(at)
    mean, std = moments.mean, np.sqrt(moments.variance)
    if guarded:  # its other half knows nothing of either space
        assert mean[0] == pytest.approx(2.0, abs=0.1)
        return
    expected = prior.condition([tried], [2.0]).predict([tried, {"x": 7.0, "z": 1}])
    np.testing.assert_allclose((mean, std), expected, rtol=1e-9)


def test_window_sampled_functions_agree_with_those_of_the_whole_space():
    runs = [([[0.0], [10.0]], [0.0, 1.0])] * 2
    tasks = mp.Tasks.from_runs(runs, space=mp.Space(x=mp.Real(0.0, 10.0)))
    prior = mp.learn(tasks, method=mp.methods.FixedGP(), seed=0)
    window = Window(prior.space, (("x", Numbers(2.0, 4.0)),))
    nothing = np.zeros((0, 1)), np.zeros(0)
    own, whole = np.array([[0.0], [0.5], [1.0]]), np.array([[0.2], [0.3], [0.4]])
    seen = window.through(prior.belief).condition(*nothing)
    itself = prior.belief.condition(*nothing)

    def rng():
        return np.random.default_rng(0)

    np.testing.assert_allclose(seen.sample(own, 2, rng()), itself.sample(whole, 2, rng()))
    drawn, same = seen.path(own, rng()), itself.path(whole, rng())
    np.testing.assert_allclose(drawn(own), same(whole), rtol=1e-6)
    y = np.full(3, 0.3)
    np.testing.assert_allclose(seen.cdf(own, y), itself.cdf(whole, y))
    np.testing.assert_allclose(seen.log_density(own, y), itself.log_density(whole, y))
