"""The trials of one study that can be learned from, and a count of the others."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

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
from metaprior.data import CONSTRAINT

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
            assert trial.value is not None  # `_fault` has looked
            usable.append(_usable(trial, {"": float(trial.value)}))
    reason = TOO_FEW_TRIALS if len(usable) < FEWEST_TRIALS else ""
    direction = "maximize" if maximized else "minimize"
    (metric,) = study.metric_names or [""]
    return StudyTrials(name, direction, usable, dict(left_out), reason, study.user_attrs, metric)


def read_outputs_of(name: str, storage: BaseStorage, outputs: Mapping[str, str]) -> StudyTrials:
    """The study called `name` with several values: objectives and constraints.

    - `outputs`: names and roles. Objectives are called as the study calls them, or as they are
      ordered if it does not name them; constraints by the key they were set with.
    """
    try:
        study = optuna.load_study(study_name=name, storage=storage)
    except KeyError:
        return StudyTrials(name, "", [], {}, DELETED)
    wanted = [each for each, role in outputs.items() if role != CONSTRAINT]
    limits = {each for each, role in outputs.items() if role == CONSTRAINT}
    called = study.metric_names or (wanted if len(study.directions) == len(wanted) else None)
    reason = _unlike(called, wanted, outputs, study.directions)
    if called is None or reason:
        return StudyTrials(name, "", [], {}, reason)
    usable, left_out = [], Counter()
    for trial in sorted(study.get_trials(deepcopy=False), key=lambda trial: trial.number):
        fault = _fault(trial, limits)
        if fault:
            left_out[fault] += 1
            continue
        values = dict(zip(called, trial.values, strict=True)) | dict(trial.constraints)
        if any(each not in values for each in limits):
            left_out["without the constraint"] += 1
        else:
            usable.append(_usable(trial, {each: float(values[each]) for each in outputs}))
    reason = TOO_FEW_TRIALS if len(usable) < FEWEST_TRIALS else ""
    return StudyTrials(name, "", usable, dict(left_out), reason, study.user_attrs)


def _unlike(
    called: Sequence[str] | None,
    wanted: list[str],
    outputs: Mapping[str, str],
    directions: Sequence[StudyDirection],
) -> str:
    """Why the objectives of a study are not those that are wanted; empty if they are."""
    if called is None:
        several = f"{len(directions)} objectives" if len(directions) > 1 else "one objective"
        return f"{several} without names"
    for name in wanted:
        if name not in called:
            return f"no objective {name!r}"
        maximized = directions[list(called).index(name)] == StudyDirection.MAXIMIZE
        if maximized != (outputs[name] == "maximize"):
            return f"{name!r} is {'maximized' if maximized else 'minimized'}"
    return ""


def _fault(trial: FrozenTrial, limits: Collection[str] = ()) -> str:
    """What keeps a trial from being used, in a word or two; empty if nothing does.

    - `limits`: constraints that are values themselves, and may be broken.
    """
    if trial.state in _UNFINISHED:
        return _UNFINISHED[trial.state]
    # Optuna takes an enqueued value as it is, however far out.
    numbers = [
        value
        for name, value in trial.params.items()
        if not is_choice(declared(trial.distributions[name]))
    ]
    known = [trial.constraints[name] for name in limits if name in trial.constraints]
    values = trial.values or [math.nan]
    if not all(map(math.isfinite, (*values, *known, *numbers))):
        return "not finite"
    others = [value for name, value in trial.constraints.items() if name not in limits]
    return "infeasible" if any(value > 0 for value in others) else ""


def _usable(trial: FrozenTrial, values: Mapping[str, float]) -> UsableTrial:
    could_be = {name: declared(trial.distributions[name]) for name in trial.params}
    params = {
        name: as_choice(value) if is_choice(could_be[name]) else value
        for name, value in trial.params.items()
    }
    value = next(iter(values.values()))
    return UsableTrial(trial.number, params, could_be, value, values)
