"""The trials of one study that can be learned from, and a count of the others."""

import math
from collections import Counter

import optuna
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metaprior.adapters.histories import (
    FEWEST_TRIALS,
    SEVERAL_OBJECTIVES,
    TOO_FEW_TRIALS,
    StudyTrials,
    UsableTrial,
    as_choice,
    is_choice,
)
from metaprior.adapters.optuna._distributions import declared

DELETED = "deleted meanwhile"

_UNFINISHED = {
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "pruned",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


def read_trials(name: str, storage: BaseStorage) -> StudyTrials:
    """The study called `name`: complete trials with a finite value that broke no constraint."""
    try:
        study = optuna.load_study(study_name=name, storage=storage)
    except KeyError:  # by another process, after the names were read
        return StudyTrials(name, "", [], {}, DELETED)
    if len(study.directions) > 1:
        return StudyTrials(name, "", [], {}, SEVERAL_OBJECTIVES)
    maximized = study.direction == StudyDirection.MAXIMIZE
    usable, left_out = [], Counter()
    for trial in sorted(study.get_trials(deepcopy=False), key=lambda trial: trial.number):
        if not all(isinstance(parameter, str) for parameter in trial.params):
            raise TypeError(f"trial {trial.number} has a parameter whose name is no text")
        fault = _fault(trial)
        if fault:
            left_out[fault] += 1
        else:
            usable.append(_usable(trial))
    reason = TOO_FEW_TRIALS if len(usable) < FEWEST_TRIALS else ""
    direction = "maximize" if maximized else "minimize"
    return StudyTrials(name, direction, usable, dict(left_out), reason, study.user_attrs)


def _fault(trial: FrozenTrial) -> str:
    """What keeps a trial from being used, in a word or two; empty if nothing does."""
    if trial.state in _UNFINISHED:
        return _UNFINISHED[trial.state]
    # Optuna takes an enqueued value as it is, however far out.
    numbers = [
        value
        for name, value in trial.params.items()
        if not is_choice(declared(trial.distributions[name]))
    ]
    if trial.value is None or not all(map(math.isfinite, (trial.value, *numbers))):
        return "not finite"
    return "infeasible" if any(value > 0 for value in trial.constraints.values()) else ""


def _usable(trial: FrozenTrial) -> UsableTrial:
    could_be = {name: declared(trial.distributions[name]) for name in trial.params}
    params = {
        name: as_choice(value) if is_choice(could_be[name]) else value
        for name, value in trial.params.items()
    }
    assert trial.value is not None  # `_fault` has looked
    return UsableTrial(trial.number, params, could_be, trial.value)
