"""Scenes in an Optuna storage, which is an SQLite file."""

import time
from itertools import count

import numpy as np
import optuna
from optuna.trial import TrialState

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler, versions_in
from metaprior.adapters.optuna._ledger import StorageLedger
from metaprior.adapters.optuna._lifelong import LifelongSampler
from metaprior.adapters.optuna._relearning import Settings, opened
from metaprior.adapters.optuna._version_store import FolderVersionStore
from metaprior.lifelong import untrained_prior
from tests.kill._engine import BEGUN, Say, Scene, hidden_in
from tests.kill._files import without_training

NAME = "ovens"
SPACE = mp.Space(x=mp.Real(-1.0, 1.0), z=mp.Real(0.0, 10.0))
# Seconds without a heartbeat after which a worker counts as dead.
EXPIRES = 0.3

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Study(Scene):
    """A study that the sampler proposes for."""

    longest = 3.0

    def work(self, say: Say) -> None:
        sampler = MetaPriorSampler(untrained_prior(SPACE, "maximize"), seed=0)
        study = _study(self.address, "one", sampler)
        say(BEGUN)
        study.optimize(_objective(say), callbacks=[_saying(say)])

    @property
    def address(self) -> str:
        return f"sqlite:///{self.folder / 'studies.db'}"

    def check(self, said):
        _require_told(self.address, said)


class SequenceInStorage(Scene):
    """A sequence of studies whose prior learns; learning takes no time."""

    longest = 4.0

    @property
    def address(self) -> str:
        return f"sqlite:///{self.folder / 'studies.db'}"

    @property
    def settings(self) -> Settings:
        store = FolderVersionStore(self.folder / "priors", NAME)
        return Settings(self.address, NAME, store, SPACE, "fast", 0, EXPIRES)

    def work(self, say: Say) -> None:
        without_training()
        storage = opened(self.address)
        begun = len(optuna.get_all_study_names(storage))
        for number in count(begun):
            sampler = LifelongSampler(self.settings, background=False)
            study = _study(self.address, f"study {number}", sampler)
            say(BEGUN)
            study.optimize(_objective(say), n_trials=3, callbacks=[_saying(say)])
            sampler.finish(study)
            say(f"version {sampler.version}")

    def check(self, said):
        if not _require_told(self.address, said):
            return
        storage = opened(self.address)
        if f"metaprior:{NAME}" not in optuna.get_all_study_names(storage):
            return
        found = versions_in(storage, NAME)
        newest = max((int(line.split()[1]) for line in said if "version" in line), default=0)
        assert newest <= len(found.versions), "a version is lost"
        ledger = StorageLedger(storage, NAME, expires=EXPIRES)
        for entry in ledger.entries:
            assert self.settings.store.get(entry.place).space == SPACE
        # One that was killed before its heart beat is watched from the first look on.
        ledger.is_learning()
        time.sleep(EXPIRES + 0.05)
        assert not ledger.is_learning(), "a lock outlives its expiry"
        states = [trial.state for trial in ledger.study.get_trials()]
        assert TrialState.RUNNING not in states, "an attempt to learn goes on forever"
        assert len(hidden_in(self.folder)) <= 3, "litter grows"


def _study(address: str, name: str, sampler) -> optuna.Study:
    return optuna.create_study(
        storage=opened(address),
        study_name=name,
        sampler=sampler,
        direction="maximize",
        load_if_exists=True,
    )


def _objective(say: Say):
    def objective(trial: optuna.Trial) -> float:
        x, z = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("z", 0.0, 10.0)
        return round(float(np.random.uniform(0.0, 1.0)), 9) + 0.0 * (x + z)

    return objective


def _saying(say: Say):
    return lambda study, trial: say(f"value {trial.value}")


def _require_told(address: str, said: list[str]) -> bool:
    """Every value that was told is in the storage; False if there is no study yet."""
    told = {float(line.split()[1]) for line in said if line.startswith("value")}
    try:
        storage = opened(address)
    except ValueError:  # killed while it was made: then nothing has been told
        assert not told, "the storage is gone"
        return False
    names = [n for n in optuna.get_all_study_names(storage) if not n.startswith("metaprior:")]
    found = {
        trial.value
        for name in names
        for trial in optuna.load_study(study_name=name, storage=storage).get_trials(deepcopy=False)
        if trial.state == TrialState.COMPLETE
    }
    assert told <= found, f"told and lost: {told - found}"
    return bool(names)
