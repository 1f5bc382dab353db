"""`read_history`, `read_outputs`: from an Optuna storage to tasks, with a line on every study."""

from collections.abc import Iterable, Mapping

import optuna
from optuna.storages import BaseStorage

from metaprior.adapters.histories import (
    History,
    OutputsHistory,
    check_wanted,
    chosen_names,
    history_of,
    outputs_of,
)
from metaprior.adapters.optuna._storage import called, damage_in_one_sentence, reading
from metaprior.adapters.optuna._trials import read_outputs_of, read_trials
from metaprior.data import Bounds, Outputs, Space, Tasks, require_roles
from metaprior.words import shortened

# Studies whose names begin so are bookkeeping of metaprior in the storage, and never history.
OUR_STUDIES = "metaprior:"


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
    - `value_bounds`: lowest and highest possible value.
    """
    check_wanted(space, direction)
    with reading(storage) as opened:
        names = _names(opened, storage, studies, match)
        with damage_in_one_sentence(storage):
            found = [read_trials(name, opened) for name in names]
    return history_of(
        found,
        called(storage),
        space=space,
        direction=direction,
        features=features,
        value_bounds=value_bounds,
        no_feature=_no_user_attribute,
    )


def load_outputs(
    storage: str | BaseStorage,
    *,
    outputs: Mapping[str, str],
    studies: Iterable[str] | None = None,
    match: str | None = None,
    space: Space | None = None,
    features: Iterable[str] = (),
    value_bounds: Mapping[str, Bounds] | None = None,
) -> Outputs:
    """Several values of the past studies of an Optuna storage, for `metaprior.learn_outputs`; the
    arguments are those of `read_outputs`."""
    return read_outputs(
        storage,
        outputs=outputs,
        studies=studies,
        match=match,
        space=space,
        features=features,
        value_bounds=value_bounds,
    ).outputs


def read_outputs(
    storage: str | BaseStorage,
    *,
    outputs: Mapping[str, str],
    studies: Iterable[str] | None = None,
    match: str | None = None,
    space: Space | None = None,
    features: Iterable[str] = (),
    value_bounds: Mapping[str, Bounds] | None = None,
) -> OutputsHistory:
    """Several values of the past studies of an Optuna storage, and what was used and skipped.

    Trials as in `read_history`, but constraints that are outputs may be broken. A study whose
    objectives have another direction than their roles is skipped.

    - `outputs`: what each value is, by name: `"maximize"`, `"minimize"`, or `"constraint"` for one
      that holds at or below 0. Objectives go by the study's metric names
      (`study.set_metric_names`), or in their order if it has none; constraints by the key of
      `trial.set_constraint`.
    - `value_bounds`: limits of the values, by name.
    - the other arguments: see `read_history`.
    """
    require_roles(outputs)
    check_wanted(space, None)
    with reading(storage) as opened:
        names = _names(opened, storage, studies, match)
        with damage_in_one_sentence(storage):
            found = [read_outputs_of(name, opened, outputs) for name in names]
    return outputs_of(
        found,
        called(storage),
        outputs=outputs,
        space=space,
        features=features,
        value_bounds=value_bounds,
        no_feature=_no_user_attribute,
    )


def _names(
    opened: BaseStorage,
    storage: str | BaseStorage,
    studies: Iterable[str] | None,
    match: str | None,
) -> list[str]:
    """The names of the studies that are wanted; our own bookkeeping is none of them."""
    with damage_in_one_sentence(storage):
        every = optuna.get_all_study_names(opened)
        strange = [name for name in every if not isinstance(name, str)]
        if strange:
            raise TypeError(f"a study is called {shortened(strange[0])}")
    names = [name for name in every if not name.startswith(OUR_STUDIES)]
    return chosen_names(names, studies, match, called(storage))


def _no_user_attribute(name: str, others: str) -> str:
    return (
        f"No study has the user attribute {name!r}; name one that the studies have ({others}), or "
        "set it with study.set_user_attr."
    )
