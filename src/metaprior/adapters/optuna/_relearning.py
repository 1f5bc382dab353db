"""Learning the next version of a prior from the finished studies of a sequence."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import optuna
from optuna.storages import BaseStorage, JournalStorage, get_storage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study

from metaprior.adapters.histories import History, NothingUsable
from metaprior.adapters.optuna._history import OUR_STUDIES, read_history
from metaprior.adapters.optuna._ledger import StorageLedger, StoredVersion
from metaprior.adapters.optuna._storage import JOURNAL, opening
from metaprior.adapters.optuna._version_store import AbstractVersionStore
from metaprior.belief import Prior
from metaprior.data import Space
from metaprior.lifelong import FEWEST_RUNS, Version

# Attributes of a study: the sequence it belongs to, its place in there, and that it is over.
MEMBER, BEGUN, FINISHED = "metaprior", "metaprior:begun", "metaprior:finished"


class Settings(NamedTuple):
    """What a worker needs to take part in a sequence, for this process or for another one."""

    storage: str | BaseStorage
    name: str
    store: AbstractVersionStore
    space: Space | None
    budget: str | float
    seed: int
    expires: float

    def ledger(self) -> StorageLedger:
        return StorageLedger(opened(self.storage), self.name, expires=self.expires)


def opened(storage: str | BaseStorage) -> BaseStorage:
    """The storage, created if it is missing."""
    if not isinstance(storage, str):
        return get_storage(storage)
    with opening(storage) as address:
        if address.startswith(JOURNAL):
            return JournalStorage(JournalFileBackend(address.removeprefix(JOURNAL)))
        return get_storage(address)


def order_of_next(storage: BaseStorage, name: str) -> int:
    """What to write down when a study joins the sequence: a number after those of all others.

    It counts, since a clock may be set back. Earlier versions wrote the time, which is larger.
    """
    summaries = optuna.get_all_study_summaries(storage, include_best_trial=False)
    orders = [s.user_attrs.get(BEGUN, 0) for s in summaries if s.user_attrs.get(MEMBER) == name]
    return 1 + int(max(orders, default=0))


def finished_studies(storage: BaseStorage, name: str, beside: Study | None) -> list[str]:
    """Names of the studies of the sequence that are over.

    A study is over when it was marked as finished, or when a later one of the sequence has begun.

    - `beside`: the study in progress; by default the one that began last.
    """
    summaries = optuna.get_all_study_summaries(storage, include_best_trial=False)
    begun: dict[str, tuple[float, int]] = {}
    over = set()
    for summary in summaries:
        attributes: dict[str, Any] = summary.user_attrs
        if attributes.get(MEMBER) != name or summary.study_name.startswith(OUR_STUDIES):
            continue
        # A study without this attribute was added to the sequence by hand, as a past one.
        begun[summary.study_name] = (float(attributes.get(BEGUN, 0.0)), summary._study_id)
        if attributes.get(FINISHED):
            over.add(summary.study_name)
    going_on = (
        max(begun, key=begun.__getitem__, default="") if beside is None else beside.study_name
    )
    since = begun.get(going_on, (math.inf, 0))
    return [
        study
        for study, start in begun.items()
        if study in over or (study != going_on and start <= since)
    ]


def unlearned(
    settings: Settings, ledger: StorageLedger, storage: BaseStorage, beside: Study
) -> History | None:
    """The finished studies, if no version has been learned from all of them."""
    names = [
        study
        for study in finished_studies(storage, settings.name, beside)
        if study != beside.study_name
    ]
    if len(names) < FEWEST_RUNS:
        return None
    try:
        history = read_history(storage, studies=names, space=settings.space)
    except NothingUsable:  # yet
        return None
    if len(history.names) < FEWEST_RUNS or is_known(ledger, history):
        return None
    return history


def is_known(ledger: StorageLedger, history: History) -> bool:
    """Whether a version, kept or not, has been learned from all these studies."""
    names = set(history.names)
    return any(names <= set(entry.version.runs) for entry in ledger.entries)


def relearn(
    settings: Settings, ledger: StorageLedger, history: History
) -> tuple[Version, Prior] | None:
    """Learn the next version and publish it; `None` if another worker does so or has done so."""
    from metaprior.lifelong import learn_version  # imports JAX

    with ledger.attempt() as attempt:
        if attempt is None or is_known(ledger, history):
            return None
        used = ledger.current
        entry = ledger.entry(used) if used else None
        version, prior = learn_version(
            attempt.number,
            history.tasks,
            history.names,
            before=None if entry is None else (entry.version, _prior_of(settings, entry)),
            budget=settings.budget,
            seed=settings.seed,
        )
        place = settings.store.put(prior, version.number, attempt.trial)
        return (version, prior) if attempt.publish(version, place) else None


def newest_good(
    settings: Settings, ledger: StorageLedger, number: int, complain: Callable[[str], None]
) -> tuple[int, Prior] | None:
    """Version `number`; if it cannot be loaded, the newest one before it that was kept."""
    entries = {entry.version.number: entry for entry in ledger.entries}
    older = [n for n, entry in entries.items() if n < number and entry.version.kept]
    for n in [number, *sorted(older, reverse=True)]:
        try:
            return n, settings.store.get(entries[n].place)
        except Exception as error:  # whatever the store's own software raises
            complain(f"Version {n} of the prior {settings.name!r} cannot be loaded ({error})")
    return None


def _prior_of(settings: Settings, entry: StoredVersion) -> Prior | None:
    try:
        return settings.store.get(entry.place)
    except Exception:  # it is then compared by what is written down about it
        return None
