"""From the trials of many studies to tasks, with a line on every study, used or not."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from metaprior.adapters import StudyUse
from metaprior.adapters.histories._parameters import completed_points, given_space, shared_space
from metaprior.adapters.histories._trials import StudyTrials
from metaprior.data import (
    Bounds,
    Outputs,
    Quantity,
    Space,
    Tasks,
    checked_bounds,
    checked_features,
    direction_sign,
    features_of,
    require_within,
)
from metaprior.words import listed


class NothingUsable(ValueError):
    """None of the studies can be learned from, as they are now."""


class History(NamedTuple):
    """Past studies as tasks.

    - `tasks`: for `metaprior.learn`; task `i` is the study `names[i]`.
    - `studies`: every study that was looked at, in the order of the source.
    - `notes`: sentences on what was left out, filled in or negated.
    """

    tasks: Tasks
    names: list[str]
    studies: list[StudyUse]
    notes: list[str]


class OutputsHistory(NamedTuple):
    """Past studies as several outputs; see `History`."""

    outputs: Outputs
    names: list[str]
    studies: list[StudyUse]
    notes: list[str]


def check_wanted(space: Space | None, direction: str | None) -> None:
    """Raise an error for a space or a direction that is none."""
    if direction is not None:
        direction_sign(direction)
    if space is not None and not isinstance(space, Space):
        raise TypeError(f"`space` is a {type(space).__name__}; give a metaprior Space.")


def chosen_names(
    names: list[str], wanted: Iterable[str] | str | None, match: str | None, where: str
) -> list[str]:
    """Those of the studies called `names` that are wanted, and whose names match.

    - `where`: what to call the source in an error.
    """
    if not names:
        raise ValueError(f"There are no studies in {where}; check that it is the right storage.")
    if wanted is not None:
        wanted = [wanted] if isinstance(wanted, str) else list(wanted)
        unknown = [name for name in wanted if name not in set(names)]
        if unknown:
            raise ValueError(
                f"There is no study {unknown[0]!r} in {where}; it has {_quoted(names)}."
            )
        names = [name for name in names if name in set(wanted)]
    matching = [name for name in names if match is None or fnmatchcase(name, match)]
    if not matching:
        raise ValueError(
            f"No study in {where} matches {match!r}; the names are {_quoted(names)}."
            if names
            else "No study is named in `studies`; name some, or leave it out to use all."
        )
    return matching


def history_of(
    found: list[StudyTrials],
    where: str,
    *,
    space: Space | None,
    direction: str | None,
    features: Iterable[str] | str,
    value_bounds: Bounds | None,
    no_feature: Callable[[str, str], str],
    quantity: Quantity | None = None,
) -> History:
    """The studies as tasks over one space: the given one, or what their parameters share.

    - `found`: at least one study; a study's direction may be empty, if `direction` is given.
    - `where`: what to call the source in an error.
    - `direction`: by default that of the first study that is used; values of others are negated.
    - `features`: attributes of the studies that say something of the task.
    - `no_feature`: the sentence for an attribute that no study has, given its name and what there
      is.
    - `quantity`: what the value is called; by default as all studies call it that name it.
    """
    placed = _placed(found, where, space)
    used = placed.used
    direction = direction or next((study.direction for study in used if study.direction), None)
    if direction is None:
        raise ValueError(
            f"None of the studies in {where} that are used says whether high or low values are "
            "better; give the direction, 'maximize' or 'minimize'."
        )
    values = [_values(study, direction) for study in used]
    _require_within(used, values, value_bounds, "value")
    tasks = Tasks.from_runs(
        zip(placed.points, values, strict=True),
        space=placed.space,
        direction=direction,
        features=_features(used, features, no_feature),
        value_bounds=value_bounds,
        names=[study.name for study in used],
        quantity=quantity or _quantity(used),
    )
    notes = [*placed.notes, *_note_on_directions(used, direction), *_note_on_metrics(used)]
    return History(tasks, [study.name for study in used], placed.studies, notes)


def outputs_of(
    found: list[StudyTrials],
    where: str,
    *,
    outputs: Mapping[str, str],
    space: Space | None,
    features: Iterable[str] | str,
    value_bounds: Mapping[str, Bounds] | None,
    no_feature: Callable[[str, str], str],
) -> OutputsHistory:
    """The studies as several outputs over one space; see `history_of`.

    - `found`: every usable trial has all of the `outputs`, in the sign of their roles.
    """
    placed = _placed(found, where, space)
    for output in outputs.keys() & (value_bounds or {}):
        values = [[trial.outputs[output] for trial in study.trials] for study in placed.used]
        _require_within(placed.used, values, (value_bounds or {})[output], repr(output))
    read = Outputs.from_runs(
        [
            (points, [dict(trial.outputs) for trial in study.trials])
            for study, points in zip(placed.used, placed.points, strict=True)
        ],
        space=placed.space,
        outputs=outputs,
        features=_features(placed.used, features, no_feature),
        value_bounds=value_bounds,
    )
    names = [study.name for study in placed.used]
    named = {
        name: replace(tasks, names=tuple(names), quantity=Quantity(name))
        for name, tasks in read.by_name.items()
    }
    return OutputsHistory(Outputs.of(named, outputs), names, placed.studies, placed.notes)


class _Placed(NamedTuple):
    """Studies that are used and their points in a space, a line on all, and notes."""

    space: Space
    used: list[StudyTrials]
    points: list[list[dict[str, Any]]]
    studies: list[StudyUse]
    notes: list[str]


def _placed(found: list[StudyTrials], where: str, space: Space | None) -> _Placed:
    """The studies in the given space, or in what their parameters share."""
    _require_some(found, where)
    chosen = shared_space(found) if space is None else given_space(found, space)
    _require_some(chosen.studies, where, chosen.notes)
    used = [study for study in chosen.studies if not study.reason]
    points, gaps = completed_points(used, chosen.space)
    uses = [_use(study) for study in chosen.studies]
    return _Placed(chosen.space, used, points, uses, [*chosen.notes, *gaps])


def _require_some(studies: list[StudyTrials], where: str, notes: Sequence[str] = ()) -> None:
    if all(study.reason for study in studies):
        reasons = Counter(study.reason for study in studies)
        told = [f"{reason} ({count})" for reason, count in reasons.most_common()]
        lost = sum((Counter(study.left_out) for study in studies), Counter())
        if lost:
            counts = [f"{count} {word}" for word, count in lost.most_common()]
            told.append(f"trials left out are {listed(counts)}")
        number = "the study" if len(studies) == 1 else f"any of the {len(studies)} studies"
        raise NothingUsable(
            f"Nothing can be learned from {number} in {where}: {listed(told)}; choose others"
            f"{' or change the space. ' if notes else '.'}{' '.join(notes)}"
        )


def _values(study: StudyTrials, direction: str) -> list[float]:
    sign = direction_sign(study.direction or direction) * direction_sign(direction)
    return [sign * trial.value for trial in study.trials]


def _require_within(
    studies: list[StudyTrials], values: list[list[float]], bounds: Bounds | None, called: str
) -> None:
    """Raise an error that names study and trial of the first value beyond the bounds.

    - `called`: what the value is.
    """
    for study, own in zip(studies, values, strict=True) if bounds is not None else ():

        def complain(row: int, problem: str, study=study) -> ValueError:
            number = study.trials[row].number
            return ValueError(f"study {study.name!r}, trial {number}, {called}: {problem}.")

        require_within(checked_bounds(bounds), np.array(own), complain)


def _features(
    studies: list[StudyTrials], names: Iterable[str] | str, no_feature: Callable[[str, str], str]
) -> list[dict[str, Any]] | None:
    """The named attributes of each study, those that it has; `None` if none is named."""
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        return None
    for name in names:
        if not any(name in study.attributes for study in studies):
            attributes = sorted({each for study in studies for each in study.attributes})
            raise ValueError(no_feature(name, _quoted(attributes) if attributes else "none"))
    known = [{n: s.attributes[n] for n in names if n in s.attributes} for s in studies]
    # What is wrong is told by the study, not by its number.
    places = [f"study {study.name!r}" for study in studies]
    checked = [checked_features(e, place) for e, place in zip(known, places, strict=True)]
    features_of(checked, places=places)
    return known


def _use(study: StudyTrials) -> StudyUse:
    return StudyUse(study.name, not study.reason, len(study.trials), study.left_out, study.reason)


def _note_on_directions(used: list[StudyTrials], direction: str) -> list[str]:
    turned = [repr(study.name) for study in used if study.direction not in ("", direction)]
    if not turned:
        return []
    other = {"maximize": "minimized", "minimize": "maximized"}[direction]
    several = f"{len(turned)} studies are" if len(turned) > 1 else "One study is"
    return [f"{several} {other} ({listed(turned)}): values are negated, to be {direction}d."]


def _metrics(used: list[StudyTrials]) -> list[str]:
    """What the studies call their value, each name once."""
    return list(dict.fromkeys(study.metric for study in used if study.metric.strip()))


def _quantity(used: list[StudyTrials]) -> Quantity | None:
    metrics = _metrics(used)
    return Quantity.of_column(metrics[0]) if len(metrics) == 1 else None


def _note_on_metrics(used: list[StudyTrials]) -> list[str]:
    metrics = _metrics(used)
    if len(metrics) < 2:
        return []
    return [
        f"The studies call their value {_quoted(metrics)}: check that it is the same everywhere; "
        "it stays without a name."
    ]


def _quoted(names: list[str]) -> str:
    return listed([repr(name) for name in names])
