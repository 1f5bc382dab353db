"""Whether a proposal repeats a trial, but for what the trial was not asked for.

A window may have dimensions that a study never asks for, at least in some branch. A trial then has
stand-ins there, and a proposal that differs from it only in these would repeat it.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from metaprior.bo import NEAR_LOST, REPEATED, Window
from metaprior.data import Space


def absent_in(
    trial: FrozenTrial, told: Collection[str], window: Window, asked: Collection[str]
) -> list[str]:
    """The dimensions of a trial's point in the window, `told`, that the trial was not asked for.

    A trial that failed, or was pruned before it reported anything, may have been about to ask for
    what others have asked for.

    - `asked`: parameters that some trial asked for.
    """
    is_whole = trial.state == TrialState.COMPLETE or bool(trial.intermediate_values)
    return [
        own
        for own, (name, _) in zip(window.space.names, window.ranges, strict=True)
        if own in told and name not in trial.params and (is_whole or name not in asked)
    ]


def repeats(
    point: Mapping[str, Any],
    told: Mapping[str, Any],
    absent: Collection[str],
    space: Space,
    *,
    lost: bool,
) -> bool:
    """Whether a point is that of a trial, `told`, but for what is absent there and what exists
    only by that.

    - `lost`: whether the trial failed or was pruned: then the surroundings count, too.
    """
    here, there = space.encode([point, told])
    ignored = set(absent)
    for _ in space.names:  # however deep conditions are nested
        ignored |= {
            name
            for name, dimension in zip(space.names, space.dimensions, strict=True)
            if name not in told and any(parent in ignored for parent, _ in dimension.when)
        }
    counts = [name not in ignored for name in space.names]
    columns = np.repeat(counts, [dimension.num_columns for dimension in space.dimensions])
    near = NEAR_LOST if lost else REPEATED
    return bool(np.all(np.abs(here - there)[columns] <= near))


def held_beside(fixed: Mapping[str, Any], held: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """All of `fixed`, and of `held` what can exist beside it."""
    both = {**held, **fixed}
    whens = dict(zip(space.names, (dimension.when for dimension in space.dimensions), strict=True))

    def is_possible(name: str) -> bool:
        return all(
            is_possible(parent) and (parent not in both or both[parent] in values)
            for parent, values in whens[name]
        )

    return {name: value for name, value in both.items() if name in fixed or is_possible(name)}
