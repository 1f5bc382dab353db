"""The trials of one study that can be learned from, and a count of the others."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from metaprior.adapters.optuna._distributions import as_choice, is_categorical

FEWEST_TRIALS = 2
DELETED = "deleted meanwhile"
SEVERAL_OBJECTIVES = "several objectives"
TOO_FEW_TRIALS = f"fewer than {FEWEST_TRIALS} complete trials with finite values"

_UNFINISHED = {
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "pruned",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


class UsableTrial(NamedTuple):
    """A complete trial and its number; choices are as a space holds them."""

    number: int
    params: dict[str, Any]
    distributions: Mapping[str, BaseDistribution]
    value: float


class StudyTrials(NamedTuple):
    """The usable trials of a study, in order.

    - `left_out`: how many others there are, by reason.
    - `reason`: why the study as a whole cannot be used; empty if it can.
    - `attributes`: of the study, as its user set them.
    """

    name: str
    direction: str
    trials: list[UsableTrial]
    left_out: dict[str, int]
    reason: str = ""
    attributes: Mapping[str, Any] = {}

    def keeping(self, trials: list[UsableTrial], *, others: str, reason: str) -> "StudyTrials":
        """The study with these trials only; the others are counted under the word `others`, and
        `reason` is why there are then too few."""
        lost = len(self.trials) - len(trials)
        if not lost:
            return self
        left_out = {**self.left_out, others: self.left_out.get(others, 0) + lost}
        few = len(trials) < FEWEST_TRIALS
        return self._replace(trials=trials, left_out=left_out, reason=reason if few else "")


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
        if not is_categorical(trial.distributions[name])
    ]
    if trial.value is None or not all(map(math.isfinite, (trial.value, *numbers))):
        return "not finite"
    return "infeasible" if any(value > 0 for value in trial.constraints.values()) else ""


def _usable(trial: FrozenTrial) -> UsableTrial:
    params = {
        name: as_choice(value) if is_categorical(trial.distributions[name]) else value
        for name, value in trial.params.items()
    }
    assert trial.value is not None  # `_fault` has looked
    return UsableTrial(trial.number, params, trial.distributions, trial.value)
