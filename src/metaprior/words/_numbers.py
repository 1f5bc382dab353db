"""Numbers as a page shows them."""

import math
import re
from typing import Any

MISSING = "–"


def number(value: float | None, digits: int = 3) -> str:
    """A few significant digits: 0.0812, 12.3, 4500, 3.1e−5; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return MISSING
    size = abs(value)
    if size and not 1e-3 <= size < 1e5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        decimals = digits - 1 - (math.floor(math.log10(size)) if size else 0)
        text = f"{value:.{max(decimals, 0)}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def fixed(value: float | None, decimals: int) -> str:
    """So many decimals, for numbers of one kind below one another; huge ones are shortened."""
    if value is None or not math.isfinite(value) or abs(value) >= 1e4:
        return number(value)
    text = f"{value:.{decimals}f}"
    # What rounds to zero has no sign.
    return text.lstrip("-") if not float(text) else text.replace("-", "\N{MINUS SIGN}")


def value(of: Any) -> str:
    """A setting or a coordinate: floats shortened, everything else as it prints."""
    if isinstance(of, float):
        text = f"{of:.4g}"
        return re.sub(r"e([-+])0*", r"e\1", text).replace("e+", "e").replace("-", "\N{MINUS SIGN}")
    return str(of)


def power_of_ten(exponent: int) -> str:
    """`10⁻³`, in plain characters."""
    superscripts = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "10" + str(exponent).translate(superscripts)
