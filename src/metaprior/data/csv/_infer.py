"""A space from the data, where none is given.

| the cells of a column | dimension |
|---|---|
| all the same | none: it is left out |
| `true` and `false` | `Categorical([False, True])` |
| other text | `Categorical`, the choices sorted |
| whole numbers, written without a point | `Integer` from the smallest to the largest |
| other numbers | `Real` from the smallest to the largest |

Numbers are taken on a log scale if they are positive, span two decades or more, and are spread more
evenly there. Numbers on a grid get its step (see `_grid_of`).

With `bounds="wider"`, a `Real` is wider by a twentieth of the range on both sides. A bound is not
moved past 0, nor past 1 if all numbers lie between 0 and 1: learning rates and fractions stay what
they are.
"""

import math
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

import numpy as np
from jaxtyping import Float

from metaprior.data import Categorical, Complaint, Dimension, Integer, Real
from metaprior.data.csv._cells import BOOLS, number, refuse_missing
from metaprior.words import shortened

BOUNDS = ("data", "wider")
WIDENED = 0.05
DECADES = 2.0
# More texts than this in one column are names, dates or remarks, and no choices.
MOST_CHOICES = 64
CONDITION = "; if it exists only under a condition, say so with `when` in a space file"
# float64 tells neighbouring positions apart up to here; see `Integer`.
_LARGEST_INTEGER = 2**40
# A column on a grid has so many different numbers, or each of them so often; and that all are
# multiples of the same step is less likely than this to be chance.
FEWEST_ON_GRID = 8
OFTEN = 4
CHANCE = 1e-3
# A finer grid is as good as none.
MOST_STEPS = 10_000
_MOST_DECIMALS = 12
# Bounds are rounded outwards to this many digits, of themselves or of the range.
_DIGITS = 3


def checked_choice_of_bounds(bounds: str) -> str:
    """`bounds`, if it is one of those there are."""
    if bounds not in BOUNDS:
        raise ValueError(
            f"Unknown bounds {bounds!r}; give 'data', the lowest and highest value of each column, "
            "or 'wider', a little more than these."
        )
    return bounds


def infer_dimension(
    cells: list[str], complain: Complaint, *, bounds: str = "data"
) -> Dimension | None:
    """The dimension that a column looks like; `None` if all its cells are the same.

    - `bounds`: of numbers: those of the `"data"`, or `"wider"` ones.
    """
    refuse_missing(cells, complain, else_=CONDITION)
    numbers = [number(cell) for cell in cells]
    are_numbers = [value is not None for value in numbers]
    if not any(are_numbers):
        return _categorical(cells, complain)
    if not all(are_numbers):
        raise _mixed(cells, are_numbers, complain)
    values = np.array(numbers, float)
    if not np.isfinite(values).all():
        first = int(np.argmin(np.isfinite(values)))
        raise complain(first, f"{cells[first]} is too large a number; repair the cell")
    low, high = float(values.min()), float(values.max())
    if low == high:
        return None
    log = low > 0 and math.log10(high) - math.log10(low) >= DECADES and _evener_in_log(values)
    whole = all(isinstance(value, int) for value in numbers)
    step = None if log else _grid_of(cells)
    if whole and max(abs(low), abs(high)) <= _LARGEST_INTEGER:
        return Integer(int(low), int(high), log=log, step=None if step is None else int(step))
    try:
        ends = (low, high) if bounds == "data" else _widened(low, high, log)
        if step is not None:
            return Real(*_on_grid(low, high, ends, step), step=float(step))
        return Real(*ends, log=log)
    except ValueError as error:
        first = int(np.argmax(values))
        raise complain(
            first, f"no range holds the numbers from {low} to {high} ({error})"
        ) from None


def _categorical(cells: list[str], complain: Complaint) -> Categorical | None:
    choices = sorted(set(cells))
    if {choice.lower() for choice in choices} == set(BOOLS):
        return Categorical([False, True])
    if len(choices) > MOST_CHOICES:
        raise complain(
            0,
            f"the column holds {len(choices)} different texts, such as {shortened(cells[0])}, too "
            "many to be choices; leave it out with --ignore (ignore=... in Python), or list them "
            "in a space file",
        )
    return Categorical(choices) if len(choices) > 1 else None


def _mixed(cells: list[str], are_numbers: list[bool], complain: Complaint) -> ValueError:
    """An error that names the first cell of the rarer type."""
    numbers_are_rare = sum(are_numbers) < len(cells) / 2
    first = are_numbers.index(numbers_are_rare)
    kind, usual = ("a number", "text") if numbers_are_rare else ("not a number", "numbers")
    return complain(
        first,
        f"{shortened(cells[first])} is {kind}, and most cells of the column are {usual}; repair "
        "it, or declare the column as categorical in a space file",
    )


def _evener_in_log(values: Float[np.ndarray, " m"]) -> bool:
    """Whether the different values are closer to even spacing in their logarithms."""
    different = np.unique(values)
    return _unevenness(np.log(different)) < _unevenness(different)


def _unevenness(ordered: Float[np.ndarray, " m"]) -> float:
    """The largest distance of the scaled, ordered values from evenly spaced ones."""
    scaled = (ordered - ordered[0]) / (ordered[-1] - ordered[0])
    return float(np.max(np.abs(scaled - np.linspace(0.0, 1.0, len(ordered)))))


def _grid_of(cells: list[str]) -> Decimal | None:
    """The distance of which all numbers are multiples, from the lowest on; `None` if that may be
    chance, or is no more than the decimals that numbers are written with.

    Numbers that are multiples of one unit are multiples of g of them, d different ones, with
    probability $g^{-(d-1)}$. One that needs k decimals fewer than others is a multiple of 10^k
    units anyway, and says less: it is one of g units with probability gcd(g, 10^k) / g.
    """
    numbers = sorted({Decimal(cell) for cell in cells})
    exponent = min(int(number.normalize().as_tuple().exponent) for number in numbers)
    # Few numbers that come back again and again are on a grid, too.
    many = len(numbers) >= FEWEST_ON_GRID or len(cells) >= OFTEN * len(numbers)
    if len(cells) < FEWEST_ON_GRID or not many or exponent < -_MOST_DECIMALS:
        return None
    unit = Decimal(1).scaleb(min(exponent, 0))
    if (numbers[-1] - numbers[0]) / unit > _LARGEST_INTEGER:
        return None
    multiple = math.gcd(*(int((number - numbers[0]) / unit) for number in numbers))
    steps = (numbers[-1] - numbers[0]) / (multiple * unit)
    if multiple < 2 or steps > MOST_STEPS:
        return None
    fewer = [_decimals(unit) - _decimals(number) for number in numbers[1:]]
    evidence = sum(math.log(multiple / math.gcd(multiple, 10**k)) for k in fewer)
    return None if evidence < -math.log(CHANCE) else multiple * unit


def _decimals(number: Decimal) -> int:
    """How many decimals the number needs."""
    return max(-int(number.normalize().as_tuple().exponent), 0)


def _on_grid(
    low: float, high: float, bounds: tuple[float, float], step: Decimal
) -> tuple[float, float]:
    """The grid through `low` and `high`, as far as the bounds leave room."""
    lowest, highest = Decimal(repr(low)), Decimal(repr(high))
    below = int((lowest - Decimal(repr(bounds[0]))) / step)
    above = int((Decimal(repr(bounds[1])) - highest) / step)
    return float(lowest - below * step), float(highest + above * step)


def _widened(low: float, high: float, log: bool) -> tuple[float, float]:
    """Bounds a little outside of the data, so that the best point need not be at the border."""
    if log:
        ratio = math.exp(WIDENED * (math.log(high) - math.log(low)))
        bounds = _rounded(low / ratio, low / ratio), _rounded(high * ratio, high * ratio, up=True)
    else:
        width = high - low
        bounds = (
            _rounded(low - WIDENED * width, width),
            _rounded(high + WIDENED * width, width, up=True),
        )
    least = math.ulp(0.0) if log else 0.0 if low >= 0 else -math.inf
    most = 1.0 if 0 <= low and high <= 1 else 0.0 if high <= 0 else sys.float_info.max
    return max(bounds[0], least), min(bounds[1], most)


def _rounded(value: float, scale: float, *, up: bool = False) -> float:
    """`value` rounded down, or up, to a few decimal digits of `scale`."""
    if not 0 < scale < math.inf or not math.isfinite(value):
        return value
    with localcontext(prec=2000, rounding=ROUND_CEILING if up else ROUND_FLOOR):
        digit = Decimal(1).scaleb(Decimal(repr(scale)).adjusted() - _DIGITS + 1)
        return float((Decimal(repr(value)) / digit).to_integral_value() * digit)
