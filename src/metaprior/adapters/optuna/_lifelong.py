"""A sampler whose prior learns from every study of a sequence, for all workers on a storage."""

import math
import subprocess
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import intersection_search_space
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from metaprior.adapters.optuna._background import learn_elsewhere
from metaprior.adapters.optuna._distributions import merged_dimension
from metaprior.adapters.optuna._history import OUR_STUDIES
from metaprior.adapters.optuna._ledger import StorageLedger
from metaprior.adapters.optuna._relearning import (
    BEGUN,
    FINISHED,
    MEMBER,
    Settings,
    finished_studies,
    newest_good,
    opened,
    order_of_next,
    relearn,
    unlearned,
)
from metaprior.adapters.optuna._sampler import MetaPriorSampler
from metaprior.adapters.optuna._storage import reading, reason_of
from metaprior.adapters.optuna._trial_seeded import TrialSeededSampler
from metaprior.adapters.optuna._version_store import ArtifactVersionStore, FolderVersionStore
from metaprior.bo import StoppingHint
from metaprior.data import Space
from metaprior.lifelong import Version, untrained_prior

# The attribute of a study that says which version its workers use; 0 is none.
VERSION = "metaprior:version"
# Trials that were asked for and never told are forgotten after this many others.
_MOST_TRIALS = 1000
# At most this many studies are kept in memory; older ones are read from the storage again.
_MOST_STUDIES = 32


class SequenceStatus(NamedTuple):
    """Versions of a sequence in a storage, the number of the one in use, and finished studies."""

    versions: list[Version]
    current: int | None
    studies: list[str]


def versions_in(storage: str | BaseStorage, name: str) -> SequenceStatus:
    """What the ledger of the sequence `name` says; nothing is written."""
    with reading(storage) as found:
        ledger = _existing_ledger(found, name)
        versions = [entry.version for entry in ledger.entries]
        return SequenceStatus(versions, ledger.current or None, finished_studies(found, name, None))


def restore(storage: str | BaseStorage, name: str, version: int) -> Version:
    """Make an older version current, for all studies of the sequence that begin from now on."""
    with reading(storage) as found:
        return _existing_ledger(found, name).restore(version)


class LifelongSampler(BaseSampler):
    """Proposes from the newest prior of a sequence; returned by `MetaPriorSampler.lifelong`.

    Every study that it samples becomes part of the sequence. At the first trial of a study the
    prior is learned from the earlier studies, and the study keeps that version. Before the first
    version, a non-transfer GP proposes. If learning fails, the sampler warns and the study
    continues with the last good version.
    """

    def __init__(self, settings: Settings, *, background: bool):
        self._settings = settings
        self._background = background
        self._forget()

    @property
    def version(self) -> int:
        """The number of the version that proposes now; 0 if there is none."""
        return self._number

    def finish(self, study: Study) -> None:
        """Mark the study as finished: the next one of the sequence learns from it.

        Without this call, a study is finished when the next one begins.
        """
        study.set_user_attr(MEMBER, self._settings.name)
        study.set_user_attr(FINISHED, True)

    def stopping(self, study: Study, tolerance: float | None = None) -> StoppingHint | None:
        """Whether it is worth going on; see `MetaPriorSampler.stopping`."""
        with self._lock:
            sampler = self._sampler_for(study)
        # Before the first complete trial there may be no model.
        is_model = isinstance(sampler, MetaPriorSampler)
        return sampler.stopping(study, tolerance) if is_model else None

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        with self._lock:
            self._attend(study)
            sampler = self._sampler_for(study)
            self._serving[study.study_name, trial.number] = sampler
            while len(self._serving) > _MOST_TRIALS:
                del self._serving[next(iter(self._serving))]
        sampler.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._of(study, trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._of(study, trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        sampler = self._of(study, trial)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._of(study, trial).after_trial(study, trial, state, values)
        with self._lock:
            self._serving.pop((study.study_name, trial.number), None)

    def reseed_rng(self) -> None:
        with self._lock:
            for sampler in (*self._untrained.values(), *self._learned.values()):
                sampler.reseed_rng()

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_background": self._background}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._storage: BaseStorage | None = None
        self._ledger: StorageLedger | None = None
        self._met: set[str] = set()
        self._settled: set[str] = set()
        self._number = 0
        # By study: the version that was wanted, and the one that could be loaded.
        self._in_use: dict[str, tuple[int, int]] = {}
        self._learned: dict[int, MetaPriorSampler] = {}
        self._untrained: dict[str, BaseSampler] = {}
        self._serving: dict[tuple[str, int], BaseSampler] = {}
        self._process: subprocess.Popen | None = None

    def _of(self, study: Study, trial: FrozenTrial) -> BaseSampler:
        """The sampler that began this trial: a newer version serves later trials only."""
        with self._lock:
            sampler = self._serving.get((study.study_name, trial.number))
            return self._sampler_for(study) if sampler is None else sampler

    def _attend(self, study: Study) -> None:
        """Choose the version that proposes; learn a new one if it is due."""
        if len(study.directions) > 1:
            raise ValueError(
                f"Study {study.study_name!r} has {len(study.directions)} objectives, and a learned "
                "prior covers one; use another sampler for it."
            )
        storage, ledger = self._open()
        is_new = study.study_name not in self._met
        if is_new:
            self._join(study, storage)
        if study.study_name in self._settled:
            self._number = self._in_use[study.study_name][1]
            return
        if self._background:
            if is_new:
                self._learn_elsewhere(study, storage, ledger)
            self._use(study, ledger, ledger.current)
            return
        number = study.user_attrs.get(VERSION)
        if number is None and not ledger.is_learning():
            self._learn_here(study, storage, ledger)
            if not ledger.is_learning():
                number = ledger.current
                study.set_user_attr(VERSION, number)
        # While another worker learns, the version in use proposes; the next trial checks again.
        self._use(study, ledger, ledger.current if number is None else int(number))
        if number is not None:
            self._settled.add(study.study_name)

    def _open(self) -> tuple[BaseStorage, StorageLedger]:
        if self._storage is None or self._ledger is None:
            self._storage = opened(self._settings.storage)
            settings = self._settings._replace(storage=self._storage)
            self._ledger = settings.ledger()
        return self._storage, self._ledger

    def _join(self, study: Study, storage: BaseStorage) -> None:
        """Make the study part of the sequence."""
        if study.study_name not in optuna.get_all_study_names(storage):
            raise ValueError(
                f"Study {study.study_name!r} is not in the storage that the sampler learns from; "
                "create both with the same storage."
            )
        attributes = study.user_attrs
        name = attributes.get(MEMBER, self._settings.name)
        if name != self._settings.name:
            raise ValueError(
                f"Study {study.study_name!r} belongs to the sequence {name!r} already; use a "
                "sampler of that name, or another study."
            )
        if BEGUN not in attributes:
            study.set_user_attr(MEMBER, name)
            study.set_user_attr(BEGUN, order_of_next(storage, name))
        self._met.add(study.study_name)

    def _learn_here(self, study: Study, storage: BaseStorage, ledger: StorageLedger) -> None:
        try:
            history = unlearned(self._settings, ledger, storage, study)
            if history is not None:
                relearn(self._settings, ledger, history)
        except Exception as error:  # a failure to learn must not cost a trial
            _complain(_failure(self._settings.name, error))

    def _learn_elsewhere(self, study: Study, storage: BaseStorage, ledger: StorageLedger) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        try:
            if not ledger.is_learning() and unlearned(self._settings, ledger, storage, study):
                self._process = learn_elsewhere(self._settings, study.study_name)
        except Exception as error:
            _complain(_failure(self._settings.name, error))

    def _use(self, study: Study, ledger: StorageLedger, wanted: int) -> None:
        """Use version `wanted` for the study, or the newest one before it that can be loaded."""
        asked, number = self._in_use.get(study.study_name, (0, 0))
        if wanted != asked:
            found = newest_good(self._settings, ledger, wanted, _complain) if wanted else None
            number = 0 if found is None else found[0]
            if found is not None and number not in self._learned:
                self._learned[number] = MetaPriorSampler(found[1], seed=self._settings.seed)
        self._in_use[study.study_name] = wanted, number
        self._number = number
        while len(self._in_use) > _MOST_STUDIES:
            oldest = next(iter(self._in_use))
            del self._in_use[oldest]
            self._untrained.pop(oldest, None)
            self._settled.discard(oldest)
        used = {good for _, good in self._in_use.values()}
        self._learned = {number: s for number, s in self._learned.items() if number in used}

    def _sampler_for(self, study: Study) -> BaseSampler:
        _, number = self._in_use.get(study.study_name, (0, 0))
        if number:
            return self._learned[number]
        untrained = self._untrained.get(study.study_name)
        if not isinstance(untrained, MetaPriorSampler):
            space = self._settings.space or _space_of(study)
            seed = self._settings.seed
            if space is not None:
                direction = study.direction.name.lower()
                untrained = MetaPriorSampler(untrained_prior(space, direction), seed=seed)
            elif untrained is None:
                untrained = TrialSeededSampler(seed)
            self._untrained[study.study_name] = untrained
        return untrained


def lifelong_sampler(
    storage: str | BaseStorage,
    *,
    name: str,
    folder: str | Path | None,
    artifact_store: Any,
    space: Space | None,
    budget: str | float,
    background: bool,
    seed: int | None,
    expires: float,
) -> LifelongSampler:
    """A sampler for the sequence `name`, its arguments checked."""
    if (folder is None) == (artifact_store is None):
        raise ValueError(
            "Say where the versions of the prior are kept: give either folder=..., a folder that "
            "all workers see, or artifact_store=..., an artifact store of Optuna."
        )
    if not isinstance(name, str) or not name:
        raise ValueError(f"`name` is {name!r}; give the sequence a name, such as 'boosting'.")
    if background and isinstance(storage, InMemoryStorage):
        raise ValueError(
            "Another process cannot see studies in memory; give a storage that is shared, such as "
            "sqlite:///studies.db, or leave out background=True."
        )
    if not expires > 0:
        raise ValueError(f"`expires` is {expires!r}; give a number of seconds above 0.")
    from metaprior.learning import budget_named  # imports JAX

    budget_named(budget)
    store = (
        ArtifactVersionStore(artifact_store) if folder is None else FolderVersionStore(folder, name)
    )
    drawn = int(np.random.SeedSequence(seed).generate_state(1)[0]) if seed is None else seed
    settings = Settings(storage, name, store, space, budget, drawn, float(expires))
    return LifelongSampler(settings, background=background)


def _existing_ledger(storage: BaseStorage, name: str) -> StorageLedger:
    if OUR_STUDIES + name not in optuna.get_all_study_names(storage):
        known = [
            study.removeprefix(OUR_STUDIES)
            for study in optuna.get_all_study_names(storage)
            if study.startswith(OUR_STUDIES)
        ]
        listed = ", ".join(map(repr, known)) or "none"
        raise ValueError(
            f"There is no lifelong sequence {name!r} in the storage; those it has: {listed}."
        )
    return StorageLedger(storage, name, expires=float("inf"))


def _space_of(study: Study) -> Space | None:
    """The space of the study's own trials; `None` before the first one is complete."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    trials = [trial for trial in complete if all(map(_is_finite, trial.params.values()))]
    found = intersection_search_space(trials) if trials else {}
    dimensions = {
        name: merged_dimension([distribution], [t.params[name] for t in trials]).dimension
        for name, distribution in found.items()
        if not distribution.single()
    }
    return Space(**dimensions) if dimensions else None


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _failure(name: str, error: Exception) -> str:
    return f"No new version of the prior {name!r} ({reason_of(error)})"


def _complain(sentence: str) -> None:
    told = " ".join(sentence.split())
    warnings.warn(f"{told}; the study continues with the last good version.", stacklevel=2)
