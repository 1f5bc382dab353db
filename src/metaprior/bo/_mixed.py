r"""Expectations under a mixture: $\ln \sum_k w_k e^{v_k}$, and how much each member adds to it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Mixed(NamedTuple):
    """The logarithm of the sum, and the members' shares of it, which sum to 1."""

    values: Float[np.ndarray, "..."]
    shares: Float[np.ndarray, "K ..."]


def log_mixed(logs: Float[np.ndarray, "K ..."], weights: Float[np.ndarray, " K"]) -> Mixed:
    """The expectation of what is given as logarithms, one entry per member along the first axis."""
    with np.errstate(divide="ignore"):
        logs = logs + np.log(weights).reshape(-1, *[1] * (logs.ndim - 1))
    most = np.max(logs, axis=0)
    parts = np.exp(logs - most)
    total = np.sum(parts, axis=0)
    return Mixed(most + np.log(total), parts / total)
