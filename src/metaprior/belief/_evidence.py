"""How well beliefs predicted a run, by one rule for every kind of belief.

The order of the points is not that in which they were observed: a policy observes a cluster around
one optimum sooner or later, which any model predicts well. Every point is the one farthest from
those before it, and counts the less the closer it is to them.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._linalg import LOG_2_PI

# At most this many points of a run are scored: enough to decide, at a bounded cost.
MOST_SCORED = 32
# Points closer than about this say the same twice, in units of sqrt(d).
NOVELTY_LENGTHSCALE = 0.2


class ScatteredRun(NamedTuple):
    """Points of a run in an order of their own, and how new each is beside those before it."""

    x: Float[np.ndarray, "m d"]
    y: Float[np.ndarray, " m"]
    novelty: Float[np.ndarray, " m"]


def scattered(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], *, outwards: bool
) -> ScatteredRun:
    r"""At most `MOST_SCORED` points of a run, each the farthest from those before it.

    The first is the one nearest to the centre of the space if `outwards`, else the one farthest
    from it. A point at distance $r$ from the nearest one before it has novelty
    $1 - e^{-r^2 / \ell^2}$.
    """
    # Where two points are equally far, their values and coordinates decide, never their order.
    rows = canonical_order(x, y)
    x, y = x[rows], y[rows]
    num = min(MOST_SCORED, len(y))
    sign, not_yet, chosen = (1.0 if outwards else -1.0), 1e6, -1.0
    squares = not_yet - sign * np.sum((x - 0.5) ** 2, axis=1)
    order, nearest = np.zeros(num, int), np.zeros(num)
    for i in range(num):
        farthest = int(np.argmax(squares))
        order[i], nearest[i] = farthest, squares[farthest]
        apart = np.sum((x - x[farthest]) ** 2, axis=1)
        squares = np.where(squares >= 0.0, np.minimum(squares, apart), squares)
        squares[farthest] = chosen
    scale = NOVELTY_LENGTHSCALE**2 * x.shape[1]
    return ScatteredRun(x[order], y[order], -np.expm1(-nearest / scale))


def log_scores(
    belief: AbstractBelief, run: ScatteredRun, resolution_variance: float
) -> Float[np.ndarray, " m"]:
    """Log density of each point, by the first two moments of what `belief` expected.

    - `resolution_variance`: differences of this size do not matter.
    """
    expected = belief.in_turn(run.x, run.y)
    variance = expected.variance + resolution_variance
    errors = (run.y - expected.mean) ** 2 / variance
    return -0.5 * (errors + np.log(variance) + LOG_2_PI)


def canonical_order(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> np.ndarray:
    """Rows sorted by value, then by point: for what must not depend on the order of a run."""
    return np.lexsort([*(x[:, j] for j in reversed(range(x.shape[1]))), y])
