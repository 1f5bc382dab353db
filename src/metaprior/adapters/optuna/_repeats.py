"""Whether a proposal repeats a trial, but for what the trial was not asked for.

A window may have dimensions that a study never asks for, at least in some branch. A trial then has
stand-ins there, and a proposal that differs from it only in these would repeat it.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from optuna.trial import FrozenTrial, TrialState

from metaprior.bo import NEAR_LOST, REPEATED, Window
from metaprior.data import Space


class StandIns(NamedTuple):
    """What stands in a trial's point of the window for what the trial was not asked for.

    - `held`: these values, by the names of the window's space.
    - `row`: the point, encoded; `counts`: the columns of it that the trial decided.
    - `near`: how near a proposal must be there to repeat the trial.
    """

    held: dict[str, Any]
    row: Float[np.ndarray, " d"]
    counts: Bool[np.ndarray, " d"]
    near: float

    def repeated_by(self, row: Float[np.ndarray, " d"]) -> bool:
        """Whether a proposal, encoded, differs from the trial in the stand-ins alone."""
        return bool(np.all(np.abs(row - self.row)[self.counts] <= self.near))


def stand_ins(
    trial: FrozenTrial, told: Mapping[str, Any], window: Window, asked: Collection[str]
) -> StandIns | None:
    """The stand-ins in `told`, the point of a trial in the window; `None` without any.

    A trial that failed, or was pruned before it reported anything, may have been about to ask for
    what others have asked for.

    - `asked`: parameters that some trial asked for.
    """
    is_whole = trial.state == TrialState.COMPLETE or bool(trial.intermediate_values)
    absent = [
        own
        for own, (name, _) in zip(window.space.names, window.ranges, strict=True)
        if own in told and name not in trial.params and (is_whole or name not in asked)
    ]
    if not absent:
        return None
    space, ignored = window.space, set(absent)
    named = list(zip(space.names, space.dimensions, strict=True))
    for _ in named:  # what exists only by these, however deep conditions are nested
        ignored |= {
            name
            for name, dimension in named
            if name not in told and any(parent in ignored for parent, _ in dimension.when)
        }
    counts = np.concatenate([np.full(d.num_columns, name not in ignored) for name, d in named])
    near = REPEATED if trial.state == TrialState.COMPLETE else NEAR_LOST
    (row,) = space.encode([told])
    return StandIns({own: told[own] for own in absent}, row, counts, near)


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
