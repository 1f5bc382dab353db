"""The lifelong sampler: versions in a storage, the lock, and everything that can go wrong."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from typer.testing import CliRunner

import metaprior as mp
from metaprior.adapters import pack, unpack
from metaprior.adapters.optuna import MetaPriorSampler, restore, versions_in
from metaprior.adapters.optuna._heartbeat import HEARTBEAT, heartbeat
from metaprior.adapters.optuna._ledger import StorageLedger
from metaprior.adapters.optuna._relearning import finished_studies
from metaprior.adapters.optuna._version_store import FolderVersionStore
from metaprior.cli._app import app
from metaprior.lifelong import Version, untrained_prior
from tests.adapters.lifelong_workers import NAME, SPACE, objective, stand_in
from tests.saved import arrays_of

WORKER = Path(__file__).with_name("lifelong_workers.py")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    monkeypatch.setattr("metaprior.cli._app.prepare_jax", lambda: None)
    # One kind of prior, of which only the numbers change: its code is compiled once.
    monkeypatch.setattr("metaprior.adapters.optuna._lifelong.untrained_prior", fixed_prior)
    # Runs that a version has not seen are examined elsewhere; here they score 0.
    monkeypatch.setattr(
        "metaprior.lifelong._learning.held_out_log_likelihood",
        lambda prior, tasks, *, spread: np.zeros(len(tasks)),
    )


@pytest.fixture
def learning(monkeypatch):
    """Put a stand-in in the place of learning."""

    def put(scores, **options):
        monkeypatch.setattr("metaprior.lifelong._learning.learn", stand_in(scores, **options))

    return put


def fixed_prior(space, direction):
    method = mp.methods.FixedGP()
    trained = mp.methods.TrainedContents(method, method.blank_surrogate(space.num_columns))
    return mp.Prior(space, direction, trained)


def sampler_for(storage, folder, **options):
    return MetaPriorSampler.lifelong(
        storage, **{"name": NAME, "folder": folder, "space": SPACE, "seed": 0, **options}
    )


def run_study(storage, name, sampler, trials=3):
    study = optuna.create_study(
        storage=storage, study_name=name, sampler=sampler, direction="maximize"
    )
    study.optimize(objective, n_trials=trials)
    return study


def past_studies(storage, *names):
    """Finished studies of the sequence, random ones."""
    for i, name in enumerate(names):
        study = run_study(storage, name, optuna.samplers.RandomSampler(seed=i))
        study.set_user_attr("metaprior", NAME)


def storages(tmp_path):
    yield InMemoryStorage()
    yield JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    yield f"sqlite:///{tmp_path / 'studies.db'}"


def version(number, runs=("a",), kept=True):
    return Version(number, list(runs), 0.5, dict.fromkeys(runs, 0.5), 1.0, kept, "because")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(0, id="memory"),
        pytest.param(1, id="journal"),
        pytest.param(2, id="sqlite", marks=pytest.mark.slow),
    ],
)
def test_lifelong_sampler_makes_every_study_a_task(tmp_path, kind, learning):
    learning([0.5, -9.0, 1.0, 0.2, 0.3])
    storage = list(storages(tmp_path))[kind]
    sampler = sampler_for(storage, tmp_path / "priors")
    used = []
    for name in "abcdef":
        study = run_study(storage, name, sampler, trials=2)
        used.append(sampler.version)
        assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 2
        assert study.user_attrs["metaprior"] == NAME
        assert study.user_attrs["metaprior:version"] == sampler.version
    # From a and b; then a version that is worse is not used; then one that is better.
    assert used == [0, 0, 1, 1, 3, 3]
    found = versions_in(storage, NAME)
    assert [each.runs for each in found.versions] == [
        ["a", "b"],
        ["a", "b", "c"],
        ["a", "b", "c", "d"],
        ["a", "b", "c", "d", "e"],
    ]
    assert [each.kept for each in found.versions] == [True, False, True, False]
    assert found.current == 3 and found.studies == list("abcde")
    assert restore(storage, NAME, 1).number == 1
    run_study(storage, "g", sampler_for(storage, tmp_path / "priors"), trials=1)
    assert versions_in(storage, NAME).versions[-1].runs == list("abcdef")


def test_lifelong_sampler_uses_a_restored_version_until_a_new_study_ends(tmp_path, learning):
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    learning([0.5, 0.6, -9.0])
    sampler = sampler_for(storage, tmp_path / "priors")
    for name in "abcd":
        run_study(storage, name, sampler, trials=2)
    assert sampler.version == 2
    done = CliRunner().invoke(
        app, ["status", f"optuna:{storage}", "--name", NAME, "--restore", "1", "--json"]
    )
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["current"] == 1 and [v["number"] for v in told["versions"]] == [1, 2]
    run_study(storage, "e", sampler, trials=2)
    assert sampler.version == 1 and versions_in(storage, NAME).current == 1
    missing = CliRunner().invoke(app, ["status", f"optuna:{storage}", "--name", "other"])
    assert missing.exit_code == 2 and "those it has: 'ovens'" in missing.stderr
    with pytest.raises(ValueError, match="no version 9"):
        restore(storage, NAME, 9)


def test_lifelong_sampler_ends_a_study_when_another_begins_or_finish_is_called():
    storage = InMemoryStorage()
    sampler = sampler_for(storage, "unused")
    first = run_study(storage, "first", sampler, trials=1)
    assert finished_studies(storage, NAME, first) == []
    second = run_study(storage, "second", sampler, trials=1)
    assert finished_studies(storage, NAME, second) == ["first"]
    assert finished_studies(storage, NAME, first) == []
    sampler.finish(second)
    assert finished_studies(storage, NAME, first) == ["second"]
    assert finished_studies(storage, NAME, None) == ["first", "second"]


def test_lifelong_sampler_without_a_space_uses_that_of_the_study(tmp_path):
    storage = InMemoryStorage()
    sampler = sampler_for(storage, tmp_path, space=None)
    study = optuna.create_study(storage=storage, study_name="a", sampler=sampler)
    study.optimize(objective, n_trials=2)
    plain = sampler._sampler_for(study)
    assert isinstance(plain, MetaPriorSampler)
    assert (plain.prior.space, plain.prior.direction) == (SPACE, "minimize")


def test_lifelong_sampler_learns_once_in_many_threads(tmp_path, learning):
    learning([0.5])
    storage = InMemoryStorage()
    past_studies(storage, "a", "b")
    sampler = sampler_for(storage, tmp_path)
    study = optuna.create_study(storage=storage, sampler=sampler, direction="maximize")
    study.optimize(objective, n_trials=4, n_jobs=2)
    assert sampler.version == 1 and len(versions_in(storage, NAME).versions) == 1
    assert len({trial.params["x"] for trial in study.trials}) == 4


def test_lifelong_sampler_does_not_wait_for_a_learning_worker(tmp_path, learning):
    learning([0.5])
    storage = InMemoryStorage()
    past_studies(storage, "a", "b")
    other = StorageLedger(storage, NAME, expires=3600.0)
    busy = other.study.ask()
    busy.set_user_attr(HEARTBEAT, heartbeat())
    sampler = sampler_for(storage, tmp_path, expires=3600.0)
    study = run_study(storage, "c", sampler, trials=1)
    assert sampler.version == 0 and "metaprior:version" not in study.user_attrs
    # It died: its heart has not beaten for longer than it may.
    here, now, clock = heartbeat()
    busy.set_user_attr(HEARTBEAT, [here, now - 3601.0, clock])
    study.optimize(objective, n_trials=1)
    assert sampler.version == 1 and study.user_attrs["metaprior:version"] == 1
    states = [trial.state for trial in other.study.get_trials()]
    assert states == [TrialState.FAIL, TrialState.COMPLETE]


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_storage_ledger_judges_no_worker_by_a_wall_clock(ahead):
    """One on another machine, whose clock is wrong: it lives as long as its heart beats."""
    storage = InMemoryStorage()
    ledger = StorageLedger(storage, NAME, expires=0.2)
    far = ledger.study.ask()
    for _ in range(3):
        far.set_user_attr(HEARTBEAT, ["far", 12.5, f"{time.time() + ahead}"])
        assert ledger.is_learning()
        time.sleep(0.11)
        far.set_user_attr(HEARTBEAT, ["far", 12.6, f"{time.time() + ahead}"])
        # Another process of this machine looks on where the first one left off.
        assert StorageLedger(storage, NAME, expires=0.2).is_learning()
        time.sleep(0.11)
    assert ledger.is_learning()
    time.sleep(0.21)
    assert not StorageLedger(storage, NAME, expires=0.2).is_learning()


def test_storage_ledger_judges_workers_that_wrote_the_time(tmp_path):
    """As they did before; an hour ahead, one that died blocked learning for an hour."""
    ledger = StorageLedger(InMemoryStorage(), NAME, expires=0.1)
    for said in (time.time() + 3600.0, None, "noon", []):
        trial = ledger.study.ask()
        if said is not None:
            trial.set_user_attr(HEARTBEAT, said)
        assert ledger.is_learning()
        time.sleep(0.11)
        assert not ledger.is_learning()


def test_finished_studies_are_in_the_order_in_which_they_joined(tmp_path, learning, monkeypatch):
    """Even if the clock is set back between them."""
    learning([0.5])
    storage = InMemoryStorage()
    monkeypatch.setattr(time, "time", lambda: 1e9)
    past_studies(storage, "a", "b")
    monkeypatch.setattr(time, "time", lambda: 5e8)
    sampler = sampler_for(storage, tmp_path)
    study = run_study(storage, "c", sampler, trials=1)
    assert finished_studies(storage, NAME, study) == ["a", "b"]
    later = run_study(storage, "d", sampler, trials=1)
    assert finished_studies(storage, NAME, later) == ["a", "b", "c"]
    assert finished_studies(storage, NAME, None) == ["a", "b", "c"]
    assert finished_studies(storage, NAME, study) == ["a", "b"]


def test_storage_ledger_gives_the_lock_to_the_lowest_number():
    storage = InMemoryStorage()
    ledger = StorageLedger(storage, NAME, expires=60.0)
    with ledger.attempt() as mine:
        assert mine is not None and ledger.is_learning()
        with StorageLedger(storage, NAME, expires=60.0).attempt() as theirs:
            assert theirs is None
        assert mine.publish(version(mine.number), {"folder": "x"})
    assert not ledger.is_learning()
    (entry,) = ledger.entries
    assert (entry.version.number, entry.version.runs, entry.place) == (1, ["a"], {"folder": "x"})


def test_storage_ledger_lets_the_second_of_two_attempts_back_off(monkeypatch):
    storage = InMemoryStorage()
    ledger = StorageLedger(storage, NAME, expires=60.0)
    # Both looked before either had begun.
    monkeypatch.setattr(ledger, "is_learning", lambda: False)
    with ledger.attempt() as first, ledger.attempt() as second:
        assert first is not None and second is None
    assert [trial.state for trial in ledger.study.get_trials()] == [TrialState.FAIL] * 2


def test_storage_ledger_refuses_to_publish_an_attempt_declared_dead(tmp_path):
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    optuna.create_study(storage=storage)
    ledger = StorageLedger(optuna.storages.get_storage(storage), NAME, expires=60.0)
    hasty = StorageLedger(optuna.storages.get_storage(storage), NAME, expires=-1.0)
    with ledger.attempt() as slow:
        assert slow is not None and not hasty.is_learning()
        assert not slow.publish(version(1), {"folder": "x"})
    assert ledger.entries == [] and ledger.current == 0


def test_storage_ledger_sends_heartbeats_during_an_attempt():
    ledger = StorageLedger(InMemoryStorage(), NAME, expires=0.3)
    with ledger.attempt() as attempt:
        assert attempt is not None
        time.sleep(0.6)
        assert ledger.is_learning()


def test_storage_ledger_returns_records_of_any_length():
    ledger = StorageLedger(InMemoryStorage(), NAME, expires=60.0)
    names = [f"study {i} of a very long name – ü" for i in range(500)]
    with ledger.attempt() as attempt:
        assert attempt is not None
        long = version(1, names)
        assert attempt.publish(long, {"folder": "x"})
    assert ledger.entry(1).version == long
    attributes = ledger.study.get_trials()[0].user_attrs
    assert max(len(json.dumps(value)) for value in attributes.values()) < 2046 * 2


def test_lifelong_sampler_warns_once_of_a_failure_and_keeps_the_last_good_version(
    tmp_path, learning
):
    storage = InMemoryStorage()
    past_studies(storage, "a", "b")
    learning([0.5])
    sampler = sampler_for(storage, tmp_path / "priors")
    run_study(storage, "c", sampler, trials=2)
    assert sampler.version == 1

    def fail():
        raise OSError(28, "No space left on device")

    learning([], during=fail)
    with pytest.warns(UserWarning, match="No space left on device.*the last good version") as told:
        study = run_study(storage, "d", sampler, trials=3)
    assert len(told) == 1 and sampler.version == 1
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 3
    ledger = StorageLedger(storage, NAME, expires=60.0)
    last = ledger.study.get_trials()[-1]
    assert last.state == TrialState.FAIL and "No space left" in last.user_attrs["reason"]
    learning([0.9])
    run_study(storage, "e", sampler, trials=1)
    assert sampler.version == 2, "the next study tries again"


class Flaky(InMemoryStorage):
    """A storage that can be away when a version is to be written down."""

    gone = False

    def set_trial_user_attr(self, trial_id, key, value):
        if self.gone and key != HEARTBEAT:
            raise optuna.exceptions.StorageInternalError("the server is gone")
        super().set_trial_user_attr(trial_id, key, value)


def test_lifelong_sampler_loses_no_trial_to_an_unreachable_storage(tmp_path, learning):
    storage = Flaky()
    past_studies(storage, "a", "b")
    learning([0.5], during=lambda: setattr(storage, "gone", True))
    sampler = sampler_for(storage, tmp_path, expires=0.5)
    with pytest.warns(UserWarning, match="the server is gone"):
        study = run_study(storage, "c", sampler, trials=2)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 2
    assert versions_in(storage, NAME).versions == []
    storage.gone = False
    time.sleep(0.6)
    learning([0.5])
    run_study(storage, "d", sampler, trials=1)
    assert sampler.version == 1


def test_lifelong_sampler_falls_back_from_a_version_that_cannot_be_loaded(tmp_path, learning):
    storage = InMemoryStorage()
    past_studies(storage, "a", "b")
    learning([0.5, 0.6])
    for name in "cd":
        run_study(storage, name, sampler_for(storage, tmp_path / "priors"), trials=2)
    (newest,) = (tmp_path / "priors" / NAME).glob("0002-*")
    arrays_of(newest).write_bytes(b"half")
    sampler = sampler_for(storage, tmp_path / "priors")
    study = optuna.load_study(study_name="d", storage=storage, sampler=sampler)
    with pytest.warns(UserWarning, match="Version 2 of the prior 'ovens' cannot be loaded"):
        study.optimize(objective, n_trials=1)
    assert sampler.version == 1


def test_lifelong_sampler_loads_a_version_once_and_keeps_its_random_state(
    tmp_path, learning, recwarn
):
    """Where a damaged version stays the current one, as while another worker learns."""
    storage = InMemoryStorage()
    past_studies(storage, "a", "b")
    learning([0.5, 0.6])
    for name in "cd":
        run_study(storage, name, sampler_for(storage, tmp_path / "priors"), trials=2)
    (newest,) = (tmp_path / "priors" / NAME).glob("0002-*")
    arrays_of(newest).write_bytes(b"half")
    sampler = sampler_for(storage, tmp_path / "priors")
    study = optuna.load_study(study_name="d", storage=storage, sampler=sampler)
    recwarn.clear()
    for _ in range(3):
        sampler._settled.clear()
        study.optimize(lambda t: objective(t) + t.suggest_float("other", 0, 1), n_trials=1)
    assert sampler.version == 1
    # The parameter that the prior does not know has a warning of its own.
    assert len([each for each in recwarn if "other" not in str(each.message)]) == 1
    assert len({trial.params["other"] for trial in study.trials[-3:]}) == 3


def test_lifelong_sampler_keeps_the_version_of_a_study(tmp_path, learning):
    storage = InMemoryStorage()
    past_studies(storage, "a", "b")
    learning([0.5, 0.6])
    sampler = sampler_for(storage, tmp_path / "priors")
    studies, used = {}, []
    for name in "cdcd":
        if name not in studies:
            studies[name] = run_study(storage, name, sampler, trials=2)
        else:
            studies[name].optimize(objective, n_trials=1)
        used.append((sampler.version, studies[name].user_attrs["metaprior:version"]))
    assert used == [(1, 1), (2, 2), (1, 1), (2, 2)]
    assert sampler._sampler_for(studies["c"]) is not sampler._sampler_for(studies["d"])


def test_lifelong_sampler_gives_workers_of_one_seed_different_first_points(tmp_path):
    storage = InMemoryStorage()
    tried = []
    for _ in range(3):
        sampler = sampler_for(storage, tmp_path / "priors", space=None)
        study = optuna.create_study(
            storage=storage, study_name="first", sampler=sampler, load_if_exists=True
        )
        trial = study.ask()
        tried.append((trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("z", 0.0, 10.0)))
    assert len(set(tried)) == 3


def test_artifact_version_store_keeps_priors(tmp_path, learning):
    from optuna.artifacts import FileSystemArtifactStore

    learning([0.5])
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    past_studies(storage, "a", "b")
    (tmp_path / "artifacts").mkdir()
    store = FileSystemArtifactStore(str(tmp_path / "artifacts"))
    run_study(storage, "c", sampler_for(storage, None, artifact_store=store), trials=1)
    fresh = sampler_for(storage, None, artifact_store=store)
    study = optuna.load_study(study_name="c", storage=storage, sampler=fresh)
    study.optimize(objective, n_trials=1)
    assert fresh.version == 1
    wrong = sampler_for(storage, tmp_path / "folder")
    with pytest.warns(UserWarning, match="is in an artifact store"):
        optuna.load_study(study_name="c", storage=storage, sampler=wrong).optimize(
            objective, n_trials=1
        )


def test_pack_and_unpack_round_trip_a_prior(tmp_path, hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    folder = mp.learn(tasks, method=mp.methods.FixedGP()).save(tmp_path / "prior")
    packed = pack(folder)
    assert mp.load(unpack(packed, tmp_path / "again")).space == hill_space
    with pytest.raises(mp.PriorFileError, match="cannot be unpacked"):
        unpack(packed[: len(packed) // 2], tmp_path / "half")


def test_lifelong_sampler_can_be_pickled(tmp_path):
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    sampler = sampler_for(storage, tmp_path)
    run_study(storage, "a", sampler, trials=1)
    copy = pickle.loads(pickle.dumps(sampler))
    study = optuna.load_study(study_name="a", storage=storage, sampler=copy)
    study.optimize(objective, n_trials=1)
    copy.reseed_rng()
    assert copy.version == 0 and len(study.trials) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folder": None}, "give either folder"),
        ({"artifact_store": object()}, "give either folder"),
        ({"name": ""}, "give the sequence a name"),
        ({"background": True}, "cannot see studies in memory"),
        ({"expires": 0.0}, "seconds above 0"),
        ({"budget": "huge"}, "The budget is 'huge'"),
    ],
)
def test_lifelong_sampler_refuses_bad_arguments(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        sampler_for(InMemoryStorage(), **{"folder": tmp_path, **options})


def test_lifelong_sampler_refuses_studies_of_other_sequences_and_storages(tmp_path):
    storage = InMemoryStorage()
    elsewhere = optuna.create_study(sampler=sampler_for(storage, tmp_path), study_name="a")
    with pytest.raises(ValueError, match="is not in the storage"):
        elsewhere.optimize(objective, n_trials=1)
    past_studies(storage, "b")
    other = sampler_for(storage, tmp_path, name="other")
    with pytest.raises(ValueError, match="belongs to the sequence 'ovens' already"):
        optuna.load_study(study_name="b", storage=storage, sampler=other).ask()
    several = optuna.create_study(
        storage=storage,
        sampler=sampler_for(storage, tmp_path),
        directions=["minimize", "maximize"],
    )
    with pytest.raises(ValueError, match="has 2 objectives"):
        several.ask()


def worker(tmp_path, storage, study, trials, *, expires=60.0, seconds=0.0):
    command = [sys.executable, str(WORKER), storage, str(tmp_path / "priors"), study]
    return subprocess.Popen(
        [*command, str(trials), str(expires), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )


@pytest.mark.slow
def test_lifelong_sampler_learns_one_version_in_two_processes(tmp_path):
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    past_studies(storage, "a", "b")
    StorageLedger(optuna.storages.get_storage(storage), NAME, expires=60.0)
    workers = [worker(tmp_path, storage, "c", 6, seconds=2.0) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in workers]
    assert [process.returncode for process in workers] == [0, 0]
    assert sum(text.count("learning") for text in said) == 1
    found = versions_in(storage, NAME)
    assert [each.number for each in found.versions] == [1] and found.current == 1
    study = optuna.load_study(study_name="c", storage=storage)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 12


@pytest.mark.slow
def test_lifelong_sampler_takes_over_from_a_killed_worker(tmp_path):
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    past_studies(storage, "a", "b")
    doomed = worker(tmp_path, storage, "c", 1, expires=3.0, seconds=600.0)
    assert doomed.stdout is not None and doomed.stdout.readline() == "learning\n"
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.communicate()
    assert versions_in(storage, NAME).versions == []
    time.sleep(3.5)
    said, _ = worker(tmp_path, storage, "c", 2, expires=3.0).communicate(timeout=120)
    assert said == "learning\nversion 1\n"
    ledger = StorageLedger(optuna.storages.get_storage(storage), NAME, expires=60.0)
    states = [trial.state for trial in ledger.study.get_trials()]
    assert states == [TrialState.FAIL, TrialState.COMPLETE]


FULL_DISK = """
import resource, sys, warnings
import optuna
from metaprior.lifelong import _learning
from metaprior.adapters.optuna import MetaPriorSampler
from tests.adapters.lifelong_workers import NAME, SPACE, objective, stand_in

storage = optuna.storages.InMemoryStorage()
sampler = MetaPriorSampler.lifelong(storage, name=NAME, folder=sys.argv[1], space=SPACE, seed=0)
def limit():
    if len(optuna.get_all_study_names(storage)) == 5:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
_learning.learn = stand_in([0.5, 0.6], during=limit)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for name in "abcd":
        study = optuna.create_study(
            storage=storage, study_name=name, sampler=sampler, direction="maximize"
        )
        study.optimize(objective, n_trials=2)
ours = [str(each.message) for each in told if "prior" in str(each.message)]
print("\\n".join(ours), sampler.version, len(study.trials), sep="\\n")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_lifelong_sampler_survives_a_full_disk(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        # What is compiled must not be kept: half of it might fit on that disk.
        env={**os.environ, "PYTHONPATH": os.getcwd(), "JAX_COMPILATION_CACHE_DIR": ""},
    )
    assert done.returncode == 0, done.stderr
    warning, used, trials = done.stdout.splitlines()
    assert "file too large" in warning and "the last good version" in warning
    assert (used, trials) == ("1", "2")
    assert [path.name for path in (tmp_path / NAME).iterdir()] == ["0001-0"]


STAND_IN_AT_START = """
from metaprior.lifelong import _learning
from tests.adapters.lifelong_workers import stand_in
_learning.learn = stand_in([0.5] * 5)
"""


@pytest.mark.slow
def test_lifelong_sampler_learns_in_the_background(tmp_path, monkeypatch, capfd):
    # The other process is a fresh one: what it imports at its start puts the stand-in there, too.
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text(STAND_IN_AT_START)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'start'}{os.pathsep}{os.getcwd()}")
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    past_studies(storage, "a", "b")
    sampler = sampler_for(storage, tmp_path / "priors", background=True)
    study = run_study(storage, "c", sampler, trials=1)
    assert sampler.version == 0 and sampler._process is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sampler._process.wait(120) == 0
    assert "RuntimeWarning" not in capfd.readouterr().err
    study.optimize(objective, n_trials=1)
    assert sampler.version == 1, "the study takes the new version when it is there"
    assert versions_in(storage, NAME).versions[0].runs == ["a", "b"]


@pytest.mark.parametrize("name", ["..", ".", "../up", "a/b", "\x00", "..."])
def test_folder_store_stays_in_its_folder(tmp_path, name):
    folder = tmp_path / "priors"
    store = FolderVersionStore(folder, name)
    prior = untrained_prior(SPACE, "maximize")
    place = store.put(prior, 1, SimpleNamespace(number=0))  # pyright: ignore[reportArgumentType]
    assert [path.name for path in tmp_path.iterdir()] == ["priors"]
    [inside] = folder.iterdir()
    assert (inside / place["folder"] / "prior.json").is_file()
    assert store.get(place).space == SPACE
