"""Space: round trips, snapping, neighbours, every form of points and every way to get it wrong."""

import json
import math
import pickle
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data._space import Categorical, Integer, Real, Space

MIXED = Space(
    lr=Real(1e-4, 1e-1, log=True),
    depth=Integer(1, 12),
    act=Categorical(["relu", "tanh", 3, 0.5]),
    width=Integer(1, 4096, log=True),
    shift=Integer(-7, 5),
    bias=Categorical([True, False]),
    rate=Real(-2, 3),
)
NUM_COLUMNS = 11
SNAP = jax.jit(MIXED.snap)
POINT = {
    "lr": 1e-2,
    "depth": 3,
    "act": "tanh",
    "width": 64,
    "shift": -1,
    "bias": False,
    "rate": 0.5,
}
AB = Space(a=Real(0, 1), b=Integer(1, 5))

# No subnormals: compiled code flushes them to 0, which can only matter in a tie of two choices.
unit_points = st.lists(
    st.floats(0, 1, allow_subnormal=False) | st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    min_size=NUM_COLUMNS,
    max_size=NUM_COLUMNS,
).map(lambda entries: np.array([entries]))


# Encoding, worked by hand.


def test_space_encoding_worked_by_hand():
    expected = [
        2 / 3,  # two of three decades
        2.5 / 12,  # the middle of the third of twelve bins
        *(0, 1, 0, 0),
        (math.log(64) - math.log(0.5)) / (math.log(4096.5) - math.log(0.5)),
        6.5 / 13,
        *(0, 1),
        0.5,
    ]
    encoded = MIXED.encode([POINT])
    assert encoded.dtype == np.float64
    np.testing.assert_allclose(encoded, [expected], rtol=0, atol=1e-15)
    assert MIXED.num_columns == NUM_COLUMNS
    assert MIXED.names == ("lr", "depth", "act", "width", "shift", "bias", "rate")


def test_space_masks_worked_by_hand():
    kinds = "r i c c c c i i c c r".split()
    assert MIXED.is_real.tolist() == [kind == "r" for kind in kinds]
    assert MIXED.is_integer.tolist() == [kind == "i" for kind in kinds]
    assert MIXED.is_categorical.tolist() == [kind == "c" for kind in kinds]


@pytest.mark.parametrize("log", [False, True])
def test_space_ends_of_a_real_are_its_bounds_exactly(log):
    space = Space(x=Real(0.1, 0.7, log=log))
    assert space.encode([0.1, 0.7]).ravel().tolist() == [0.0, 1.0]
    assert space.decode([[0.0], [1.0], [-3.0], [2.0]]) == [
        {"x": 0.1},
        {"x": 0.7},
        {"x": 0.1},
        {"x": 0.7},
    ]


# Round trips.


@settings(deadline=None, max_examples=200)
@given(
    bounds=st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=2, unique=True).map(sorted),
    fraction=st.floats(0, 1),
)
def test_space_round_trips_reals(bounds, fraction):
    low, high = bounds
    value = min(max(low * (1 - fraction) + high * fraction, low), high)
    space = Space(x=Real(low, high))
    (back,) = space.decode(space.encode([{"x": value}]))
    # An affine map keeps digits relative to its larger bound, not to a value that may be 0.
    assert abs(back["x"] - value) <= 1e-12 * max(abs(low), abs(high))
    assert low <= back["x"] <= high
    assert type(back["x"]) is float


@settings(deadline=None, max_examples=200)
@given(exponents=st.lists(st.floats(-300, 300), min_size=3, max_size=3).map(sorted))
def test_space_round_trips_log_reals(exponents):
    low, value, high = (10.0**exponent for exponent in exponents)
    low = low / 2
    space = Space(x=Real(low, high, log=True))
    (back,) = space.decode(space.encode([{"x": value}]))
    assert back["x"] == pytest.approx(value, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        (Real(1e-300, 1e300, log=True), [1e-300, 3e-299, 1.0, 7.7, 2e299, 1e300]),
        (Real(5e-324, 1.7976931348623157e308, log=True), [5e-324, 1.0, 1.7976931348623157e308]),
        (Real(1e9, 1e9 + 1), [1e9, 1e9 + 1e-3, 1e9 + 0.5, 1e9 + 1]),
        (Real(-8e307, 8e307), [-8e307, 1e307, 8e307]),
        (Real(-1e-300, 1e-300), [-1e-300, 0.0, 1e-300]),
        (Real(0, 5e-324), [0.0, 5e-324]),
    ],
    ids=str,
)
def test_space_round_trips_reals_with_extreme_bounds(dimension, values):
    space = Space(x=dimension)
    unit = space.encode(values)
    assert ((unit >= 0) & (unit <= 1)).all() and unit[0] == 0 and unit[-1] == 1
    back = [point["x"] for point in space.decode(unit)]
    np.testing.assert_allclose(back, values, rtol=1e-12, atol=0)


@settings(deadline=None, max_examples=200)
@given(
    low=st.integers(-(2**40), 2**40 - 1),
    size=st.integers(1, 2**41),
    place=st.integers(0, 2**41),
    log=st.booleans(),
)
def test_space_round_trips_integers_exactly(low, size, place, log):
    low = abs(low) % 1000 + 1 if log else low
    high = min(low + size, 2**40)
    value = low + place % (high - low + 1)
    space = Space(x=Integer(low, high, log=log))
    points = [{"x": v} for v in {low, min(low + 1, high), value, high - 1, high}]
    back = space.decode(space.encode(points))
    assert back == points
    assert all(type(point["x"]) is int for point in back)


@settings(deadline=None, max_examples=100)
@given(
    choices=st.lists(
        st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=5),
        min_size=2,
        max_size=6,
        unique=True,
    )
)
def test_space_round_trips_choices_as_the_same_objects(choices):
    space = Space(x=Categorical(choices))
    back = [point["x"] for point in space.decode(space.encode([{"x": c} for c in choices]))]
    assert back == choices
    assert list(map(type, back)) == list(map(type, choices))


@settings(deadline=None, max_examples=200)
@given(unit=unit_points)
def test_space_snap_is_encode_of_decode_and_idempotent(unit):
    snapped = np.asarray(SNAP(jnp.asarray(unit[0])))
    np.testing.assert_allclose(snapped, MIXED.encode(MIXED.decode(unit))[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(SNAP(jnp.asarray(snapped)), snapped, rtol=0, atol=1e-15)
    before, after = MIXED.decode(unit)[0], MIXED.decode(snapped[None])[0]
    assert all(before[name] == after[name] for name in before if name not in ("lr", "rate"))


def test_snap_clips_and_is_the_identity_on_real_spaces():
    space = Space(a=Real(0, 1), b=Real(1, 2, log=True), c=Real(-5, 5))
    snapped = jax.jit(space.snap)(jnp.array([-0.5, 0.3, 1.5]))
    assert snapped.tolist() == [0.0, 0.3, 1.0]


def test_space_snap_breaks_ties_as_decode_does():
    # In the logarithm, 1.5 is exactly half way between the ends 0.5 and 4.5 of these bins.
    space = Space(n=Integer(1, 4, log=True), m=Integer(1, 4), c=Categorical(["x", "y", "z"]))
    unit = np.array([0.5, 0.5, 0.2, 0.7, 0.7])
    snapped = jax.jit(space.snap)(jnp.asarray(unit))
    assert space.decode(unit[None]) == [{"n": 2, "m": 3, "c": "y"}]
    assert space.decode(snapped[None]) == [{"n": 2, "m": 3, "c": "y"}]


@pytest.mark.parametrize("size", [3, 7, 10, 49, 1000])
def test_space_edges_between_bins_belong_to_the_upper_bin(size):
    space = Space(n=Integer(0, size - 1))
    edges = np.arange(size)[:, None] / size  # k / size * size is not always k in floating point
    assert [point["n"] for point in space.decode(edges)] == list(range(size))
    snapped = jax.jit(jax.vmap(space.snap))(jnp.asarray(edges))
    np.testing.assert_allclose(snapped, edges + 0.5 / size, rtol=0, atol=1e-12)


def test_space_uniform_cube_gives_uniform_integers():
    space = Space(n=Integer(-2, 4))
    centres = (np.arange(7 * 1000)[:, None] + 0.5) / (7 * 1000)
    counts = Counter(point["n"] for point in space.decode(centres))
    assert counts == dict.fromkeys(range(-2, 5), 1000)


def test_space_log_integers_are_uniform_in_the_logarithm():
    space = Space(n=Integer(1, 100, log=True))
    centres = (np.arange(20_000)[:, None] + 0.5) / 20_000
    counts = Counter(point["n"] for point in space.decode(centres))
    for n in (1, 2, 10, 100):  # the share of [n - 1/2, n + 1/2) of the whole [1/2, 100.5)
        share = math.log((n + 0.5) / (n - 0.5)) / math.log(100.5 / 0.5)
        assert counts[n] == pytest.approx(20_000 * share, abs=1.01)


# Neighbours.


def test_space_neighbours_worked_by_hand():
    space = Space(x=Real(0, 1), n=Integer(1, 4), c=Categorical("u v w".split()), k=Integer(1, 9))
    (point,) = space.encode([{"x": 0.3, "n": 1, "c": "v", "k": 5}])
    around = space.decode(jax.jit(space.neighbours)(jnp.asarray(point)))
    assert [(p["n"], p["c"], p["k"]) for p in around] == [
        (1, "v", 5),  # no step down from the bound: the point itself
        (1, "v", 4),
        (2, "v", 5),
        (1, "v", 6),
        (1, "w", 5),
        (1, "u", 5),
    ]
    assert all(p["x"] == pytest.approx(0.3) for p in around)


@settings(deadline=None, max_examples=100)
@given(unit=unit_points)
def test_space_neighbours_are_valid_and_differ_in_one_discrete_dimension(unit):
    centre = SNAP(jnp.asarray(unit[0]))
    around = NEIGHBOURS(centre)
    assert around.shape == (2 * 3 + 3 + 1, NUM_COLUMNS)
    np.testing.assert_allclose(SNAP_ALL(around), around, rtol=0, atol=1e-12)
    (here,) = MIXED.decode(centre[None])
    moves = [
        {name: point[name] for name in here if point[name] != here[name]}
        for point in MIXED.decode(around)
    ]
    assert all(len(move) <= 1 and not move.keys() & {"lr", "rate"} for move in moves)
    expected = {("bias", not here["bias"])}
    expected |= {("act", choice) for choice in ("relu", "tanh", 3, 0.5) if choice != here["act"]}
    for name, low, high in (("depth", 1, 12), ("width", 1, 4096), ("shift", -7, 5)):
        steps = {here[name] - 1, here[name] + 1}
        expected |= {(name, value) for value in steps if low <= value <= high}
    assert {pair for move in moves for pair in move.items()} == expected


NEIGHBOURS = jax.jit(MIXED.neighbours)
SNAP_ALL = jax.jit(jax.vmap(MIXED.snap))


def test_neighbours_of_a_real_space_are_none():
    space = Space(a=Real(0, 1), b=Real(0, 1))
    assert jax.jit(space.neighbours)(jnp.zeros(2)).shape == (0, 2)


# The forms of points.

ROWS = [[0.25, 2], [0.5, 5]]
AS_ENCODED = [[0.25, 0.3], [0.5, 0.9]]


@pytest.mark.parametrize(
    "points",
    [
        [{"a": 0.25, "b": 2}, {"b": 5.0, "a": 0.5}],
        ({"a": a, "b": b} for a, b in ROWS),
        [{"a": np.float64(0.25), "b": np.int32(2)}, {"a": jnp.asarray(0.5), "b": np.uint8(5)}],
        pd.DataFrame({"b": [2, 5], "a": [0.25, 0.5]}, index=[7, 3]),
        pd.DataFrame({"a": [0.25, 0.5], "b": [2, 5]}).astype(object),
        ROWS,
        [tuple(row) for row in ROWS],
        [np.array(row) for row in ROWS],
        np.array(ROWS),
        np.array(ROWS, np.float32),
        np.array(ROWS, object),
        np.array([{"a": a, "b": b} for a, b in ROWS]),
        jnp.array(ROWS),
    ],
    ids=lambda points: type(points).__name__,
)
def test_space_every_form_of_points_means_the_same(points):
    np.testing.assert_allclose(AB.encode(points), AS_ENCODED, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "points",
    [[0, 2.5], (0, 2.5), [[0], [2.5]], np.array([0, 2.5]), pd.Series([0, 2.5]), [{"x": 0}] * 2],
    ids=lambda points: type(points).__name__,
)
def test_space_of_one_dimension_encodes_numbers(points):
    space = Space(x=Real(0, 5))
    second = 0.0 if isinstance(points, list) and isinstance(points[0], dict) else 0.5
    assert space.encode(points).tolist() == [[0.0], [second]]


@pytest.mark.parametrize(
    "points",
    [[], (), np.zeros(0), np.zeros((0, 2)), np.array([]), pd.DataFrame({"a": [], "b": []})],
    ids=lambda points: type(points).__name__,
)
def test_space_encode_accepts_no_points(points):
    assert AB.encode(points).shape == (0, 2)
    assert MIXED.encode(points).shape == (0, NUM_COLUMNS)
    assert MIXED.decode(np.zeros((0, NUM_COLUMNS))) == []


def test_space_categories_in_frames_and_object_arrays():
    space = Space(a=Categorical(["x", "y"]), b=Categorical([1, 2]), c=Categorical([True, False]))
    expected = [[0, 1, 1, 0, 0, 1]]
    assert space.encode(pd.DataFrame({"a": ["y"], "b": [1], "c": [False]})).tolist() == expected
    assert space.encode(np.array([["y", 1, False]], object)).tolist() == expected
    assert space.encode([[np.str_("y"), np.float64(1), np.bool_(False)]]).tolist() == expected
    frame = pd.DataFrame({"a": pd.Categorical(["y"]), "b": [1], "c": [False]})
    assert space.encode(frame).tolist() == expected
    text = Space(a=Categorical(["x", "y"]))
    assert text.encode(np.array(["y", "x"])).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("dimension", "value", "bound"),
    [
        (Real(0, 1), 1 + 1e-10, 1.0),
        (Real(0, 1), -1e-10, 0.0),
        (Real(1e-8, 1e-2, log=True), 1e-8 * (1 - 1e-10), 1e-8),
        (Real(1e9, 1e9 + 1e-3), np.nextafter(1e9, 0), 1e9),
        (Integer(1, 5), 5 + 1e-12, 5),
    ],
)
def test_space_rounding_at_the_bounds_is_tolerated(dimension, value, bound):
    space = Space(x=dimension)
    (point,) = space.decode(space.encode([value]))
    assert point == {"x": bound}


# Values, hashing, writing.


def test_spaces_are_values():
    def build(**changes):
        return Space(**({"a": Real(0, 1), "b": Categorical([1, 2]), "c": Integer(1, 2)} | changes))

    assert build() == build() and hash(build()) == hash(build())
    assert Real(0, 1) == Real(np.float64(0.0), np.float64(1.0))
    assert Categorical(np.array(["u", "v"])) == Categorical(("u", "v"))
    assert build() != build(a=Real(0, 2))
    assert build() != build(c=Integer(1, 2, log=True))
    assert build() != build(b=Categorical([True, 2]))  # equal in Python, but not the same choice
    assert Space(a=Real(0, 1), b=Real(0, 1)) != Space(b=Real(0, 1), a=Real(0, 2))
    assert Space(a=Real(0, 1), b=Real(0, 2)) != Space(b=Real(0, 2), a=Real(0, 1))
    assert pickle.loads(pickle.dumps(MIXED)) == MIXED
    with pytest.raises(AttributeError):
        MIXED.names = ()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="read-only"):
        MIXED.is_real[0] = False


def test_equal_spaces_share_a_compiled_function():
    traced = []

    def snap(space, unit):
        traced.append(space)
        return space.snap(unit)

    compiled = jax.jit(snap, static_argnums=0)
    for _ in range(2):
        compiled(Space(a=Real(0, 1), b=Integer(1, 5)), jnp.zeros(2))
    assert len(traced) == 1


def test_space_repr_can_be_read_back():
    scope = {"Space": Space, "Real": Real, "Integer": Integer, "Categorical": Categorical}
    assert eval(repr(MIXED), scope) == MIXED
    assert repr(AB) == "Space(a=Real(0.0, 1.0), b=Integer(1, 5))"


@pytest.mark.parametrize(
    "space",
    [
        MIXED,
        AB,
        Space(**{"learning rate": Real(1 / 3, 2 / 3), "self": Integer(-3, 3)}),
        Space(z=Categorical([1, 2.0, "3", True + 3, False]), a=Real(5e-324, 1.7e308, log=True)),
    ],
    ids=str,
)
def test_space_json_round_trip_is_exact(space):
    back = Space.from_json(json.loads(json.dumps(space.to_json(), allow_nan=False)))
    assert back == space
    assert back.names == space.names
    assert repr(back) == repr(space)


GOOD = {"name": "x", "type": "real", "low": 0.0, "high": 1.0, "log": False}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "dimensions"),
        ([], "dimensions"),
        ({}, "dimensions"),
        ({"dimensions": {}}, "dimensions"),
        ({"dimensions": []}, "at least 1 dimension"),
        ({"dimensions": ["x"]}, "Entry 0.*'type'"),
        ({"dimensions": [GOOD, {**GOOD, "name": "y", "type": "complex"}]}, "Entry 1.*'type'"),
        ({"dimensions": [{**GOOD, "type": ["real"]}]}, "Entry 0.*'type'"),
        ({"dimensions": [{**GOOD, "name": 3}]}, "Entry 0.*name"),
        ({"dimensions": [{"name": "x", "type": "real", "low": 0.0}]}, "exactly.*high"),
        ({"dimensions": [{**GOOD, "steps": 1}]}, "exactly"),
        ({"dimensions": [GOOD, GOOD]}, "Entry 1.*repeats.*'x'"),
        ({"dimensions": [{**GOOD, "high": -1.0}]}, r"Entry 0 \('x'\).*low < high"),
        ({"dimensions": [{**GOOD, "high": "1"}]}, "Entry 0.*(not both numbers|Type-check)"),
        ({"dimensions": [{**GOOD, "log": 1}]}, "Entry 0.*(True nor False|Type-check)"),
        ({"dimensions": [{"name": "c", "type": "categorical", "choices": "ab"}]}, "Entry 0.*list"),
        ({"dimensions": [{"name": "c", "type": "categorical", "choices": [[], 1]}]}, "Entry 0"),
    ],
)
def test_space_malformed_json_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        Space.from_json(data)


# Every bad input. Where annotations are enforced at run time, a wrong type may be refused before
# our own check sees it; those cases allow both messages.

EITHER = (ValueError, TypeError)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Real(1, 1), ValueError, "low < high"),
        (lambda: Real(2, 1), ValueError, "low < high"),
        (lambda: Real(0, math.inf), ValueError, "finite"),
        (lambda: Real(math.nan, 1), ValueError, "finite"),
        (lambda: Real(0, 1, log=True), ValueError, "positive"),
        (lambda: Real(-1, 1, log=True), ValueError, "positive"),
        (lambda: Real("0", 1), TypeError, "numbers|'0'"),  # pyright: ignore[reportArgumentType]
        (lambda: Real(False, True), TypeError, "numbers"),
        (lambda: Real(0, 1, log=1), TypeError, "log"),  # pyright: ignore[reportArgumentType]
        (lambda: Real(-1.7e308, 1.7e308), ValueError, "too far apart"),
        (lambda: Real(1e300, np.nextafter(1e300, 2e300), log=True), ValueError, "too close"),
        (lambda: Integer(3, 3), ValueError, "low < high"),
        (lambda: Integer(0, 3, log=True), ValueError, "at least 1"),
        (lambda: Integer(0, 2.5), EITHER, "2.5"),  # pyright: ignore[reportArgumentType]
        (lambda: Integer(0, 2**60), ValueError, "use Real"),
        (lambda: Integer(0, math.inf), EITHER, "finite|inf"),  # pyright: ignore[reportArgumentType]
        (lambda: Categorical(["a"]), ValueError, "at least 2"),
        (lambda: Categorical([]), ValueError, "at least 2"),
        (lambda: Categorical(["a", "b", "a"]), ValueError, "different"),
        (lambda: Categorical([1, True]), ValueError, "different"),
        (lambda: Categorical("abc"), TypeError, "list of choices"),
        (lambda: Categorical(["a", None]), TypeError, "None"),  # pyright: ignore[reportArgumentType]
        (lambda: Categorical([1.0, math.nan]), ValueError, "nan"),
        (lambda: Space(), ValueError, "at least 1 dimension"),
        (lambda: Space(a=(0, 1)), TypeError, "'a'"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_impossible_spaces_are_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": math.nan}, "row 1, dimension 'rate': received nan"),
        ({"rate": math.inf}, "row 1, dimension 'rate': received inf"),
        ({"rate": 3.001}, r"row 1, dimension 'rate': received 3.001.*\[-2.0, 3.0\]"),
        ({"rate": 10**400}, "row 1, dimension 'rate': received 1000"),
        ({"rate": "0.5"}, "row 1, dimension 'rate': received '0.5'.*not a number"),
        ({"rate": True}, "row 1, dimension 'rate': received True"),
        ({"rate": np.bool_(True)}, "row 1, dimension 'rate': received True"),
        ({"rate": None}, "row 1, dimension 'rate': received None"),
        ({"rate": 1j}, "row 1, dimension 'rate': received 1j"),
        ({"rate": [1.0]}, r"row 1, dimension 'rate': received \[1.0\]"),
        ({"rate": -1.7e308}, r"row 1, dimension 'rate': received -1.7e\+308.*outside"),
        ({"lr": 0.0}, "row 1, dimension 'lr': received 0.0.*outside"),
        ({"lr": -1.0}, "row 1, dimension 'lr': received -1.0.*outside"),
        ({"lr": 0.99e-4}, "row 1, dimension 'lr'.*outside"),
        ({"depth": 3.5}, "row 1, dimension 'depth': received 3.5.*not an integer"),
        ({"depth": 13}, r"row 1, dimension 'depth': received 13.*\[1, 12\]"),
        ({"depth": 0}, "row 1, dimension 'depth'.*outside"),
        ({"depth": True}, "row 1, dimension 'depth': received True"),
        ({"act": "gelu"}, "row 1, dimension 'act': received 'gelu'.*'relu'"),
        ({"act": math.nan}, "row 1, dimension 'act': received nan"),
        ({"act": ["relu"]}, "row 1, dimension 'act'"),
        ({"bias": None}, "row 1, dimension 'bias': received None"),
        ({"momentum": 0.9}, "row 1 has the unknown 'momentum'"),
    ],
)
@pytest.mark.parametrize("where", ["", "task 3"])
def test_space_bad_values_name_their_row_and_dimension(change, message, where):
    points = [POINT, {**POINT, **change}, POINT]
    prefix = f"^{where}, " if where else "^"
    with pytest.raises(ValueError, match=prefix + message) as caught:
        MIXED.encode(points, where=where)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([{"a": 0.5, "b": 1}, {"a": 0.5}], "row 1 lacks 'b'"),
        ([{"a": 0.5, "c": 1}], "row 0 lacks 'b' and has the unknown 'c'"),
        ([{"a": 0.5, "b": 1, "c" * 9999: 1}], "row 0 has the unknown 'c{56}[.]{3}; give exactly"),
        ([{"a": 0.5, "b": 1}, [0.5, 1]], "row 1: received .* among dicts"),
        ([[0.5, 1], [0.5]], r"row 1: received \[0.5\]"),
        ([[0.5, 1], {"a": 0.5, "b": 1}], "row 1: received"),
        ([0.5, 0.6], "row 0: received 0.5"),
        (np.zeros(3), r"shape \(3,\).*2 dimension"),
        (np.zeros((3, 5)), r"shape \(3, 5\).*'a', 'b'"),
        (np.zeros((3, 0)), r"shape \(3, 0\)"),
        (np.zeros((3, 2, 1)), r"shape \(3, 2, 1\)"),
        (np.array(0.5), r"shape \(\)"),
        (np.array([[0.5, "1"]]), "row 0, dimension 'a'.*not a number.*object arrays"),
        (np.array([[0.5, 1], [np.nan, 1]]), "row 1, dimension 'a': received nan"),
        (np.array([[0.5, 1], [0.5, 6]]), "row 1, dimension 'b': received 6"),
        ({"a": 0.5, "b": 1}, "single dict.*list of dicts"),
        ("ab", "single str"),
        (pd.DataFrame({"a": [0.5]}), "frame lacks 'b'"),
        (pd.DataFrame({"a": [0.5], "b": [1], "y": [0.0]}), "frame has the unknown 'y'"),
        (pd.DataFrame([[0.5, 1, 2]], columns=["a", "b", "b"]), "more than one column named 'b'"),
        (pd.DataFrame({"a": [0.5, None], "b": [1, 2]}), "row 1, dimension 'a': received nan"),
    ],
)
def test_space_bad_forms_of_points_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        AB.encode(points)


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (np.zeros(2), r"shape \(2,\)"),
        (np.zeros((1, 3)), r"shape \(1, 3\).*, 2\)"),
        (np.array([[0.5, 0.5], [np.nan, 0.5]]), "point 1 is"),
    ],
)
def test_space_bad_encoded_points_are_refused(unit, message):
    with pytest.raises(ValueError, match=message):
        AB.decode(unit)
