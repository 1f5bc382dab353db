"""Panels of one run: its values in the order of the queries, and trust over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.plots._panels import FAINT, INK, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any


class RunHistory(NamedTuple):
    """The values of a run, one for each answer, in order; NaN for a query without one.

    - `sign`: 1 where larger is better, −1 where smaller is.
    """

    values: Float[np.ndarray, " n"]
    sign: float

    @property
    def best_so_far(self) -> Float[np.ndarray, " n"]:
        """The best value after each answer; NaN before the first."""
        return self.sign * np.fmax.accumulate(self.sign * self.values)


class TrustHistory(NamedTuple):
    """Trust in past runs after so many observations."""

    observed: Sequence[int]
    trust: Sequence[float]


def draw_run(ax: Axes, run: RunHistory) -> None:
    """Values as points, the best so far as a line, queries without a value at the lower end."""
    query = np.arange(1, len(run.values) + 1)
    has_value = ~np.isnan(run.values)
    ax.step(query, run.best_so_far, where="post", color=PALETTE[0], lw=2.2, label="best so far")
    ax.plot(query[has_value], run.values[has_value], "o", color=INK, ms=5, label="observed")
    lost = query[~has_value]
    if len(lost):
        at = ax.get_xaxis_transform()
        ax.plot(lost, np.full(len(lost), 0.03), "x", color=FAINT, transform=at, label="no value")
    ax.set_xlabel("query")
    ax.set_xlim(0.5, max(len(query), 1) + 0.5)
    ax.locator_params(axis="x", nbins=6, integer=True)
    ax.legend(loc="best", frameon=False)


def draw_trust(ax: Axes, history: TrustHistory) -> None:
    """Trust as a line between 0 and 1."""
    ax.plot(history.observed, history.trust, "o-", color=PALETTE[0], lw=2.2, ms=4)
    ax.set(ylim=(0.0, 1.02), xlabel="observations", ylabel="trust in past runs")
    ax.set_xlim(-0.25, max(history.observed[-1], 1) + 0.25)
    ax.locator_params(axis="x", nbins=6, integer=True)
