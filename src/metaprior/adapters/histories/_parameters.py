"""Which parameters of many studies become dimensions, and what stands in where one is missing.

A parameter with at least two values is a dimension

- if all trials have it;
- if a rule says which have it: a condition of the space (see `_presence`);
- if trials of one study have it and lack it without a rule: an optional one, with a switch;
- if at least 80 % of the trials have it. Where it is missing, it is taken to be in the middle of
  its range (on the scale of the dimension), or to be the first of its choices.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from metaprior.adapters.histories._declared import is_choice, merged_dimension
from metaprior.adapters.histories._presence import (
    Rule,
    found_rule,
    is_optional,
    switch_of,
    switches,
    with_switches,
)
from metaprior.adapters.histories._trials import StudyTrials, UsableTrial
from metaprior.data import Categorical, Dimension, Space, complaint
from metaprior.words import listed

# The share of the trials that must have a parameter.
SHARE = 0.8
NO_SHARED_PARAMETER = "none of the parameters of the other studies"
NO_PARAMETER_OF_SPACE = "no parameter of the space"


class SpaceAndStudies(NamedTuple):
    """The space, all studies with what is left of them, and sentences on what was decided."""

    space: Space
    studies: list[StudyTrials]
    notes: list[str]


class Presence(NamedTuple):
    """How often a parameter occurs, and whether it ever changes."""

    trials: int
    changes: bool


def shared_space(studies: list[StudyTrials]) -> SpaceAndStudies:
    """The space of the parameters that usable studies share; a study without any is skipped.

    At least one study must be usable.
    """
    while True:
        usable = [study for study in studies if not study.reason]
        present, total = _presence(usable), sum(len(study.trials) for study in usable)
        status = _statuses(present, total, usable)
        names = list(status)
        if not names:
            raise _nothing_shared(present, total, len(usable))
        kept = [_with_any(study, names, NO_SHARED_PARAMETER) for study in studies]
        if kept == studies:
            break
        studies = kept
    dimensions, notes = {}, _notes_on_dropped(present, total, names)
    for name in names:
        _require_one_kind(name, usable)
        dimensions[name], remarks = _merged(name, usable)
        notes += [f"The parameter {name!r} {remark}." for remark in remarks]
    for name, found in status.items():
        if isinstance(found, Rule):
            when = found.when(dimensions)
            notes.append(f"The parameter {name!r} exists only if {found.in_words()}.")
        elif found is not None:
            dimensions[switch_of(found)] = Categorical([False, True])
            when = {switch_of(found): [True]}
            notes.append(_note_on_optional(name, found, present[name].trials, total))
        else:
            continue
        dimensions[name] = replace(dimensions[name], when=when)
    return SpaceAndStudies(Space(**dimensions), studies, notes)


# What decides whether a parameter exists: a rule, the optional parameter that has the switch, or
# nothing.
Status = Rule | str | None


def _statuses(
    present: dict[str, Presence], total: int, studies: list[StudyTrials]
) -> dict[str, Status]:
    """What becomes of the parameters that are kept, in the order in which they turn up."""
    trials = [trial for study in studies for trial in study.trials]
    changing = {name: p.trials for name, p in present.items() if p.changes}
    status: dict[str, Status] = {}
    filled = set()
    # What others depend on is at least as frequent as they are.
    for name in sorted(changing, key=lambda name: -changing[name]):
        if changing[name] == total:
            status[name] = None
            continue
        rule = found_rule(name, trials, [other for other in status if other not in filled])
        if rule is not None:
            status[name] = rule
        elif (
            is_optional(name, [study.trials for study in studies])
            and switch_of(name) not in present
        ):
            status[name] = _always_beside(name, status, trials) or name
        elif changing[name] >= SHARE * total:
            status[name] = None
            filled.add(name)
    return {name: status[name] for name in present if name in status}


def _always_beside(name: str, status: dict[str, Status], trials: list[UsableTrial]) -> str | None:
    """An optional parameter that exactly the same trials have."""
    optional = [other for other, found in status.items() if found == other]
    return next(
        (o for o in optional if all((o in t.params) == (name in t.params) for t in trials)), None
    )


def _note_on_optional(name: str, first: str, count: int, total: int) -> str:
    if name != first:
        return f"The parameter {name!r} is optional, together with {first!r}."
    return (
        f"The parameter {name!r} is optional: {count} of {total} trials have it, and no other "
        "parameter says which."
    )


def given_space(studies: list[StudyTrials], space: Space) -> SpaceAndStudies:
    """The given space; trials outside of it and studies that do not fit are skipped."""
    fitted = [study if study.reason else _fitted(study, space) for study in studies]
    others = {
        name
        for study in fitted
        if not study.reason
        for trial in study.trials
        for name in trial.params
        if name not in space.names
    }
    notes = _notes_on_broken(studies, space)
    if others:
        notes.append(f"Not in the space, and left out: {listed(sorted(map(repr, others)), 5)}.")
    return SpaceAndStudies(space, fitted, notes)


def _notes_on_broken(studies: list[StudyTrials], space: Space) -> list[str]:
    """A sentence on each parameter that trials have where a condition of the space forbids it."""
    conditional = [n for n, d in zip(space.names, space.dimensions, strict=True) if d.when]
    broken: dict[str, list[str]] = {}
    for study in studies:
        for trial in study.trials if not study.reason else []:
            existing = space.existing(with_switches(trial.params, space))
            for name in conditional:
                if name in trial.params and name not in existing:
                    place = f"trial {trial.number} of study {study.name!r}"
                    broken.setdefault(name, []).append(place)
    return [
        f"The parameter {name!r} is there where the space forbids it, in {listed(places, 1)}: left "
        "out."
        for name, places in broken.items()
    ]


def completed_points(
    studies: list[StudyTrials], space: Space
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """The points of each study, gaps filled, and a sentence for each parameter with gaps."""
    fillers = {
        name: _filler(dimension)
        for name, dimension in zip(space.names, space.dimensions, strict=True)
    }
    missing: dict[str, int] = dict.fromkeys(space.names, 0)
    points = []
    for study in studies:
        points.append([])
        for trial in study.trials:
            point = _completed(trial, space, fillers)
            for name in point.keys() - with_switches(trial.params, space).keys():
                missing[name] += 1
            points[-1].append(point)
    total = sum(map(len, points))
    notes = [
        f"The parameter {name!r} is missing in {count} of {total} trials: taken as "
        f"{fillers[name][1]}."
        for name, count in missing.items()
        if count
    ]
    return points, notes


def _completed(
    trial: UsableTrial, space: Space, fillers: dict[str, tuple[Any, str]]
) -> dict[str, Any]:
    """The point of a trial, with values for whatever exists there and is missing."""
    point = {
        name: value
        for name, value in with_switches(trial.params, space).items()
        if name in space.names
    }
    while True:  # a value that is filled in may make others exist
        lacking = [name for name in space.existing(point) if name not in point]
        if not lacking:
            return point
        point |= {name: fillers[name][0] for name in lacking}


def _filler(dimension: Dimension) -> tuple[Any, str]:
    """What stands in for a missing value, and a description of it."""
    if isinstance(dimension, Categorical):
        return dimension.choices[0], f"{dimension.choices[0]!r}, the first choice"
    middle = dimension.decode(np.array([[0.5]]))[0]
    return middle, f"{middle:g}, the middle"


def _presence(studies: list[StudyTrials]) -> dict[str, Presence]:
    counts: dict[str, int] = {}
    first: dict[str, Any] = {}
    changing = set()
    for study in studies:
        for trial in study.trials:
            for name, value in trial.params.items():
                counts[name] = counts.get(name, 0) + 1
                if first.setdefault(name, value) != value:
                    changing.add(name)
    return {name: Presence(count, name in changing) for name, count in counts.items()}


def _with_any(study: StudyTrials, names: list[str], reason: str) -> StudyTrials:
    """The study without trials that have none of the parameters `names`."""
    if study.reason:
        return study
    having = [trial for trial in study.trials if any(name in trial.params for name in names)]
    return study.keeping(having, others="without parameters", reason=reason)


def _merged(name: str, studies: list[StudyTrials]) -> tuple[Dimension, list[str]]:
    trials = [trial for study in studies for trial in study.trials if name in trial.params]
    declared = [trial.declared[name] for trial in trials]
    try:
        return merged_dimension(declared, [trial.params[name] for trial in trials])
    except ValueError as error:
        raise ValueError(f"The parameter {name!r}: {error}") from None


def _require_one_kind(name: str, studies: list[StudyTrials]) -> None:
    first: dict[bool, str] = {}
    for study in studies:
        for trial in study.trials:
            if name in trial.params:
                place = f"trial {trial.number} of study {study.name!r}"
                first.setdefault(is_choice(trial.declared[name]), place)
    if len(first) > 1:
        raise ValueError(
            f"The parameter {name!r} is a number in {first[False]} and categorical in "
            f"{first[True]}; choose studies in which it is the same."
        )


def _nothing_shared(present: dict[str, Presence], total: int, num_studies: int) -> ValueError:
    changing = {name: p.trials for name, p in present.items() if p.changes}
    if not changing:
        return ValueError(
            f"No parameter of the {num_studies} studies has two values or more, so there is "
            "nothing to choose; give studies over several points."
        )
    name = max(changing, key=lambda name: changing[name])
    return ValueError(
        f"The {num_studies} studies share no parameter: none is present in at least "
        f"{SHARE:.0%} of their trials ({name!r} is in {changing[name] / total:.0%}); choose "
        "studies of one kind."
    )


def _notes_on_dropped(present: dict[str, Presence], total: int, names: list[str]) -> list[str]:
    constant = [repr(name) for name, p in present.items() if not p.changes]
    rare = [
        f"{name!r} (in {p.trials / total:.0%} of the trials)"
        for name, p in present.items()
        if p.changes and name not in names
    ]
    notes = []
    if constant:
        notes.append(f"Only one value, and left out of the space: {listed(constant, 5)}.")
    if rare:
        notes.append(f"Too often missing, and left out of the space: {listed(rare, 5)}.")
    return notes


def _fitted(study: StudyTrials, space: Space) -> StudyTrials:
    """The study as far as it lies in `space`, or the reason why it does not."""
    own_switches = switches(space)

    def exists(name: str, trial: UsableTrial) -> bool:
        return name in space.existing(with_switches(trial.params, space))

    study = _with_any(study, list(space.names), NO_PARAMETER_OF_SPACE)
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        if study.reason:
            break
        if name in own_switches:  # trials do not have them
            continue
        if dimension.when:
            study = study.keeping(
                [
                    trial
                    for trial in study.trials
                    if name not in trial.params or exists(name, trial)
                ],
                others="outside the space",
                reason="fewer than 2 trials inside the space",
            )
        due = [trial for trial in study.trials if exists(name, trial)]
        having = [trial for trial in due if name in trial.params]
        if len(having) < SHARE * len(due):
            return study._replace(reason=f"{name!r} is missing in more than {1 - SHARE:.0%}")
        categorical = isinstance(dimension, Categorical)
        if any(is_choice(trial.declared[name]) != categorical for trial in having):
            kind = "a number" if categorical else "categorical"
            return study._replace(reason=f"{name!r} is {kind}, unlike in the space")
        belongs = _belonging(name, dimension, having)
        inside = [t for t in study.trials if name not in t.params or belongs(t)]
        study = study.keeping(
            inside, others="outside the space", reason="fewer than 2 trials inside the space"
        )
    return study


def _belonging(
    name: str, dimension: Dimension, trials: list[UsableTrial]
) -> Callable[[UsableTrial], bool]:
    """Whether a trial's value belongs to `dimension`; all at once if all of them do."""

    def fits(values: list[Any]) -> bool:
        try:
            dimension.encode(values, complaint("", name))
        except ValueError:
            return False
        return True

    if fits([trial.params[name] for trial in trials]):
        return lambda trial: True
    return lambda trial: fits([trial.params[name]])
