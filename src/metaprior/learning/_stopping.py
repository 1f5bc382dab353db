"""How far to believe a belief that says that a run may stop: its statements about held-out runs.

Each examined run is replayed: a prior that did not see it chooses among its points. After some of
them, functions drawn from that prior at the points of the run state with which probability the best
so far is within a twentieth of the distance from the median to the best of these points; the
recorded values say whether it was.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief import NEARLY, left_in
from metaprior.findings import StoppingCalibration
from metaprior.learning._exam import Exam
from metaprior.learning._predict import AbstractPredictors
from metaprior.learning._replay import long_runs, query_order

# Numbers of queries after which a statement is made: while it is open where the best point is.
SEEN = (1, 2, 3, 4, 6, 8)
# Fewer statements say little; the curve has a place for each so many of them.
FEWEST_STATEMENTS, PER_PLACE = 40, 10
# At each place the belief itself counts as so many outcomes.
OWN_OUTCOMES = 2.0
# Statements nearer than this are one.
NEAREST = 1e-3


def stopping_of(
    judged: AbstractPredictors, exam: Exam, is_over: Callable[[], bool]
) -> StoppingCalibration | None:
    """What became of the statements; `None` if there are too few, or if time was up.

    - `judged`: the priors, one for each fold.
    - `is_over`: whether time is up.
    """
    folds, rows = long_runs(exam)
    stated: list[float] = []
    happened: list[bool] = []
    if len(rows) * len(SEEN) < FEWEST_STATEMENTS:
        return None
    for fold, row in zip(folds.tolist(), rows.tolist(), strict=True):
        length = int(exam.lengths[row])
        x, y = exam.x[row, :length], exam.y[row, :length]
        near = NEARLY * (np.max(y) - np.median(y))
        order = query_order(
            judged,
            np.array([fold]),
            x[None],
            y[None],
            np.array([length]),
            enough=np.array([np.inf]),
            most=max(SEEN),
        )[0]
        for seen in (number for number in SEEN if number < length):
            if is_over():
                return None
            probability = _stated(judged, fold, x[order], y[order], seen)
            if probability is not None:
                stated.append(probability)
                happened.append(bool(np.max(y) - np.max(y[order[:seen]]) <= near))
    if len(stated) < FEWEST_STATEMENTS:
        return None
    places, shares = curve(np.array(stated), np.array(happened))
    return StoppingCalibration(
        tuple(places.tolist()), tuple(shares.tolist()), outcomes=len(stated), runs=len(rows)
    )


def _stated(judged: AbstractPredictors, fold: int, x, y, seen: int) -> float | None:
    try:
        with np.errstate(all="ignore"):
            after = judged.condition(fold, x[:seen], y[:seen])
            if after is None:
                return None
            left = left_in(after, x, np.random.default_rng(seen))
    except (FloatingPointError, np.linalg.LinAlgError):
        return None
    return left.probability() if np.isfinite(left.regret).all() else None


def curve(
    stated: Float[np.ndarray, " n"], happened: Bool[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " places"], Float[np.ndarray, " places"]]:
    """Stated probabilities, and how often it was so: neighbours are pooled until it never falls."""
    order = np.argsort(stated, kind="stable")
    bins = np.array_split(order, max(len(order) // PER_PLACE, 1))
    # Sums over statements: their number, stated probabilities, and outcomes.
    pooled: list[np.ndarray] = []
    for rows in bins:
        pooled.append(np.array([len(rows), stated[rows].sum(), happened[rows].sum()]))
        while len(pooled) > 1 and not _rises(*pooled[-2:]):
            last = pooled.pop()
            pooled[-1] = pooled[-1] + last
    return np.array([_place(each) for each in pooled]), np.array([_share(each) for each in pooled])


def _rises(first: Float[np.ndarray, " 3"], second: Float[np.ndarray, " 3"]) -> bool:
    apart = _place(second) - _place(first) > NEAREST
    return apart and _share(second) > _share(first)


def _place(pooled: Float[np.ndarray, " 3"]) -> float:
    return float(pooled[1] / pooled[0])


def _share(pooled: Float[np.ndarray, " 3"]) -> float:
    num, _, outcomes = pooled
    return float((outcomes + OWN_OUTCOMES * _place(pooled)) / (num + OWN_OUTCOMES))
