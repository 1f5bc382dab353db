"""Double precision for the library's own computations, without touching the caller's settings."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, run with 64-bit JAX arrays.

    Kernel matrices are singular to rounding in single precision. JAX's switch is global, and the
    caller may have good reasons to train other models in single precision beside ours, so it is
    set for the duration of a call only.
    """

    @wraps(function)
    def in_float64(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return in_float64
