"""Replaying held-out runs: after how many queries is the best point of a run found?

Only the points of the run can be queried, so every value is known. A surrogate chooses the next one
by its upper confidence bound; the recorded order is what really happened.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from metaprior.findings import Replay
from metaprior.learning._exam import Exam
from metaprior.learning._predict import AbstractPredictors, Questions
from metaprior.metrics import mean_and_interval

BETA = 1.0
# A run is solved when the regret is at most this share of the distance from its median to its best.
SOLVED = 0.05
# Fewer points than this leave nothing to choose between.
FEWEST_POINTS = 4


class Regrets(NamedTuple):
    """Normalised regret after each step of each run, by what chose the points; NaN after the end of
    a run."""

    learned: Float[np.ndarray, "runs steps"]
    baseline: Float[np.ndarray, "runs steps"]
    recorded: Float[np.ndarray, "runs steps"]


class _TimeIsUp(Exception):
    """The replay was cut short."""


def _never() -> bool:
    return False


def can_be_replayed(exam: Exam) -> bool:
    """Whether any examined run is long enough."""
    return len(long_runs(exam)[1]) > 0


def long_runs(exam: Exam) -> tuple[Int[np.ndarray, " runs"], Int[np.ndarray, " runs"]]:
    """The fold and the row of each examined run that leaves something to choose between."""
    folds, places = np.nonzero(exam.is_real)
    rows = exam.rows[folds, places]
    long = exam.lengths[rows] >= FEWEST_POINTS
    return folds[long], rows[long]


def replay(
    judged: AbstractPredictors,
    baselines: AbstractPredictors,
    exam: Exam,
    columns: Int[np.ndarray, " d"],
    is_over: Callable[[], bool] = _never,
) -> Regrets | None:
    """Replay every examined run with the priors that did not see it; `None` if time was up before
    the end.

    - `judged`, `baselines`: the priors, and what they are compared with, one for each fold.
    - `exam`: one that `can_be_replayed`.
    - `columns`: those of points, without features of tasks.
    - `is_over`: whether time is up.
    """
    folds, rows = long_runs(exam)
    lengths, x, y = exam.lengths[rows], exam.x[rows], exam.y[rows]
    is_real = np.arange(y.shape[1]) < lengths[:, None]
    # Once the best point of a run has been queried its regret stays 0.
    best = np.max(np.where(is_real, y, -np.inf), axis=1)
    try:
        ours = query_order(judged, folds, x, y, lengths, enough=best, is_over=is_over)
        # A non-transfer GP learns nothing from columns of task features.
        known = x[:, :, columns]
        theirs = query_order(baselines, folds, known, y, lengths, enough=best, is_over=is_over)
    except _TimeIsUp:
        return None
    recorded = np.broadcast_to(np.arange(y.shape[1]), y.shape)
    return Regrets(*(_regret(y, lengths, order) for order in (ours, theirs, recorded)))


def evaluations_until_solved(regret: Float[np.ndarray, "runs steps"]) -> Int[np.ndarray, " runs"]:
    """The number of evaluations after which each run was solved."""
    return np.argmax(regret <= SOLVED, axis=1) + 1


def summary(found: Regrets) -> Replay:
    """Mean curves, and the evaluations that the prior saves relative to the baseline."""
    saved = evaluations_until_solved(found.baseline) - evaluations_until_solved(found.learned)
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


def query_order(
    priors: AbstractPredictors,
    who: Int[np.ndarray, " runs"],
    x: Float[np.ndarray, "runs points d"],
    y: Float[np.ndarray, "runs points"],
    lengths: Int[np.ndarray, " runs"],
    *,
    enough: Float[np.ndarray, " runs"],
    is_over: Callable[[], bool] = _never,
    most: int | None = None,
) -> Int[np.ndarray, "runs points"]:
    """The points of each run in the order in which a prior queries them; then the padding.

    - `who`: for each run, which of the priors.
    - `enough`: a value after which the order of what is left of a run does not matter.
    - `is_over`: asked before each query; the first "yes" raises.
    - `most`: the number of queries, if not all points are to be asked.
    """
    order = np.tile(np.arange(y.shape[1]), (len(y), 1))
    going_on = np.arange(len(y))
    longest = int(lengths.max())
    for t in range(longest if most is None else min(most, longest)):
        if not len(going_on):
            break
        if is_over():
            raise _TimeIsUp
        bound = _bounds(priors, who[going_on], x, y, going_on, order[going_on], t)
        # Among equals the point that comes first in the run: the bounds in its own order.
        position = np.argsort(order[going_on], axis=1)
        open_to_choice = (position >= t) & (position < lengths[going_on, None])
        bound = np.where(open_to_choice, np.take_along_axis(bound, position, axis=1), -np.inf)
        chosen = np.argmax(bound, axis=1)
        place = np.take_along_axis(position, chosen[:, None], axis=1)[:, 0]
        order[going_on, place], order[going_on, t] = order[going_on, t], chosen
        unsolved = y[going_on, chosen] < enough[going_on]
        going_on = going_on[unsolved & (t + 1 < lengths[going_on])]
    return order


def _bounds(priors, who, x, y, runs, order, t: int) -> Float[np.ndarray, "runs points"]:
    """Upper confidence bounds at the points of some runs, in `order`, after `t` of them."""
    # Each run, in its present order, is a run of its own.
    ordered, each = (runs[:, None], order), np.arange(len(runs))
    found = priors.expect(Questions(who, each, np.full(len(each), t), x[ordered], y[ordered]))
    return found.mean + BETA * np.sqrt(found.variance)
