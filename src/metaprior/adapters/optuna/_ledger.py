"""The ledger of a lifelong sequence, in the storage that holds its studies.

It is a study of its own, called `metaprior:NAME`, and each attempt to learn is one of its trials:

| trial | meaning |
|---|---|
| running | a worker is learning, as long as its heart, in the trial's attributes, beats |
| complete | a version, with its held-out score as value; or the restoration of an older one |
| failed | a worker backed off, could not learn, or died |

Every storage numbers trials consecutively and lets a trial end only once. That is enough to
coordinate workers: the running trial with the lowest number holds the lock, and any worker that
finds its heartbeat stopped ends it.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import optuna
from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from metaprior.adapters.optuna._heartbeat import HEARTBEAT, heartbeat, silence
from metaprior.adapters.optuna._history import OUR_STUDIES
from metaprior.lifelong import Version

REASON, RESTORES, PLACE, RECORD = "reason", "restores", "place", "record"
# Some databases cannot hold longer text in an attribute.
_PIECE = 2000


class StoredVersion(NamedTuple):
    """A version, and where its prior is."""

    version: Version
    place: dict[str, str]


class StorageLedger:
    """The ledger called `name` in `storage`.

    - `expires`: seconds without a heartbeat after which a worker counts as dead.
    """

    def __init__(self, storage: BaseStorage, name: str, *, expires: float):
        self.name = name
        self.expires = expires
        self._storage = storage
        self.study = _study(storage, OUR_STUDIES + name)

    @property
    def entries(self) -> list[StoredVersion]:
        """All versions, oldest first."""
        return [entry for entry in map(_entry, self._trials(TrialState.COMPLETE)) if entry]

    @property
    def current(self) -> int:
        """The number of the version in use; 0 if there is none."""
        number = 0
        for trial in self._trials(TrialState.COMPLETE):
            entry = _entry(trial)
            if entry is None:
                number = int(trial.user_attrs.get(RESTORES, number))
            elif entry.version.kept:
                number = entry.version.number
        return number

    def entry(self, number: int) -> StoredVersion:
        """The version of that number."""
        entries = self.entries
        for entry in entries:
            if entry.version.number == number:
                return entry
        known = ", ".join(str(entry.version.number) for entry in entries) or "none"
        raise ValueError(
            f"There is no version {number} of {self.name!r}; name one of those there are: {known}."
        )

    def is_learning(self) -> bool:
        """Whether a worker is learning now; attempts of dead workers are ended."""
        alive = [self._is_alive(trial) for trial in self._trials(TrialState.RUNNING)]
        return any(alive)

    @contextmanager
    def attempt(self) -> Iterator["Attempt | None"]:
        """The right to learn, while inside; `None` if another worker has it.

        An exception raised inside ends the attempt and propagates.
        """
        if self.is_learning():
            yield None
            return
        trial = self.study.ask()
        trial.set_user_attr(HEARTBEAT, heartbeat())
        earlier = [t for t in self._trials(TrialState.RUNNING) if t.number < trial.number]
        if any([self._is_alive(t) for t in earlier]):
            self._end(trial.number, trial, "another worker was first")
            yield None
            return
        attempt = Attempt(self, trial)
        try:
            with attempt.beating():
                yield attempt
        except BaseException as error:
            # If the storage is unreachable, the attempt ends when its heartbeat is found stopped.
            with suppress(Exception):
                self._end(trial.number, trial, f"{type(error).__name__}: {error}")
            raise
        if not attempt.is_over:
            self._end(trial.number, trial, "there was nothing to learn")

    def restore(self, number: int) -> Version:
        """Use version `number` from now on."""
        version = self.entry(number).version
        self.study.add_trial(
            create_trial(
                state=TrialState.COMPLETE,
                value=version.score or 0.0,
                user_attrs={RESTORES: number},
            )
        )
        return version

    def _trials(self, state: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=(state,))

    def _is_alive(self, trial: FrozenTrial) -> bool:
        try:
            if silence(trial, self._storage) <= self.expires:
                return True
        except UpdateFinishedTrialError:
            return False
        self._end(trial.number, None, "")
        return False

    def _end(self, number: int, trial: Trial | None, reason: str) -> None:
        with suppress(OptunaError):  # it has ended already
            if trial is not None:
                trial.set_user_attr(REASON, " ".join(reason.split())[:_PIECE])
            self.study.tell(number, state=TrialState.FAIL, skip_if_finished=True)


class Attempt:
    """The right to learn the next version."""

    def __init__(self, ledger: StorageLedger, trial: Trial):
        self._ledger = ledger
        self.trial = trial
        self.is_over = False

    @property
    def number(self) -> int:
        """The number that the version will have."""
        return 1 + max((entry.version.number for entry in self._ledger.entries), default=0)

    def publish(self, version: Version, place: dict[str, str]) -> bool:
        """Publish the version; False if another worker declared this attempt dead before."""
        self.is_over = True
        text = json.dumps(version.to_json(), allow_nan=False)
        pieces = [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]
        try:
            for i, piece in enumerate(pieces):
                self.trial.set_user_attr(f"{RECORD}:{i}", piece)
            self.trial.set_user_attr(PLACE, place)
            # From here on the version exists: a trial that was marked as failed cannot complete.
            self._ledger.study.tell(self.trial, version.score)
        except (OptunaError, ValueError):
            if self._state() == TrialState.FAIL:
                return False
            raise
        return True

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Send heartbeats from a background thread while inside."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(self._ledger.expires / 6):
                # The storage may be unreachable for a while; an ended trial takes no attributes.
                with suppress(Exception):
                    self.trial.set_user_attr(HEARTBEAT, heartbeat())

        thread = threading.Thread(target=beat, name="metaprior-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _state(self) -> TrialState:
        trials = self._ledger.study.get_trials(deepcopy=False)
        return next(t.state for t in trials if t.number == self.trial.number)


def _study(storage: BaseStorage, name: str) -> Study:
    sampler = RandomSampler()
    try:
        return optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    except KeyError:  # another worker may create it at the same moment
        return optuna.create_study(
            study_name=name,
            storage=storage,
            sampler=sampler,
            direction="maximize",
            load_if_exists=True,
        )


def _entry(trial: FrozenTrial) -> StoredVersion | None:
    """The version that a complete trial stands for; `None` for a restoration."""
    attributes: dict[str, Any] = trial.user_attrs
    if f"{RECORD}:0" not in attributes:
        return None
    pieces = []
    while f"{RECORD}:{len(pieces)}" in attributes:
        pieces.append(attributes[f"{RECORD}:{len(pieces)}"])
    return StoredVersion(Version.from_json(json.loads("".join(pieces))), attributes[PLACE])
