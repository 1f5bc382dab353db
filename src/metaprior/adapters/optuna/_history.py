"""`read_history`: from an Optuna storage to tasks, with a line on every study, used or not."""

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import optuna
from optuna.storages import BaseStorage

from metaprior.adapters._host import StudyUse as StudyUse
from metaprior.adapters.optuna._parameters import completed_points, given_space, shared_space
from metaprior.adapters.optuna._storage import called, damage_in_one_sentence, reading
from metaprior.adapters.optuna._trials import StudyTrials, read_trials
from metaprior.data import Bounds, Space, Tasks, checked_features, direction_sign
from metaprior.words import listed

# Studies whose names begin so are bookkeeping of metaprior in the storage, and never history.
OUR_STUDIES = "metaprior:"


class NothingUsable(ValueError):
    """None of the studies can be learned from, as they are now."""


class History(NamedTuple):
    """Past studies as tasks.

    - `tasks`: for `metaprior.learn`; task `i` is the study `names[i]`.
    - `studies`: every study that was looked at, in the order of the storage.
    - `notes`: sentences on what was left out, filled in or negated.
    """

    tasks: Tasks
    names: list[str]
    studies: list[StudyUse]
    notes: list[str]


def load_tasks(
    storage: str | BaseStorage,
    *,
    studies: Iterable[str] | None = None,
    match: str | None = None,
    space: Space | None = None,
    direction: str | None = None,
    features: Iterable[str] = (),
    value_bounds: Bounds | None = None,
) -> Tasks:
    """The past studies of an Optuna storage as tasks; the arguments are those of `read_history`."""
    return read_history(
        storage,
        studies=studies,
        match=match,
        space=space,
        direction=direction,
        features=features,
        value_bounds=value_bounds,
    ).tasks


def read_history(
    storage: str | BaseStorage,
    *,
    studies: Iterable[str] | None = None,
    match: str | None = None,
    space: Space | None = None,
    direction: str | None = None,
    features: Iterable[str] = (),
    value_bounds: Bounds | None = None,
) -> History:
    """The past studies of an Optuna storage as tasks, and what was used, skipped and decided.

    Complete trials with finite values that broke no constraint, in the order of their numbers.
    Studies of several objectives, with fewer than 2 such trials, or that share no parameter with
    the others are skipped. The storage is not altered.

    - `storage`: a URL such as `sqlite:///past.db`, `journal:` and the path of a journal file, or
      any storage object of Optuna.
    - `studies`: names of the studies to use; all if not given.
    - `match`: a pattern that the names must match, such as `"svm-*"`.
    - `space`: the dimensions; else those parameters that at least 80 % of the trials have, from
      the lowest to the highest bound of all studies. With a space, trials outside of it are left
      out.
    - `direction`: `"maximize"` or `"minimize"`; else that of the first study that is used. The
      values of studies of the other direction are negated.
    - `features`: user attributes of the studies (`study.set_user_attr`) that say something of the
      task, such as `["instances"]`; a study without one is a task of which it is not known.
    - `value_bounds`: limits that no value can be beyond.
    """
    if direction is not None:
        direction_sign(direction)
    if space is not None and not isinstance(space, Space):
        raise TypeError(f"`space` is a {type(space).__name__}; give a metaprior Space.")
    wanted = [studies] if isinstance(studies, str) else studies
    with reading(storage) as opened:
        with damage_in_one_sentence(storage):
            every = optuna.get_all_study_names(opened)
            every = [name for name in every if not name.startswith(OUR_STUDIES)]
        names = _chosen_names(every, wanted, match, called(storage))
        with damage_in_one_sentence(storage):
            found = [read_trials(name, opened) for name in names]
    _require_some(found, called(storage))
    chosen = shared_space(found) if space is None else given_space(found, space)
    _require_some(chosen.studies, called(storage))
    used = [study for study in chosen.studies if not study.reason]
    points, gaps = completed_points(used, chosen.space)
    direction = direction or used[0].direction
    values = [_values(study, direction) for study in used]
    names_of_features = [features] if isinstance(features, str) else list(features)
    tasks = Tasks.from_runs(
        zip(points, values, strict=True),
        space=chosen.space,
        direction=direction,
        features=_features(used, names_of_features) if names_of_features else None,
        value_bounds=value_bounds,
        names=[study.name for study in used],
    )
    return History(
        tasks,
        [study.name for study in used],
        [_use(study) for study in chosen.studies],
        [*chosen.notes, *gaps, *_note_on_directions(used, direction)],
    )


def _chosen_names(
    names: list[str], wanted: Iterable[str] | None, match: str | None, where: str
) -> list[str]:
    if not names:
        raise ValueError(f"There are no studies in {where}; check that it is the right storage.")
    if wanted is not None:
        wanted = list(wanted)
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


def _require_some(studies: list[StudyTrials], where: str) -> None:
    if all(study.reason for study in studies):
        reasons = Counter(study.reason for study in studies)
        told = [f"{reason} ({count})" for reason, count in reasons.most_common()]
        number = "the study" if len(studies) == 1 else f"any of the {len(studies)} studies"
        raise NothingUsable(
            f"Nothing can be learned from {number} in {where}: {listed(told)}; choose others."
        )


def _values(study: StudyTrials, direction: str) -> list[float]:
    sign = direction_sign(study.direction) * direction_sign(direction)
    return [sign * trial.value for trial in study.trials]


def _features(studies: list[StudyTrials], names: list[str]) -> list[dict[str, Any]]:
    """The named user attributes of each study, those that it has."""
    for name in names:
        if not any(name in study.attributes for study in studies):
            attributes = sorted({each for study in studies for each in study.attributes})
            has = _quoted(attributes) if attributes else "none"
            raise ValueError(
                f"No study has the user attribute {name!r}; name one that the studies have "
                f"({has}), or set it with study.set_user_attr."
            )
    known = [{n: s.attributes[n] for n in names if n in s.attributes} for s in studies]
    for study, each in zip(studies, known, strict=True):
        checked_features(each, f"study {study.name!r}")  # names the study, not its number
    return known


def _use(study: StudyTrials) -> StudyUse:
    return StudyUse(study.name, not study.reason, len(study.trials), study.left_out, study.reason)


def _note_on_directions(used: list[StudyTrials], direction: str) -> list[str]:
    turned = [repr(study.name) for study in used if study.direction != direction]
    if not turned:
        return []
    other = {"maximize": "minimized", "minimize": "maximized"}[direction]
    several = f"{len(turned)} studies are" if len(turned) > 1 else "One study is"
    return [f"{several} {other} ({listed(turned)}): values are negated, to be {direction}d."]


def _quoted(names: list[str]) -> str:
    return listed([repr(name) for name in names])
