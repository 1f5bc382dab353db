r"""How well a surrogate predicted a run, by one rule for every kind of surrogate.

Points are predicted in stages, each from the points before it,

    stage           0    1    2       3          4 ...
    predicted       1st  2nd  3rd-4th 5th-8th    9th-16th
    predicted from  0    1    2       4          8

so that a score is close to the marginal likelihood (a sum of one-step predictions) and costs a few
conditionings, whatever the surrogate; nothing is judged by data that it was fitted to.

The order is not that in which the points were observed. A policy observes what its model finds
promising, and sooner or later a cluster around one optimum, which any model predicts well, also one
that is wrong about everything else. Here every point is the one farthest from those before it, and
counts the less the closer it is to them: points of a cluster come late and count for nothing.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from metaprior.data import Run, canonical_order
from metaprior.methods._method import AbstractSurrogate

# At most this many points of a run are scored: enough to decide, at a bounded cost.
MOST_SCORED = 32
# Points closer than about this say the same twice, in units of sqrt(d).
NOVELTY_LENGTHSCALE = 0.2


class SpreadOut(NamedTuple):
    """Points of a run in an order of their own, and how new each is beside those before it."""

    run: Run
    novelty: Float[Array, " m"]


def spread_out(run: Run, outwards: Float[Array, ""]) -> SpreadOut:
    r"""At most `MOST_SCORED` points of a run, each the farthest from those before it.

    The first is the one nearest to the centre of the space if `outwards` is 1, and the one farthest
    from it if that is -1.

    A point at distance $r$ from the nearest one before it has novelty $1 - e^{-r^2 / \ell^2}$: what
    that one does not say of its value if functions vary over a lengthscale $\ell$.
    """
    # Where two points are equally far, their values and coordinates decide, never their order.
    rows = canonical_order(run.x, run.y, run.mask)
    x, y, mask = run.x[rows], run.y[rows], run.mask[rows]
    chosen, padding, not_yet = -1.0, -2.0, 1e6

    def step(squares: Float[Array, " n"], _):
        farthest = jnp.argmax(squares)
        apart = jnp.sum((x - jnp.broadcast_to(x[farthest], x.shape)) ** 2, axis=1)
        left = jnp.where(squares >= 0.0, jnp.minimum(squares, apart), squares)
        taken = mask & (jnp.arange(y.shape[0]) == farthest)
        return jnp.where(taken, chosen, left), (farthest, squares[farthest])

    start = jnp.where(mask, not_yet - outwards * jnp.sum((x - 0.5) ** 2, axis=1), padding)
    _, (order, squares) = jax.lax.scan(step, start, None, length=min(MOST_SCORED, y.shape[0]))
    length = jnp.minimum(run.length, MOST_SCORED)
    scale = NOVELTY_LENGTHSCALE**2 * x.shape[1]
    novelty = jnp.where(jnp.arange(order.shape[0]) < length, -jnp.expm1(-squares / scale), 0.0)
    return SpreadOut(Run(x[order], y[order], length), novelty)


def stages(num: int) -> tuple[Int[np.ndarray, " stages"], Int[np.ndarray, " num"]]:
    """The number of points that each stage is predicted from, and the stage of each point."""
    stage_of = np.array([i.bit_length() for i in range(num)])
    return np.array([0, *(2 ** np.arange(stage_of[-1]))]), stage_of


def scores(
    surrogate: AbstractSurrogate, run: Run, resolution_variance: Float[Array, ""]
) -> Float[Array, " m"]:
    """Log density of each point, by the first two moments of what `surrogate` expected.

    - `resolution_variance`: differences of this size do not matter.
    """
    contexts, stage_of = stages(run.y.shape[0])

    def at_stage(context):
        posterior = surrogate.condition(Run(run.x, run.y, jnp.minimum(context, run.length)))
        found = jax.vmap(posterior.moments)(run.x)
        return norm.logpdf(run.y, found.mean, jnp.sqrt(found.variance + resolution_variance))

    every = jax.lax.map(at_stage, jnp.asarray(contexts))
    return every[stage_of, np.arange(len(stage_of))]
