"""Replaying held-out runs: after how many queries is the best point of a run found?

Only the points of the run can be queried, so every value is known. A surrogate chooses the next one
by its upper confidence bound; the recorded order is what really happened.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from metaprior.data import Run
from metaprior.findings import Replay
from metaprior.gp import float64
from metaprior.learning._exam import Exam
from metaprior.methods import AbstractSurrogate, FittedGP
from metaprior.metrics import mean_and_interval

BETA = 1.0
# A run is solved when the regret is at most this share of the distance from its median to its best.
SOLVED = 0.05
# Fewer points than this leave nothing to choose between.
FEWEST_POINTS = 4
FIT_STEPS = 10


class Regrets(NamedTuple):
    """Normalised regret after each step of each run, by what chose the points; NaN after the end of
    a run."""

    learned: Float[np.ndarray, "runs steps"]
    fitted: Float[np.ndarray, "runs steps"]
    recorded: Float[np.ndarray, "runs steps"]


@float64
def replay(judged: AbstractSurrogate, exam: Exam, num_columns: int) -> Regrets | None:
    """Replay every examined run with the surrogate that did not see it; `None` if all are short.

    - `judged`: for each fold, a surrogate that learned from the others.
    """
    folds, places = np.nonzero(exam.is_real)
    rows = exam.rows[folds, places]
    lengths = np.asarray(exam.lengths)[rows]
    long = lengths >= FEWEST_POINTS
    if not long.any():
        return None
    folds, rows, lengths = folds[long], rows[long], lengths[long]
    x, y = exam.x[rows], exam.y[rows]
    fitted = FittedGP(num_steps=FIT_STEPS).from_scratch(num_columns)
    theirs = _replay_shared(fitted, x, y, jnp.asarray(lengths))
    ours = _replay_each(judged, jnp.asarray(folds), x, y, jnp.asarray(lengths))
    recorded = np.broadcast_to(np.arange(y.shape[1]), theirs.shape)
    values = np.asarray(y)
    return Regrets(
        *(_regret(values, lengths, np.asarray(order)) for order in (ours, theirs, recorded))
    )


def evaluations_until_solved(regret: Float[np.ndarray, "runs steps"]) -> Int[np.ndarray, " runs"]:
    """The number of evaluations after which each run was solved."""
    return np.argmax(regret <= SOLVED, axis=1) + 1


def summary(found: Regrets) -> Replay:
    """Mean curves, and the evaluations that the prior saves relative to the fitted GP."""
    saved = evaluations_until_solved(found.fitted) - evaluations_until_solved(found.learned)
    interval = None
    if len(saved) > 1:
        mean, half_width = mean_and_interval(saved.astype(float))
        interval = (float(mean - half_width), float(mean + half_width))
    # A run that has ended stays where it ended.
    curves = (np.nanmean(_filled(regret), axis=0) for regret in found)
    return Replay(
        tuple(range(1, found.learned.shape[1] + 1)),
        *(tuple(curve.tolist()) for curve in curves),
        runs=len(saved),
        saved_evaluations=float(np.mean(saved)),
        saved_interval=interval,
    )


def _filled(regret: Float[np.ndarray, "runs steps"]) -> Float[np.ndarray, "runs steps"]:
    last = np.nanmin(regret, axis=1, keepdims=True)
    return np.where(np.isnan(regret), last, regret)


def _regret(values, lengths, order) -> Float[np.ndarray, "runs steps"]:
    """1 at the median of a run and 0 at its best; a run whose values are all equal is solved.

    Where half of the values or more are the best one, 1 is at the worst.
    """
    asked = np.take_along_axis(values, order, axis=1)
    steps = np.arange(values.shape[1])
    within = steps < lengths[:, None]
    best_so_far = np.maximum.accumulate(np.where(within, asked, -np.inf), axis=1)
    best = np.max(np.where(within, values, -np.inf), axis=1, keepdims=True)
    median = np.array([[np.median(v[:length])] for v, length in zip(values, lengths, strict=True)])
    worst = np.min(np.where(within, values, np.inf), axis=1, keepdims=True)
    spread = np.where(best > median, best - median, best - worst)
    spread = np.where(spread > 0, spread, 1.0)
    return np.where(within, (best - best_so_far) / spread, np.nan)


@eqx.filter_jit
def _replay_shared(surrogate, x, y, lengths) -> Int[Array, "runs steps"]:
    return jax.lax.map(lambda run: _order(surrogate, *run), (x, y, lengths))


@eqx.filter_jit
def _replay_each(surrogates, folds, x, y, lengths) -> Int[Array, "runs steps"]:
    arrays, static = eqx.partition(surrogates, eqx.is_array)

    def one(run):
        fold, *run = run
        own = jax.tree.map(lambda leaf: leaf[fold], arrays)
        return _order(eqx.combine(own, static), *run)

    return jax.lax.map(one, (folds, x, y, lengths))


def _order(surrogate: AbstractSurrogate, x, y, length) -> Int[Array, " steps"]:
    """The points of a run in the order in which the surrogate queries them; then the padding."""
    steps = jnp.arange(y.shape[0])

    def step(order, t):
        run = Run(x[order], y[order], t)
        found = jax.vmap(surrogate.condition(run).moments)(x)
        bound = found.mean + BETA * jnp.sqrt(found.variance)
        asked = jnp.any((order[:, None] == steps[None]) & (steps[:, None] < t), axis=0)
        chosen = jnp.argmax(jnp.where(asked | (steps >= length), -jnp.inf, bound))
        return order.at[t].set(jnp.where(t < length, chosen, t)), None

    # Places not reached yet hold some point; it is beyond the length of the run so far.
    order, _ = jax.lax.scan(step, steps, steps)
    return order
