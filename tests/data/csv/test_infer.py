"""Dimensions from data, worked by hand; and bounds that always hold the data."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data import Categorical, Integer, Real
from metaprior.data.csv._infer import infer_dimension


def infer(*cells) -> Any:
    return infer_dimension(
        [str(cell) for cell in cells],
        lambda row, problem: ValueError(f"cell {row}: {problem}"),
        bounds="wider",
    )


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        # Text.
        (["relu", "tanh", "relu"], Categorical(["relu", "tanh"])),
        (["True", "false", "true"], Categorical([False, True])),
        (["adam", "adam"], None),
        (["True", "True"], None),
        # Whole numbers are not widened, however many there are.
        ([3, 1, 12, 3], Integer(1, 12)),
        ([0, 1], Integer(0, 1)),
        ([-5, 1000], Integer(-5, 1000)),
        (range(1000), Integer(0, 999)),
        ([16, 64, 256, 1024, 4096], Integer(16, 4096, log=True)),
        ([7, 7], None),
        (["2.0", "3.0"], Real(1.95, 3.05)),
        ([2**41, 0, 2**40], Real(0.0, 2.31e12)),
        # Linear: a twentieth of the range on each side, outwards to three digits of the range.
        (["-1.5", "0.25", "2.5"], Real(-1.7, 2.7)),
        (["10.5", "11.5", "30.5"], Real(9.5, 31.5)),
        (["1000000000.5", "1000000001.5"], Real(1000000000.45, 1000000001.55)),
        # Never past 0, nor past 1 for fractions.
        (["0.01", "0.4", "0.8"], Real(0.0, 0.84)),
        (["0.5", "0.9", "0.99"], Real(0.475, 1.0)),
        (["-0.5", "-3.5"], Real(-3.65, -0.35)),
        (["-0.01", "-3.5"], Real(-3.68, 0.0)),
        (["0.5", "1.5"], Real(0.45, 1.55)),
        # Three decades, wider by a twentieth: factor 10 ** 0.15 = 1.4125.
        (["0.0001", "0.001", "0.01", "0.1"], Real(7.07e-5, 0.142, log=True)),
        (["0.001", "0.01", "0.1", "1.0"], Real(7.07e-4, 1.0, log=True)),
        # Two decades or more, but evenly spread as they are.
        ([f"{i + 0.5}" for i in range(100)], Real(0.5, 104.5, step=1)),
        # On a grid that is coarser than the digits; as far as the wider bounds reach.
        (range(100, 1001, 50), Integer(100, 1000, step=50)),
        ([0.05 * i for i in range(4, 40)], Real(0.11, 2.04)),  # digits of the computer, and no grid
        ([f"{i / 20}" for i in range(4, 40)], Real(0.15, 2.0, step=0.05)),
        ([f"{i / 20}" for i in range(1, 20)], Real(0.05, 0.95, step=0.05)),
        ([100, 150, 300] * 4, Integer(100, 300, step=50)),
        # Too few to tell from chance, or no coarser than the digits.
        ([100, 150, 300], Integer(100, 300)),
        ([100, 150, 300, 350, 700, 750, 800], Integer(100, 800)),
        ([2, 4, 8, 14, 22, 30, 36, 50], Integer(2, 50)),
        ([2, 4, 8, 14, 22, 30, 36, 50, 60, 64, 70], Integer(2, 70, step=2)),
        ([f"{i / 10}" for i in range(11, 30)], Real(1.01, 2.99)),
        # Tenths are multiples of 0.02 anyway: four hundredths are too few to tell.
        (
            [*(f"{i / 10}" for i in range(11, 30)), "2.22", "2.18", "2.16", "1.66"],
            Real(1.01, 2.99),
        ),
        ([f"{i / 4}" for i in range(1, 13)], Real(0.25, 3.0, step=0.25)),
        # Less than two decades.
        (["1.0", "2.0", "4.0", "8.0", "99.0"], Real(0.0, 103.9)),
        (["1e-3", "1e-3"], None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_infer_dimension_by_hand(cells, expected):
    found = infer(*cells)
    if isinstance(expected, Real):
        assert isinstance(found, Real) and found.log is expected.log
        assert found.step == expected.step
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    else:
        assert found == expected


def test_infer_dimension_tells_uniform_from_log_uniform_draws():
    rng = np.random.default_rng(0)
    for _ in range(50):
        even = rng.uniform(0.001, 1.0, 30)
        assert not infer(*even).log
        even_in_log = 10 ** rng.uniform(-4.0, 0.0, 30)
        assert infer(*even_in_log).log


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=12, unique=True))
def test_infer_dimension_takes_the_bounds_of_the_data(values):
    cells = [repr(value + 0.0) for value in values]
    found = infer_dimension(cells, lambda row, problem: ValueError(f"{row}: {problem}"))
    if found is not None:
        assert isinstance(found, Real)
        assert (found.low, found.high) == (min(values), max(values))


@settings(deadline=None, max_examples=300)
@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=12, unique=True))
def test_infer_dimension_has_bounds_just_outside_the_data(values):
    values = [value + 0.0 for value in values]  # no negative zero beside zero
    found = infer(*values)
    if found is None:
        assert len(set(values)) == 1
        return
    assert isinstance(found, Real)
    low, high = min(values), max(values)
    assert found.low <= low and high <= found.high
    if found.log:
        margin = 0.07 * (math.log(high) - math.log(low)) + 0.02
        assert math.log(low) - math.log(found.low) <= margin
        assert math.log(found.high) - math.log(high) <= margin
    else:
        margin = 0.07 * (high - low)
        assert low - found.low <= margin and found.high - high <= margin
        assert (low < 0) == (found.low < 0) and (high > 0) == (found.high > 0)


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ([1, "", 2, ""], "cell 1: the cell is empty (the first of 2 in this column); fill it"),
        (
            ["a", ""],
            "cell 1: the cell is empty; fill it, or remove the row; if it exists only under a "
            "condition, say so with `when` in a space file",
        ),
        ([1, 2, "n/a", 3], "cell 2: 'n/a' is not a number, and most cells of the column are num"),
        (["a", "b", 7], "cell 2: '7' is a number, and most cells of the column are text; repair"),
        ([1.5, "nan"], "cell 1: 'nan' is not a number"),
        ([1.5, "1e999"], "cell 1: 1e999 is too large a number; repair the cell"),
        (["-1.7e308", "1.7e308"], "cell 1: no range holds the numbers from -1.7e+308 to 1.7e+308"),
        (
            [f"note {i}" for i in range(65)],
            "cell 0: the column holds 65 different texts, such as 'note 0', too many to be choices",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_infer_dimension_refuses_columns_that_are_not_dimensions(cells, problem):
    with pytest.raises(ValueError) as raised:
        infer(*cells)
    assert str(raised.value).startswith(problem), str(raised.value)
