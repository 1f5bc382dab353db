"""The trials of one Ax experiment that can be learned from, and a count of the others."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ax.core.base_trial import TrialStatus
from ax.core.batch_trial import BatchTrial
from ax.core.experiment import Experiment
from ax.core.outcome_constraint import OutcomeConstraint
from ax.core.parameter import FixedParameter
from ax.core.types import ComparisonOp

from metaprior.adapters.ax._declared import declared
from metaprior.adapters.histories import (
    FEWEST_TRIALS,
    SEVERAL_OBJECTIVES,
    TOO_FEW_TRIALS,
    Declared,
    StudyTrials,
    UsableTrial,
    as_choice,
    is_choice,
)
from metaprior.data import CONSTRAINT

WHICH_OBJECTIVE = f"{SEVERAL_OBJECTIVES}, and no metric is named"
SUM_OF_METRICS = "a sum of metrics as the objective"
NO_OBJECTIVE = "no objective"
_FAULTS = {
    TrialStatus.FAILED: "failed",
    TrialStatus.ABANDONED: "abandoned",
    TrialStatus.EARLY_STOPPED: "stopped early",
    TrialStatus.RUNNING: "running",
    TrialStatus.STAGED: "waiting",
    TrialStatus.CANDIDATE: "waiting",
    TrialStatus.STALE: "stale",
}


class Arm(NamedTuple):
    """One evaluation.

    - `means`: what was measured, by the name of the metric.
    - `fault`: what keeps it from being used, in a word or two; empty if nothing does.
    """

    number: int
    params: dict[str, Any]
    means: dict[str, float]
    fault: str


def objectives_of(experiment: Experiment) -> dict[str, str]:
    """The directions of the metrics to optimise; none if that is a sum of them."""
    config = experiment.optimization_config
    if config is None or config.objective.is_scalarized_objective:
        return {}
    weights = config.objective.metric_weights
    return {name: "maximize" if weight > 0 else "minimize" for name, weight in weights}


def read_trials(
    name: str, experiment: Experiment, metric: str | None, direction: str | None
) -> StudyTrials:
    """The experiment called `name`: completed arms with a finite value that broke no constraint.

    - `metric`: the value; by default the objective.
    - `direction`: of a metric that is no objective.
    """
    objectives = objectives_of(experiment)
    if metric is None and len(objectives) != 1:
        several = len(objectives) > 1
        config = experiment.optimization_config
        none = NO_OBJECTIVE if config is None else SUM_OF_METRICS
        return StudyTrials(name, "", [], {}, WHICH_OBJECTIVE if several else none)
    wanted = metric or next(iter(objectives))
    values: dict[int, float] = {}
    faults: dict[int, str] = {}
    arms = list(arms_of(experiment))
    for i, arm in enumerate(arms):
        value = arm.means.get(wanted)
        faults[i] = arm.fault or value_fault(value) or _infeasible(experiment, arm)
        values[i] = math.nan if value is None else value
    good = {i: {wanted: values[i]} for i, fault in faults.items() if not fault}
    left_out = Counter(fault for fault in faults.values() if fault)
    return study_of(name, experiment, arms, good, left_out, objectives.get(wanted, direction or ""))


def read_outputs_of(name: str, experiment: Experiment, outputs: Mapping[str, str]) -> StudyTrials:
    """The experiment called `name` with several values: metrics, and constraints on metrics.

    - `outputs`: names and roles. A constraint is by how much its metric exceeds the bound.
    """
    config = experiment.optimization_config
    reason = _unlike(experiment, outputs)
    if config is None or reason:
        return StudyTrials(name, "", [], {}, reason)
    limits = {metric: constraints[0] for metric, constraints in _absolute(experiment).items()}
    arms = list(arms_of(experiment))
    good, left_out = {}, Counter()
    for i, arm in enumerate(arms):
        values = {
            each: excess(limits[each], arm.means) if role == CONSTRAINT else arm.means.get(each)
            for each, role in outputs.items()
        }
        faults = [value_fault(value) for value in values.values()]
        fault = arm.fault or max(faults) or _infeasible(experiment, arm, set(outputs))
        if fault:
            left_out[fault] += 1
        else:
            good[i] = {each: float(value) for each, value in values.items() if value is not None}
    return study_of(name, experiment, arms, good, left_out, "")


def _unlike(experiment: Experiment, outputs: Mapping[str, str]) -> str:
    """Why the metrics of an experiment are not those that are wanted; empty if they are."""
    config = experiment.optimization_config
    if config is None:
        return NO_OBJECTIVE
    objectives = objectives_of(experiment)
    limited = _absolute(experiment)
    for name, role in outputs.items():
        if role == CONSTRAINT and name not in limited:
            return f"no absolute constraint on {name!r}"
        if role == CONSTRAINT and len(limited[name]) > 1:
            return f"{len(limited[name])} constraints on {name!r}"
        if role != CONSTRAINT and objectives.get(name, role) != role:
            return f"{name!r} is {objectives[name]}d"
    return ""


def _absolute(experiment: Experiment) -> dict[str, list[OutcomeConstraint]]:
    """The constraints on one metric alone that are not relative to the status quo, by metric."""
    config = experiment.optimization_config
    found: dict[str, list[OutcomeConstraint]] = {}
    for each in [] if config is None else config.outcome_constraints:
        if _is_absolute(each):
            found.setdefault(each.metric_names[0], []).append(each)
    return found


def _is_absolute(constraint: OutcomeConstraint) -> bool:
    return len(constraint.metric_names) == 1 and not constraint.relative


def study_of(
    name: str,
    experiment: Experiment,
    arms: list[Arm],
    good: Mapping[int, Mapping[str, float]],
    left_out: Mapping[str, int],
    direction: str,
) -> StudyTrials:
    """The study with the arms at the indices `good`, and their values by name."""
    parameters = experiment.search_space.parameters
    could_be = {each: found for each, p in parameters.items() if (found := declared(p)) is not None}
    trials = [_usable(arms[i], could_be, dict(values)) for i, values in good.items()]
    fixed = {
        each: p.value
        for each, p in parameters.items()
        if isinstance(p, FixedParameter) and p.value is not None
    }
    reason = TOO_FEW_TRIALS if len(trials) < FEWEST_TRIALS else ""
    return StudyTrials(name, direction, trials, dict(left_out), reason, fixed)


def arms_of(experiment: Experiment) -> Iterator[Arm]:
    """Every arm of every trial, in order, with the latest of what was measured."""
    means: dict[tuple[int, str], dict[str, float]] = {}
    frame = experiment.lookup_data().full_df
    if not frame.empty:
        for row in frame.itertuples():  # in the order of the steps
            key = (int(row.trial_index), str(row.arm_name))
            means.setdefault(key, {})[str(row.metric_name)] = float(row.mean)
    number = 0
    for index, trial in sorted(experiment.trials.items()):
        lost = (
            {arm.name for arm in trial.abandoned_arms} if isinstance(trial, BatchTrial) else set()
        )
        for arm in trial.arms:
            fault = _FAULTS.get(trial.status, "")
            fault = "abandoned" if arm.name in lost else fault
            yield Arm(number, dict(arm.parameters), means.get((index, arm.name), {}), fault)
            number += 1


def value_fault(value: float | None) -> str:
    if value is None:
        return "without the metric"
    return "" if math.isfinite(value) else "not finite"


def excess(constraint: OutcomeConstraint, means: Mapping[str, float]) -> float | None:
    """By how much an arm breaks a constraint; at or below 0 it holds, and `None` is not known."""
    if constraint.relative or any(name not in means for name in constraint.metric_names):
        return None
    total = sum(weight * means[name] for name, weight in constraint.metric_weights)
    over = total - constraint.bound
    return over if constraint.op == ComparisonOp.LEQ else -over


def _infeasible(experiment: Experiment, arm: Arm, known: Collection[str] = ()) -> str:
    """Whether an arm broke a constraint, in a word; those on one metric of `known` are left out."""
    config = experiment.optimization_config
    constraints = [] if config is None else config.outcome_constraints
    broken = [
        excess(each, arm.means)
        for each in constraints
        if not (_is_absolute(each) and each.metric_names[0] in known)
    ]
    return "infeasible" if any(over is not None and over > 0 for over in broken) else ""


def _usable(arm: Arm, could_be: Mapping[str, Declared], values: dict[str, float]) -> UsableTrial:
    params = {
        name: as_choice(value) if is_choice(could_be[name]) else value
        for name, value in arm.params.items()
        if name in could_be and value is not None
    }
    here = {name: could_be[name] for name in params}
    return UsableTrial(arm.number, params, here, next(iter(values.values())), values)
