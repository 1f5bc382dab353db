"""What an optimiser cannot be made of, and values that cannot be told: one sentence each."""

import math
import os
from typing import Any

import numpy as np

from metaprior.belief import Prior
from metaprior.bo._acquisition import AbstractAcquisition
from metaprior.bo._search import Search
from metaprior.bo._window import Window
from metaprior.data import LARGEST_VALUE, as_native, checked_seed
from metaprior.words import shortened

# How many points may be asked for at once: each is chosen after those before it.
MOST = 10_000


def require_prior(prior: Any) -> None:
    """Raise an error for what is no prior, such as the name of its folder."""
    if not isinstance(prior, Prior):
        is_folder = isinstance(prior, (str, os.PathLike))
        hint = f"metaprior.load({str(prior)!r})" if is_folder else "metaprior.learn(tasks)"
        raise TypeError(f"`prior` is {shortened(prior)}, which is no prior; give one: {hint}.")


def check_settings(
    seed: Any, *, acquisition: Any = None, search: Any = None, window: Any = None
) -> int:
    """The seed as a Python number; an error for the first setting that is of the wrong kind."""
    if acquisition is not None and not isinstance(acquisition, AbstractAcquisition):
        raise TypeError(
            f"`acquisition` is {shortened(acquisition)}; give an object, such as "
            "metaprior.bo.LogExpectedImprovement(), or leave it out."
        )
    if search is not None and not isinstance(search, Search):
        raise TypeError(
            f"`search` is {shortened(search)}; give a metaprior.bo.Search, or leave it out."
        )
    if window is not None and not isinstance(window, Window):
        raise TypeError(
            f"`window` is {shortened(window)}; give a metaprior.bo.Window, or leave it out."
        )
    return checked_seed(seed)


def require_count(n: int | None, words: str = "points") -> int:
    """The number of points asked for, one if nothing is said; or of something else."""
    count = as_native(n)
    is_whole = isinstance(count, int) and not isinstance(count, bool)
    if n is not None and not (is_whole and 1 <= count <= MOST):
        raise ValueError(
            f"Cannot ask for {shortened(n)} {words}; give a whole number, at least 1 and at most "
            f"{MOST:,}."
        )
    return 1 if n is None else count


def finite_or_failed(x: dict[str, Any], value: Any) -> float:
    """What was told of `x`, NaN for a failure; a text or a bool is no number, as in a file."""
    native = as_native(value)
    is_wrong = isinstance(native, (bool, str, bytes, np.ndarray))
    try:
        number = math.nan if native is None else math.inf if is_wrong else float(native)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if abs(number) > LARGEST_VALUE:
        raise ValueError(
            f"The value told for {shortened(x, 200)} is {shortened(value)}; tell a finite number "
            f"of at most {LARGEST_VALUE:g} in size, or None for a failure."
        )
    return number


def positive(name: str, number: float, *, most: float = math.inf) -> float:
    """The number, if it is positive and at most `most`.

    - `name`: what it is, for the error.
    """
    native = as_native(number)
    is_number = isinstance(native, (int, float)) and not isinstance(native, bool)
    if not is_number or not 0.0 < native <= most:
        limit = "" if math.isinf(most) else f" of at most {most:g}"
        raise ValueError(f"The {name} is {shortened(number)}; give a positive number{limit}.")
    return native
