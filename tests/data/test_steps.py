"""Steps of real and integer dimensions: exact through every map, and refused where they fail."""

from decimal import Decimal

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data import Integer, Real, Space


@settings(deadline=None, max_examples=150)
@given(
    digits=st.integers(0, 6),
    low=st.integers(-(10**6), 10**6),
    step=st.integers(1, 10**4),
    count=st.integers(1, 500),
    level=st.floats(0, 1),
)
def test_steps_of_a_real_are_decimals_exactly(digits, low, step, count, level):
    """The oracle computes in decimals: 0.1 * 3 is 0.3 there."""
    unit = Decimal(1).scaleb(-digits)
    bounds = float(low * unit), float((low + step * count) * unit)
    space = Space(x=Real(*bounds, step=float(step * unit)))
    values = [float((low + step * k) * unit) for k in (0, round(level * count), count)]
    encoded = space.encode(values)
    assert [point["x"] for point in space.decode(encoded)] == values
    np.testing.assert_array_equal(space.encode(space.decode(encoded)), encoded)
    snapped = [space.snap(jnp.asarray(row)) for row in encoded]
    np.testing.assert_allclose(snapped, encoded, rtol=0, atol=1e-14)
    assert ((encoded > 0) & (encoded < 1)).all()


def test_steps_lie_evenly_and_are_equally_likely():
    space = Space(x=Real(0.0, 1.0, step=0.25))
    np.testing.assert_allclose(
        space.encode([0.0, 0.25, 0.5, 0.75, 1.0]).ravel(), [0.1, 0.3, 0.5, 0.7, 0.9], atol=1e-15
    )
    unit = (np.arange(1000) + 0.5)[:, None] / 1000
    values, counts = np.unique([p["x"] for p in space.decode(unit)], return_counts=True)
    assert values.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert counts.tolist() == [200] * 5
    assert space.is_integer.all()
    assert not space.is_real.any()


def test_steps_of_an_integer_worked_by_hand():
    space = Space(n=Integer(50, 250, step=50))
    assert [p["n"] for p in space.decode(np.linspace(0, 1, 6)[:, None])] == [
        50, 100, 150, 200, 250, 250,
    ]  # fmt: skip
    np.testing.assert_allclose(space.encode([50, 150]).ravel(), [0.1, 0.5], atol=1e-15)
    assert Integer(1, 5, step=1) == Integer(1, 5)
    assert Space.from_json(space.to_json()) == space
    neighbours = space.decode(np.asarray(space.neighbours(jnp.asarray([0.5]))))
    assert [p["n"] for p in neighbours] == [100, 200]


def test_steps_that_are_no_decimals_end_at_the_bounds():
    space = Space(x=Real(0.0, 1.0, step=1 / 3))
    assert [p["x"] for p in space.decode([[0.0], [0.3], [0.7], [1.0]])][::3] == [0.0, 1.0]
    assert len(np.unique(space.encode([p["x"] for p in space.decode([[0.3], [0.7]])]))) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(0, 1, step=0.3), "does not fit.*leads to 0.9 and past 1.0"),
        (lambda: Real(0, 1, step=2), "does not fit its bounds"),
        (lambda: Integer(1, 10, step=4), "does not fit.*leads to 9 and past 10"),
        (lambda: Real(0, 1, step=0), "not a positive number"),
        (lambda: Real(0, 1, step=float("nan")), "not a positive number"),
        (lambda: Integer(1, 5, step=-1), "not a positive number"),
        (lambda: Real(1, 100, log=True, step=1.5), "step on a log scale"),
        (lambda: Integer(1, 16, log=True, step=5), "step on a log scale"),
    ],
)
def test_steps_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_steps_that_a_value_misses_are_named():
    space = Space(x=Real(0.0, 1.0, step=0.1), n=Integer(0, 100, step=10))
    with pytest.raises(ValueError, match=r"row 1, dimension 'x'.*0.35.*multiple of 0.1"):
        space.encode([{"x": 0.3, "n": 10}, {"x": 0.35, "n": 10}])
    with pytest.raises(ValueError, match=r"row 0, dimension 'n'.*15.*multiple of 10"):
        space.encode([{"x": 0.3, "n": 15}])
