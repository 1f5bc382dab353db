"""Numbers as the page writes them, by hand and by their promises."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaprior.plots._slices import _log_ticks
from metaprior.report._html import element, escaped
from metaprior.words import counted, cut, fixed, number, power_of_ten, value


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (number(0.0412), "0.0412"),
        (number(-12.34), "−12.3"),
        (number(4567.0), "4567"),
        (number(3.14e-5, 2), "3.1e−5"),
        (number(0.0), "0.00"),
        (number(None), "–"),
        (number(math.nan), "–"),
        (fixed(-0.0004, 3), "0.000"),
        (fixed(-1.26, 1), "−1.3"),
        (fixed(-123456.0, 2), "−1.23e5"),
        (value(0.05), "0.05"),
        (value(1e-4), "0.0001"),
        (value(1e7), "1e7"),
        (value(-2e-9), "−2e−9"),
        (value(True), "True"),
        (counted(1, "run"), "1 run"),
        (counted(1200, "run"), "1,200 runs"),
        (power_of_ten(-3), "10⁻³"),
        (cut("a\nb " * 9, 8), "a b a b…"),
    ],
)
def test_number_fixed_value_and_counted_by_hand(shown, expected):
    assert shown == expected


@given(st.floats(-1e300, 1e300))
def test_number_keeps_three_digits(x):
    shown = float(number(x).replace("−", "-"))
    assert shown == pytest.approx(x, rel=5.1e-3)


@given(st.text(max_size=50), st.integers(4, 20))
def test_cut_text_fits(text, limit):
    assert len(cut(text, limit)) <= limit


@given(st.text())
def test_escaped_text_has_no_markup(text):
    assert not set(escaped(text)) & set("<>\"'")
    assert element("p", text).count("<") == 2
    element("p", text, title=text).encode()


@given(st.floats(-9, 9), st.floats(0.01, 14))
def test_log_ticks_lie_inside_and_are_few(low, width):
    ticks = _log_ticks(low, low + width)
    assert 2 <= len(ticks) <= 6
    for place, label in ticks:
        assert low - 1e-6 <= place <= low + width + 1e-6
        if not label.startswith("10") or "." in label:
            continue
        superscripts = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
        if label[2:].translate(superscripts) != label[2:]:
            assert place == int(label[2:].translate(superscripts))
