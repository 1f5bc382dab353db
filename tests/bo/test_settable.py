"""Queries that a person can set: three significant digits, judged after rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metaprior as mp
from metaprior.bo._settable import roundings


@pytest.mark.parametrize(
    ("low", "high", "value", "expected"),
    [
        (20.0, 120.0, 93.2417, [93.2, 93.3]),
        (1000.0, 1010.0, 1003.2417, [1003.2, 1003.3]),
        (0.0, 100.0, 0.0123456, [0.0123, 0.0124]),
        (-5.0, 5.0, -1.2399, [-1.24, -1.23]),
        (0.0, 119.87, 119.86, [119.87, 119.0]),
        (0.0, 1.0, 0.5, [0.5]),
        (0.0, 1.0, 0.0, [0.0]),
        (0.0, 2e12, 1.23456e12, [1.23e12, 1.24e12]),
    ],
)
def test_roundings_have_three_digits_of_the_value_or_of_its_range(low, high, value, expected):
    space = mp.Space(x=mp.Real(low, high))
    assert [point["x"] for point in roundings({"x": value}, space, 3)] == expected


def test_roundings_leave_alone_what_can_be_set():
    space = mp.Space(
        n=mp.Integer(1, 9), act=mp.Categorical(["a", "b"]), share=mp.Real(0.0, 1.0, step=0.125)
    )
    point = {"n": 3, "act": "b", "share": 0.625}
    assert roundings(point, space, 1) == [point]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0.0, 1.0), st.integers(1, 6))
def test_roundings_are_near_and_inside(low, width, position, digits):
    space = mp.Space(x=mp.Real(low, low + width))
    (point,) = space.decode([[position]])
    for each in roundings(point, space, digits):
        assert low <= each["x"] <= low + width
        unit = max(abs(point["x"]), 0.0)
        off = abs(each["x"] - point["x"])
        assert off <= 10.0 ** (1 - digits) * min(unit, width) * (1 + 1e-9) + 1e-9 * (unit + width)


def test_optimizer_asks_for_points_of_so_many_digits(hill_prior):
    optimizer = mp.Optimizer(hill_prior, seed=0)
    found = []
    for _ in range(3):
        batch = optimizer.ask(2, digits=2)
        found += batch
        for point in batch:
            assert all(repr(value) == repr(float(f"{value:.2g}")) for value in point.values())
            optimizer.tell(point, 2.0 - (point["x"] - 0.3) ** 2 - (point["z"] - 6.0) ** 2)
    assert optimizer.pending == []
    # Rounding must not make the same question of two.
    assert len({tuple(point.values()) for point in found}) == len(found)


def test_optimizer_takes_the_rounding_that_is_worth_most(hill_prior):
    class Leaning(mp.bo.LogExpectedImprovement):
        """Larger x is worth more, whatever is believed."""

        def score(self, belief, anchors, rng):
            scored = super().score(belief, anchors, rng)
            return scored._replace(values=anchors[:, 0])

    plain = mp.Optimizer(hill_prior, acquisition=Leaning(), seed=0).ask()
    rounded = mp.Optimizer(hill_prior, acquisition=Leaning(), seed=0).ask(digits=1)
    assert rounded["x"] >= plain["x"] and rounded["x"] == float(f"{rounded['x']:.1g}")
    with pytest.raises(ValueError, match="Cannot ask for 0 digits; give a whole number"):
        mp.Optimizer(hill_prior).ask(digits=0)


def test_optimizer_keeps_fixed_values_as_they_are(hill_prior):
    point = mp.Optimizer(hill_prior, seed=0).ask(fixed={"z": 5.4321}, digits=2)
    assert point["z"] == pytest.approx(5.4321, abs=1e-9)
    assert np.isclose(point["x"], float(f"{point['x']:.2g}"), rtol=0, atol=1e-12)
