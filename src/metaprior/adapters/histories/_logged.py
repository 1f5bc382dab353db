"""Runs that a tracking tool has logged, as tasks: which metric is the value, and which runs belong
to one study.

Tracking tools know neither a search space nor what is to be optimised: parameters are what was
logged, usually as text, and any metric may be the value.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from metaprior.adapters.histories._cells import as_cell
from metaprior.adapters.histories._history import (
    History,
    check_wanted,
    chosen_names,
    history_of,
)
from metaprior.adapters.histories._settled import without_settled
from metaprior.adapters.histories._trials import (
    FEWEST_TRIALS,
    TOO_FEW_TRIALS,
    StudyTrials,
    UsableTrial,
)
from metaprior.adapters.histories._undeclared import declared_by_values
from metaprior.data import Bounds, Quantity, Space
from metaprior.data.csv import feature_value
from metaprior.words import listed

# How many names an error lists.
_MOST_NAMES = 12


class LoggedRun(NamedTuple):
    """One evaluation.

    - `params`, `metrics`: by name, of any type; `labels`: what else is known, such as tags.
    - `fault`: what keeps it from being used, in a word or two; empty if nothing does.
    """

    params: Mapping[str, Any]
    metrics: Mapping[str, Any]
    labels: Mapping[str, Any] = {}
    fault: str = ""


class LoggedOptions(TypedDict, total=False):
    """What readers of logged runs take.

    - `metric`: the value; may be left out if only one has been logged.
    - `direction`: whether to `"maximize"` or `"minimize"` it. Tracking tools do not record that, so
      it is needed.
    - `task`: a parameter or label that says which runs belong to one task, such as `"dataset"`; by
      default the host's own grouping.
    - `studies`: names of the groups to use; all if not given. `match`: a pattern of them.
    - `ignore`: parameters to leave out.
    - `space`: the dimensions; else the parameters that at least 80 % of the runs have, from the
      lowest to the highest logged value, as in CSV files.
    - `features`: labels or parameters, the same in all runs of a group, that say something of the
      task.
    - `value_bounds`: lowest and highest possible value.
    """

    metric: str | None
    direction: str | None
    task: str | None
    studies: Iterable[str] | str | None
    match: str | None
    ignore: Iterable[str] | str
    space: Space | None
    features: Iterable[str] | str
    value_bounds: Bounds | None


class _Group(NamedTuple):
    """Runs of one task; with a reason, they are of none."""

    runs: list[LoggedRun]
    reason: str = ""


def history_of_logged(
    found: Mapping[str, Sequence[LoggedRun]],
    where: str,
    *,
    metric: str | None = None,
    direction: str | None = None,
    task: str | None = None,
    studies: Iterable[str] | str | None = None,
    match: str | None = None,
    ignore: Iterable[str] | str = (),
    space: Space | None = None,
    features: Iterable[str] | str = (),
    value_bounds: Bounds | None = None,
) -> History:
    """The runs as tasks; see `LoggedOptions`.

    - `found`: the runs of each group in their order, as the host groups them.
    - `where`: what to call the source in an error.
    """
    check_wanted(space, direction)
    groups = {name: _Group(list(runs)) for name, runs in found.items()}
    if task is not None:
        groups = _grouped_by(task, groups, where)
    names = chosen_names(list(groups), studies, match, where)
    chosen = {name: groups[name] for name in names}
    metric = _chosen_metric(metric, chosen, where)
    if direction is None:
        raise ValueError(
            f"Nothing in {where} says whether high or low values of {metric!r} are good; give a "
            "direction, maximize or minimize."
        )
    features, ignore = _listed_names(features), _listed_names(ignore)
    _require_parameters(ignore, chosen, where)
    unwanted = {metric, *ignore, *features, *([] if task is None else [task])}
    told = [_study(name, chosen[name], metric, direction, unwanted) for name in names]
    told, notes = declared_by_values(told, space)
    if space is None:
        told, more = without_settled(told)
        notes += more
    history = history_of(
        told,
        where,
        space=space,
        direction=direction,
        features=features,
        value_bounds=value_bounds,
        no_feature=_no_label,
        quantity=Quantity(metric),
    )
    return history._replace(notes=[*notes, *history.notes])


def _grouped_by(task: str, groups: Mapping[str, _Group], where: str) -> dict[str, _Group]:
    """The runs by what the parameter or label `task` says, wherever they were logged."""
    together: dict[str, list[LoggedRun]] = {}
    without: dict[str, _Group] = {}
    for name, group in groups.items():
        cells = [as_cell(run.labels.get(task, run.params.get(task))) for run in group.runs]
        for run, cell in zip(group.runs, cells, strict=True):
            if cell:
                together.setdefault(cell, []).append(run)
        lacking = [run for run, cell in zip(group.runs, cells, strict=True) if not cell]
        if lacking:
            without[f"{name}, others"] = _Group(lacking, f"no {task!r}")
    if not together:
        runs = [run for group in groups.values() for run in group.runs]
        known = dict.fromkeys(name for run in runs for name in (*run.labels, *run.params))
        raise ValueError(
            f"No run in {where} has a parameter or label {task!r}; {_choice_of(known)}."
        )
    return {name: _Group(runs) for name, runs in together.items()} | without


def _chosen_metric(metric: str | None, groups: Mapping[str, _Group], where: str) -> str:
    """The metric by this name, or the only one there is."""
    runs = [run for group in groups.values() for run in group.runs if not group.reason]
    counts = Counter(name for run in runs for name in run.metrics)
    known = [name for name, _ in counts.most_common()]
    if metric is None and len(known) == 1:
        return known[0]
    if metric is None and known:
        raise ValueError(
            f"The runs in {where} have {len(known)} metrics; name the one to optimise as the "
            f"metric: {_names(known)}."
        )
    if metric is None or metric not in counts:
        called = "a metric" if metric is None else f"the metric {metric!r}"
        raise ValueError(f"No run in {where} has {called}; {_choice_of(known)}.")
    return metric


def _require_parameters(names: list[str], groups: Mapping[str, _Group], where: str) -> None:
    known = dict.fromkeys(
        name for group in groups.values() for run in group.runs for name in run.params
    )
    for name in names:
        if name not in known:
            raise ValueError(
                f"No run in {where} has a parameter {name!r} to leave out; {_choice_of(known)}."
            )


def _study(
    name: str, group: _Group, metric: str, direction: str, unwanted: set[str]
) -> StudyTrials:
    """The usable runs of a group, their parameters still text."""
    usable, left_out = [], Counter()
    for number, run in enumerate(group.runs):
        value = _number(run.metrics.get(metric))
        fault = run.fault or _fault(value)
        if fault:
            left_out[fault] += 1
            continue
        assert value is not None  # `_fault` has looked
        cells = {each: as_cell(v) for each, v in run.params.items() if each not in unwanted}
        params = {each: cell for each, cell in cells.items() if cell}
        usable.append((run, UsableTrial(number, params, {}, value)))
    reason = group.reason or (TOO_FEW_TRIALS if len(usable) < FEWEST_TRIALS else "")
    attributes = _shared([run for run, _ in usable])
    trials = [trial for _, trial in usable]
    return StudyTrials(name, direction, trials, dict(left_out), reason, attributes)


def _fault(value: float | None) -> str:
    if value is None:
        return "without the metric"
    return "" if math.isfinite(value) else "not finite"


def _number(value: Any) -> float | None:
    """A logged metric: numbers may be text, too; `None` if there is none."""
    if value is None or value == "":
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _shared(runs: list[LoggedRun]) -> dict[str, Any]:
    """Labels and parameters that are the same in all of the runs, as features may be."""
    rows = [
        {name: as_cell(value) for name, value in {**run.params, **run.labels}.items()}
        for run in runs
    ]
    first = rows[0] if rows else {}
    same = {name: cell for name, cell in first.items() if cell}
    return {
        name: feature_value(cell)
        for name, cell in same.items()
        if all(row.get(name) == cell for row in rows)
    }


def _listed_names(names: Iterable[str] | str) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _choice_of(names: Iterable[str]) -> str:
    known = list(names)
    return f"there are {_names(known)}" if known else "there are none"


def _names(names: list[str]) -> str:
    return listed([repr(name) for name in names], _MOST_NAMES)


def _no_label(name: str, others: str) -> str:
    return (
        f"{name!r} is no label or parameter that is the same in all runs of a study; name one that "
        f"is ({others}), or choose another task."
    )
