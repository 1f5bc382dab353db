"""Configurations that a race starts with, and which of them can train together.

By default they are configurations of F-PACOH-MAP. The first few have served well elsewhere; the
others are drawn around them. The largest budget races other methods too. Numbers may differ between
trainings in one batch, so one lane is one compiled loop.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

import numpy as np

from metaprior.learning._budget import Budget
from metaprior.methods import (
    ABLR,
    AbstractGradientMethod,
    AbstractMethod,
    FPacohMap,
    LearnedGP,
    PacohMap,
    can_train_together,
)
from metaprior.words import shortened

# (low, high) of log-uniform draws.
RANGES = {
    "kappa": (0.02, 0.3),
    "hyper_lengthscale": (0.1, 0.6),
    "learning_rate": (2e-3, 1.2e-2),
    "weight_decay": (1e-4, 3e-2),
}
# Races are short, so rates decay faster than in a training of fixed length.
DECAY = 0.6
# A pull towards the hyper-prior that few tasks cannot overcome.
FEW_TASKS, FEW_KAPPA = 4, (0.2, 2.0)
# Of other methods: how far to regularise, and how fast to learn.
PACOH_KAPPAS = (0.1, 0.3, 1.0, 3.0)
WEIGHT_DECAYS = (1e-4, 1e-3, 1e-2)
LEARNING_RATES = (5e-3, 2e-2)


def default_lanes(
    budget: Budget, num_tasks: int, *, seed: int
) -> list[list[AbstractGradientMethod]]:
    """The configurations that `learn` races by default: a lane per feature dimension, and in the
    largest budget one per other method."""
    num = -(-budget.candidates // len(budget.feature_dims))
    lanes: list[list[AbstractGradientMethod]] = [
        [*default_lane(num, num_tasks, dim, seed=seed)] for dim in budget.feature_dims
    ]
    return lanes + other_lanes() if budget.races_methods else lanes


def other_lanes() -> list[list[AbstractGradientMethod]]:
    """PACOH-MAP, the learned GP and ABLR: what F-PACOH-MAP has to beat on the runs at hand."""
    return [
        [PacohMap(kappa=kappa, learning_rate_decay=DECAY) for kappa in PACOH_KAPPAS],
        [LearnedGP(learning_rate=rate, learning_rate_decay=DECAY) for rate in LEARNING_RATES],
        [ABLR(weight_decay=decay, learning_rate_decay=DECAY) for decay in WEIGHT_DECAYS],
    ]


def default_lane(num: int, num_tasks: int, feature_dim: int, *, seed: int) -> list[FPacohMap]:
    """`num` configurations of one shape; the first six do not depend on the seed."""
    rng = np.random.default_rng([seed, feature_dim])
    ranges = dict(RANGES)
    if num_tasks <= FEW_TASKS:
        ranges["kappa"] = FEW_KAPPA
    default = FPacohMap(feature_dim=feature_dim, learning_rate_decay=DECAY)
    first = [
        replace(default, offset=True, amplitude=True),
        default,
        replace(default, learning_rate=0.01, hyper_lengthscale=0.3),
        replace(default, learning_rate=0.01, hyper_lengthscale=0.3, offset=True),
        replace(default, learning_rate=0.01, hyper_lengthscale=0.3, offset=True, amplitude=True),
        replace(default, kappa=0.2, hyper_lengthscale=0.3, amplitude=True),
    ]
    while len(first) < num:
        drawn = {
            name: exp(rng.uniform(log(low), log(high))) for name, (low, high) in ranges.items()
        }
        switches = {name: bool(rng.integers(2)) for name in ("offset", "amplitude", "warp")}
        first.append(replace(default, **switches, **drawn))
    return first[:num]


def lanes_of(methods: Sequence[AbstractGradientMethod]) -> list[list[AbstractGradientMethod]]:
    """The configurations grouped by class and sizes: those of one lane train in one batch."""
    lanes: list[list[AbstractGradientMethod]] = []
    for method in methods:
        lane = next((lane for lane in lanes if can_train_together(lane[0], method)), None)
        if lane is None:
            lanes.append([method])
        else:
            lane.append(method)
    return lanes


def require_candidates(candidates: object) -> None:
    """Raise unless `candidates` is a list of one or more gradient-trained methods."""
    if not isinstance(candidates, Sequence) or isinstance(candidates, str):
        raise TypeError(
            f"`candidates` is {shortened(candidates)}; give a list of methods, such as "
            "[FPacohMap(), LearnedGP()]."
        )
    if not candidates:
        raise ValueError(
            "`candidates` is empty; give at least one method, or leave it out to race the default "
            "configurations."
        )
    for i, method in enumerate(candidates):
        if isinstance(method, AbstractGradientMethod):
            continue
        if isinstance(method, AbstractMethod):
            raise TypeError(
                f"candidates[{i}] is {method.summary()}, which is not trained by gradients and "
                "cannot race; leave it out, or learn by it alone with `method=`."
            )
        raise TypeError(
            f"candidates[{i}] is {shortened(method)}; give methods, such as FPacohMap()."
        )
