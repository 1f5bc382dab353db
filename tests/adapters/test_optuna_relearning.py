"""Learning from the finished studies of a sequence: what is reported, and what only waits."""

import io
import pickle
import sys
from types import SimpleNamespace

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import InMemoryStorage

from metaprior.adapters.optuna import MetaPriorSampler
from metaprior.adapters.optuna._background import main
from metaprior.adapters.optuna._relearning import MEMBER, Settings, relearn, unlearned
from metaprior.adapters.optuna._version_store import FolderVersionStore
from metaprior.findings import Findings
from metaprior.lifelong import untrained_prior
from tests.adapters.lifelong_workers import NAME, SPACE
from tests.quick_learn import quick_learn

NUMBER, CHOICE = FloatDistribution(-1.0, 1.0), CategoricalDistribution(["a", "b"])
NUMBERS, CHOICES = ((0.1, NUMBER), (0.7, NUMBER)), (("a", CHOICE), ("b", CHOICE))


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def storage():
    return InMemoryStorage()


@pytest.fixture
def settings(storage, tmp_path):
    return Settings(storage, NAME, FolderVersionStore(tmp_path, NAME), None, "fast", 0, 60.0)


def past_study(storage, name, **values):
    """A finished study with a trial for each of the values of a parameter."""
    study = optuna.create_study(storage=storage, study_name=name)
    study.set_user_attr(MEMBER, NAME)
    for parameter, found in values.items():
        for i, (value, distribution) in enumerate(found):
            study.add_trial(
                optuna.create_trial(
                    params={parameter: value},
                    distributions={parameter: distribution},
                    value=float(i),
                )
            )


def found_beside(settings, storage):
    study = optuna.create_study(storage=storage, study_name="now")
    return unlearned(settings, settings.ledger(), storage, study)


def test_unlearned_waits_for_usable_studies(settings, storage):
    past_study(storage, "a")
    past_study(storage, "b", x=NUMBERS[:1])
    assert found_beside(settings, storage) is None


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            {"x": CHOICES},
            "a number in trial 0 of study 'a' and categorical in trial 0 of study 'b'",
        ),
        ({"z": NUMBERS}, "share no parameter"),
    ],
)
def test_unlearned_names_studies_that_contradict_each_other(
    settings, storage, tmp_path, other, words
):
    past_study(storage, "a", x=NUMBERS)
    past_study(storage, "b", **other)
    with pytest.raises(ValueError, match=words):
        found_beside(settings, storage)
    sampler = MetaPriorSampler.lifelong(storage, name=NAME, folder=tmp_path, seed=0)
    with pytest.warns(UserWarning, match=words) as told:
        study = optuna.create_study(storage=storage, study_name="next", sampler=sampler)
        study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0), n_trials=2)
    assert len([each for each in told if "No new version" in str(each.message)]) == 1


def test_unlearned_names_a_storage_that_cannot_be_read(settings, storage, monkeypatch):
    past_study(storage, "a", x=NUMBERS)
    past_study(storage, "b", x=NUMBERS)

    def gone(*_, **__):
        raise optuna.exceptions.StorageInternalError("gone")

    monkeypatch.setattr("metaprior.adapters.optuna._history.read_trials", gone)
    with pytest.raises(ValueError, match=r"cannot be read \(gone\)"):
        found_beside(settings, storage)


@pytest.mark.parametrize(("interrupted", "error"), [(True, KeyboardInterrupt), (False, ValueError)])
def test_relearn_publishes_no_unfinished_version(
    settings, storage, monkeypatch, interrupted, error
):
    def learn(tasks, **options):
        return quick_learn(tasks, Findings("", interrupted=interrupted))

    monkeypatch.setattr("metaprior.lifelong._learning.learn", learn)
    past_study(storage, "a", x=NUMBERS)
    past_study(storage, "b", x=NUMBERS)
    history, ledger = found_beside(settings, storage), settings.ledger()
    assert history is not None
    with pytest.raises(error):
        relearn(settings, ledger, history)
    assert ledger.entries == [] and not ledger.is_learning()


@pytest.mark.parametrize("address", ["sqlite:///{}/no/where.db", "sqlite:///{}/empty.db"])
def test_background_main_reports_a_failure_in_one_sentence(
    settings, tmp_path, monkeypatch, capsys, address
):
    settings = settings._replace(storage=address.format(tmp_path))
    sent = io.BytesIO(pickle.dumps((settings, "study")))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=sent))
    monkeypatch.setattr(sys, "argv", ["_background", NAME])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr().err
    assert left.value.code == 1 and said.count("\n") == 1
    assert said.startswith(f"metaprior: no new version of '{NAME}' (")


def test_sampler_of_an_untrained_prior_can_be_pickled():
    sampler = MetaPriorSampler(untrained_prior(SPACE, "maximize"), seed=0)
    copy = pickle.loads(pickle.dumps(sampler))
    assert (copy.prior.space, copy.prior.method) == (SPACE, sampler.prior.method)
