r"""Constrained outcomes before the first result: where their priors expect them to be allowed.

A row is likely feasible if its constraints hold together with probability at least 1/2, outcomes
taken to be independent. Where no row is, the bar is just below the most likely one.
"""

import numpy as np
from ax.core.types import ComparisonOp, TParameterization
from jaxtyping import Float

from metaprior.adapters.ax._points import known_part
from metaprior.adapters.ax._priors import Metrics
from metaprior.data import Features

LIKELY = 0.5
# Of the probability of the best row, if no row is likely feasible.
NEARLY_BEST = 0.9


def likely_feasible(
    rows: list[TParameterization], metrics: Metrics, features: Features | None
) -> list[TParameterization]:
    """The rows that are likely feasible, or those that are least unlikely to be."""
    probability = _probability(rows, metrics, features)
    bar = min(LIKELY, NEARLY_BEST * float(probability.max(initial=0.0)))
    return [row for row, is_likely in zip(rows, probability >= bar, strict=True) if is_likely]


def is_likely_feasible(row: TParameterization, metrics: Metrics, features: Features | None) -> bool:
    """Whether the constraints are expected to hold at a point."""
    return bool(_probability([row], metrics, features)[0] >= LIKELY)


def _probability(
    rows: list[TParameterization], metrics: Metrics, features: Features | None
) -> Float[np.ndarray, " n"]:
    """Probability that all constraints of outcomes with a prior hold at each row."""
    total = np.ones(len(rows))
    for name, op, bound in metrics.bounds:
        prior = metrics.priors[name]
        posterior = prior.condition([], [], features=features)
        below = posterior.cdf([known_part(prior, row) for row in rows], [bound] * len(rows))
        total *= below if op is ComparisonOp.LEQ else 1.0 - below
    return total
