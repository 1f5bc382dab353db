"""User attributes of studies as features of tasks, in past studies and in the next one."""

import pickle

import optuna
import pytest

from metaprior.adapters.optuna import MetaPriorSampler, load_outputs, load_tasks
from tests.featured import featured_prior

optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="module")
def prior():
    return featured_prior()


def first_trial(sampler, attributes, pruner=None):
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    for name, value in attributes.items():
        study.set_user_attr(name, value)
    study.optimize(lambda t: t.suggest_float("x", -1, 1) + t.suggest_float("z", 0, 10), n_trials=1)
    return study.trials[0].params


def test_sampler_reads_the_features_of_a_study_from_its_user_attributes(prior):
    known = {"size": 3.0, "site": "B"}
    named = first_trial(MetaPriorSampler(prior, features=known, seed=0), {})
    assert first_trial(MetaPriorSampler(prior, seed=0), {**known, "owner": "me"}) == named
    assert first_trial(MetaPriorSampler(prior, seed=0), {}) != named
    # In a bracket, too.
    hyperband = optuna.pruners.HyperbandPruner(max_resource=9)
    assert first_trial(MetaPriorSampler(prior, seed=0), known, hyperband) == named
    # What is given to the sampler counts more than what the study says.
    given = MetaPriorSampler(prior, features=known, seed=0)
    assert first_trial(given, {"size": 1.0, "site": "A"}) == named
    assert first_trial(pickle.loads(pickle.dumps(given)), {}) == named


def test_sampler_names_study_and_feature_of_a_wrong_kind(prior):
    study = optuna.create_study(study_name="mine", sampler=MetaPriorSampler(prior, seed=0))
    study.set_user_attr("size", "big")
    with pytest.raises(ValueError, match="study 'mine': the feature 'size' is 'big', and other"):
        study.optimize(lambda t: t.suggest_float("x", -1, 1), n_trials=1)
    with pytest.raises(ValueError, match="there is no feature 'colour'"):
        MetaPriorSampler(prior, features={"colour": "red"})


@pytest.fixture
def storage():
    storage = optuna.storages.InMemoryStorage()
    for name, attributes in (("a", {"n": 10}), ("b", {"n": 30, "site": "X"}), ("c", {})):
        sampler = optuna.samplers.RandomSampler(seed=0)
        study = optuna.create_study(study_name=name, storage=storage, sampler=sampler)
        for attribute, value in attributes.items():
            study.set_user_attr(attribute, value)
        study.optimize(lambda t: t.suggest_float("x", 0, 1) ** 2, n_trials=4)
    return storage


def test_load_tasks_reads_the_named_user_attributes(storage):
    tasks = load_tasks(storage, features=["n"], value_bounds=(0, 1))
    assert tasks.feature_values == ({"n": 10}, {"n": 30}, {}) and tasks.value_bounds == (0, 1)
    assert tasks.features.names == ("n",)
    assert load_tasks(storage).feature_values == ()


def test_load_tasks_names_study_and_attribute_of_bad_features(storage):
    with pytest.raises(
        ValueError, match="No study has the user attribute 'm'; name one .*'n', 'si"
    ):
        load_tasks(storage, features=["m"])
    optuna.load_study(study_name="c", storage=storage).set_user_attr("n", [1])
    with pytest.raises(ValueError, match=r"study 'c': the feature 'n' is \[1\]; give a number"):
        load_tasks(storage, features=["n"])
    optuna.load_study(study_name="c", storage=storage).set_user_attr("n", "ten")
    with pytest.raises(ValueError, match="study 'c': the feature 'n' is 'ten', and other tasks"):
        load_tasks(storage, features=["n"])


def test_load_tasks_names_study_and_trial_of_a_value_beyond_the_bounds(storage):
    study = optuna.load_study(study_name="b", storage=storage)
    study.add_trial(
        optuna.create_trial(
            params={"x": 0.5},
            distributions={"x": optuna.distributions.FloatDistribution(0.0, 1.0)},
            value=2.0,
        )
    )
    with pytest.raises(ValueError, match="study 'b', trial 4, value: received 2, which is not"):
        load_tasks(storage, value_bounds=(0, 1))
    with pytest.raises(ValueError, match="study 'b', trial 4, 'loss': received 2, which is not"):
        load_outputs(storage, outputs={"loss": "minimize"}, value_bounds={"loss": (0, 1)})
