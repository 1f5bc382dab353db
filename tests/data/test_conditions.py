"""Space with conditions: what exists where, canonical encoding, embedding, and what is refused."""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data import Categorical, Integer, Real, Space, Tasks

NESTED = Space(
    booster=Categorical(["tree", "dart", "linear"]),
    eta=Real(1e-3, 1.0, log=True, when={"booster": ["dart", "tree"]}),
    layers=Integer(1, 4),
    drop=Categorical(["uniform", "weighted", "none"], when={"booster": ["dart"]}),
    # A child of a child, and of an integer.
    skip=Integer(0, 30, step=10, when={"drop": ["weighted"], "layers": [2, 3, 4]}),
    depth=Integer(1, 12, when={"booster": ["tree", "dart"]}),
    alpha=Real(0.0, 2.0, step=0.5, when={"booster": ["linear"]}),
)
assert NESTED.conditions is not None
CONDITIONS = NESTED.conditions
NUM_COLUMNS = 3 + 1 + 1 + 3 + 1 + 1 + 1
SNAP = jax.jit(NESTED.snap)
EMBED = jax.jit(lambda unit: NESTED.embed(unit, jnp))
unit_points = st.lists(
    st.floats(0, 1, allow_subnormal=False) | st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    min_size=NUM_COLUMNS,
    max_size=NUM_COLUMNS,
).map(lambda entries: np.array([entries]))


def existing(point):
    """Which names a point of `NESTED` should have, by the rules as one would write them down."""
    names = ["booster", "layers"]
    if point["booster"] != "linear":
        names += ["eta", "depth"]
    else:
        names += ["alpha"]
    if point["booster"] == "dart":
        names += ["drop"]
        if point["drop"] == "weighted" and point["layers"] >= 2:
            names += ["skip"]
    return set(names)


def assert_same_point(found, expected):
    """Equal but for the last digits of the one real that is on a log scale."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == (pytest.approx(value, rel=1e-12) if name == "eta" else value)


@settings(deadline=None, max_examples=200)
@given(unit=unit_points)
def test_conditions_encode_of_decode_is_snap(unit):
    (point,) = NESTED.decode(unit)
    assert set(point) == existing(point)
    encoded = NESTED.encode([point])
    np.testing.assert_allclose(encoded[0], SNAP(jnp.asarray(unit[0])), rtol=0, atol=2e-12)
    (again,) = NESTED.decode(encoded)
    assert_same_point(again, point)


@settings(deadline=None, max_examples=100)
@given(unit=unit_points, junk=unit_points)
def test_conditions_make_values_that_do_not_exist_irrelevant(unit, junk):
    settled = NESTED.encode(NESTED.decode(unit))
    dirty = np.where(CONDITIONS.active(settled), settled, junk)
    np.testing.assert_array_equal(NESTED.embed(dirty), NESTED.embed(settled))
    assert NESTED.decode(dirty) == NESTED.decode(settled)
    cotangent = np.random.default_rng(0).normal(size=(1, NESTED.num_inputs))
    slopes = CONDITIONS.pullback(dirty, cotangent)
    np.testing.assert_array_equal(slopes, CONDITIONS.pullback(settled, cotangent))
    assert (slopes[~CONDITIONS.active(settled)] == 0.0).all()


@settings(deadline=None, max_examples=100)
@given(unit=unit_points)
def test_conditions_embed_alike_with_and_without_compilation(unit):
    x = NESTED.encode(NESTED.decode(unit))
    np.testing.assert_allclose(NESTED.embed(x)[0], EMBED(jnp.asarray(x[0])), rtol=0, atol=1e-15)


@settings(deadline=None, max_examples=50)
@given(unit=unit_points)
def test_conditions_pullback_is_the_derivative_of_embed(unit):
    x = NESTED.encode(NESTED.decode(unit))
    cotangent = np.random.default_rng(1).normal(size=(1, NESTED.num_inputs))
    moves = CONDITIONS.active(x)[0] & ~NESTED.is_categorical & ~NESTED.is_parent
    step = 1e-6
    for column in np.flatnonzero(moves):
        to_and_fro = np.zeros((2, NUM_COLUMNS))
        to_and_fro[:, column] = [step, -step]
        ahead, behind = NESTED.embed(x + to_and_fro) @ cotangent[0]
        slope = CONDITIONS.pullback(x, cotangent)[0, column]
        assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-8)


def test_conditions_keep_the_distance_between_branches_free_of_values_of_one():
    """Worked by hand: one of three choices differs, and the numbers of two sets are on one side."""
    rng = np.random.default_rng(0)
    trees = [
        {"booster": "tree", "layers": 2, "eta": 10.0 ** rng.uniform(-3, 0), "depth": int(depth)}
        for depth in rng.integers(1, 13, 40)
    ]
    linears = [{"booster": "linear", "layers": 2, "alpha": a} for a in (0.0, 0.5, 1.0, 2.0)]
    t, li = (NESTED.embed(NESTED.encode(points)) for points in (trees, linears))
    squares = np.sum((t[:, None] - li[None]) ** 2, axis=2)
    # The booster's code, (k + 1) / 4 of {eta, depth}, and of {alpha}.
    np.testing.assert_allclose(squares, 2.0 + 3 / 4 + 2 / 4, rtol=1e-12)
    # And within a branch it is that of the values, or a little more.
    inside = np.sum((t[:, None] - t[None]) ** 2, axis=2)
    plain = np.sum((t[:, None, :NUM_COLUMNS] - t[None, :, :NUM_COLUMNS]) ** 2, axis=2)
    assert (inside >= plain - 1e-12).all()
    assert (inside <= 3.0 * plain + 1e-12).all()


def test_conditions_are_values_that_compare_and_travel():
    text = json.dumps(NESTED.to_json())
    again = Space.from_json(json.loads(text))
    assert again == NESTED
    assert hash(again) == hash(NESTED)
    turned = dict(zip(NESTED.names, NESTED.dimensions, strict=True))
    turned["eta"] = Real(1e-3, 1.0, log=True, when={"booster": ("tree", "dart")})
    assert Space(**turned) == NESTED
    turned["eta"] = Real(1e-3, 1.0, log=True, when={"booster": ["tree"]})
    assert Space(**turned) != NESTED
    plain = Space(x=Real(0, 1), n=Integer(1, 5), c=Categorical(["a", "b"]))
    assert plain.to_json()["dimensions"] == [
        {"name": "x", "type": "real", "low": 0.0, "high": 1.0, "log": False},
        {"name": "n", "type": "integer", "low": 1, "high": 5, "log": False},
        {"name": "c", "type": "categorical", "choices": ["a", "b"]},
    ]
    assert plain.conditions is None
    assert plain.num_inputs == plain.num_columns


def test_conditions_take_dicts_frames_rows_and_arrays_alike():
    points = [
        {"booster": "dart", "eta": 0.1, "layers": 3, "drop": "weighted", "skip": 20, "depth": 4},
        {"booster": "linear", "layers": 1, "alpha": 1.5},
        {"booster": "tree", "eta": 0.01, "layers": 4, "depth": 12},
    ]
    expected = NESTED.encode(points)
    rows = [[point.get(name) for name in NESTED.names] for point in points]
    nans = [[float("nan") if v is None else v for v in row] for row in rows]
    for form in (
        pd.DataFrame(points),  # fills with NaN
        pd.DataFrame(points).convert_dtypes(),  # fills with pandas' own
        rows,
        nans,
        np.array(rows, object),
        [{**point, "alpha": point.get("alpha")} for point in points],
    ):
        np.testing.assert_array_equal(NESTED.encode(form), expected)
        assert NESTED.as_dicts(form) == points
    without = pd.DataFrame([points[0], points[2]])  # no row has the column `alpha`
    np.testing.assert_array_equal(NESTED.encode(without), expected[[0, 2]])


def test_conditions_tasks_return_the_points_they_were_given():
    points = NESTED.decode(np.random.default_rng(3).uniform(size=(9, NUM_COLUMNS)))
    tasks = Tasks.from_runs([(points, range(9)), (points[:4], range(4))], space=NESTED)
    assert tasks.x.shape[2] == NESTED.num_inputs == NUM_COLUMNS + 3
    back, _ = tasks.run(0)
    for given_point, returned in zip(points, back, strict=True):
        assert_same_point(returned, given_point)


def test_conditions_neighbours_are_valid_and_reach_every_branch():
    (start,) = NESTED.encode([{"booster": "linear", "layers": 2, "alpha": 1.0}])
    found = np.asarray(NESTED.neighbours(jnp.asarray(start)))
    points = NESTED.decode(found)
    np.testing.assert_allclose(NESTED.encode(points), found, rtol=0, atol=1e-12)
    assert {point["booster"] for point in points} == {"tree", "dart", "linear"}


TREE = Categorical(["tree", "linear"])


@pytest.mark.parametrize(
    ("dimensions", "message"),
    [
        ({"a": TREE, "b": Real(0, 1, when={"c": ["tree"]})}, "'b' depends on 'c'.*does not have"),
        ({"a": TREE, "b": Real(0, 1, when={"a": ["forest"]})}, "'forest', which is no value"),
        ({"a": Integer(1, 3), "b": Real(0, 1, when={"a": [0, 1]})}, "is 0, which is no value"),
        ({"a": Integer(0, 4, step=2), "b": Real(0, 1, when={"a": [1]})}, "is 1, which is no value"),
        ({"a": Real(0, 1), "b": Real(0, 1, when={"a": [0.5]})}, "only a Categorical or an Integer"),
        ({"a": TREE, "b": Real(0, 1, when={"a": ["linear", "tree"]})}, "no condition"),
        ({"a": Integer(1, 2), "b": Real(0, 1, when={"a": [1, 2]})}, "no condition"),
        (
            {
                "a": Categorical(["x", "y"], when={"b": ["x"]}),
                "b": Categorical(["x", "y"], when={"c": ["x"]}),
                "c": Categorical(["x", "y"], when={"a": ["x"]}),
            },
            "circle: 'a' -> 'b' -> 'c' -> 'a'",
        ),
        ({"a": Categorical(["x", "y"], when={"a": ["x"]})}, "circle: 'a' -> 'a'"),
        (
            {
                "a": TREE,
                "b": Integer(1, 3, when={"a": ["tree"]}),
                "c": Real(0, 1, when={"a": ["linear"], "b": [2, 3]}),
            },
            r"'c' never exists.*need 'a' to be one of \['linear'\] and one of \['tree'\]",
        ),
    ],
)
def test_conditions_that_cannot_be_are_refused(dimensions, message):
    with pytest.raises(ValueError, match=message):
        Space(**dimensions)


@pytest.mark.parametrize(
    ("when", "error", "message"),
    [
        ({"a": []}, ValueError, "never exists"),
        ({"a": "tree"}, TypeError, "'tree' for 'a'; give a list"),
        ({"a": 3}, TypeError, "3 for 'a'; give a list"),
        (["a"], TypeError, r"`when` is \['a'\]; give the values under which"),
        ({3: ["a"]}, TypeError, "give the values under which"),
        (3, TypeError, "`when` is 3; give the values under which"),
    ],
)
def test_conditions_that_are_none_are_refused(when, error, message):
    with pytest.raises(error, match=message):
        Real(0, 1, when=when)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.0}, "row 1, dimension 'alpha'.*only if 'booster' is 'linear'.*'tree'"),
        ({"eta": None}, "row 1, dimension 'eta'.*has no value.*'booster' is 'tree'"),
        ({"drop": "none"}, "row 1, dimension 'drop'.*only if 'booster' is 'dart'"),
        ({"skip": 10}, "row 1, dimension 'skip'.*'drop' does not exist"),
        ({"booster": None}, "row 1, dimension 'booster'.*None"),
        ({"eta": 7.0}, "row 1, dimension 'eta'.*outside"),
    ],
)
def test_conditions_that_a_point_breaks_are_named(change, message):
    good = {"booster": "tree", "eta": 0.1, "layers": 1, "depth": 3}
    bad = {name: value for name, value in {**good, **change}.items()}
    with pytest.raises(ValueError, match=f"task 4, {message}"):
        NESTED.encode([good, bad], where="task 4")


def test_conditions_count_the_branches_by_enumeration():
    """All combinations of what decides, and no others, exist."""
    unit = np.random.default_rng(0).uniform(size=(4000, NUM_COLUMNS))
    found = {frozenset(point) for point in NESTED.decode(unit)}
    expected = {
        frozenset(existing({"booster": b, "drop": d, "layers": n}))
        for b, d, n in itertools.product(
            ["tree", "dart", "linear"], ["uniform", "weighted", "none"], [1, 2, 3, 4]
        )
    }
    assert found == expected
    assert len(expected) == 4


def test_conditions_and_features_of_tasks_share_the_columns_of_a_larger_space():
    points = NESTED.decode(np.random.default_rng(4).uniform(size=(6, NUM_COLUMNS)))
    runs = [(points, range(6)), (points[:3], range(3)), (points[2:], range(4))]
    known = [{"rows": 10, "kind": "a"}, {"rows": 30, "kind": "b"}, {"rows": 50, "kind": "a"}]
    tasks = Tasks.from_runs(runs, space=NESTED, features=known)
    larger = tasks.with_feature_columns(tasks.features)
    d = larger.space.num_columns
    assert larger.x.shape[2] == larger.space.num_inputs == d + 3
    np.testing.assert_allclose(larger.x[0, :6], larger.space.embed(larger.x[0, :6, :d]), atol=1e-12)
    columns = NESTED.columns_of_points(larger.x.shape[2])
    np.testing.assert_array_equal(larger.x[:, :, columns], tasks.x)
