"""Configurations of F-PACOH that a race starts with.

The first few have served well elsewhere; the others are drawn around them. Numbers may
differ between trainings done at once, so the whole set is one compiled loop.
"""

from dataclasses import replace
from math import exp, log

import numpy as np

from metaprior.methods import FPacohMap

# (low, high) of log-uniform draws.
RANGES = {
    "kappa": (0.02, 0.3),
    "hyper_lengthscale": (0.1, 0.6),
    "learning_rate": (2e-3, 1.2e-2),
    "weight_decay": (1e-4, 3e-2),
}
# Races are short, so that rates fall faster than in a training of a fixed length.
DECAY = 0.6
# A pull towards the hyper-prior that few tasks cannot overcome.
FEW_TASKS, FEW_KAPPA = 4, (0.2, 2.0)


def candidates(num: int, num_tasks: int, feature_dim: int, *, seed: int) -> list[FPacohMap]:
    """`num` configurations; the first ones are always the same."""
    rng = np.random.default_rng([seed, feature_dim])
    ranges = dict(RANGES)
    if num_tasks <= FEW_TASKS:
        ranges["kappa"] = FEW_KAPPA
    plain = FPacohMap(feature_dim=feature_dim, learning_rate_decay=DECAY)
    first = [
        replace(plain, offset=True, amplitude=True),
        plain,
        replace(plain, learning_rate=0.01, hyper_lengthscale=0.3),
        replace(plain, learning_rate=0.01, hyper_lengthscale=0.3, offset=True),
        replace(plain, learning_rate=0.01, hyper_lengthscale=0.3, offset=True, amplitude=True),
        replace(plain, kappa=0.2, hyper_lengthscale=0.3, amplitude=True),
    ]
    while len(first) < num:
        drawn = {
            name: exp(rng.uniform(log(low), log(high))) for name, (low, high) in ranges.items()
        }
        switches = {name: bool(rng.integers(2)) for name in ("offset", "amplitude", "warp")}
        first.append(replace(plain, **switches, **drawn))
    return first[:num]
