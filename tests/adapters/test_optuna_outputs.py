"""Several values of past Optuna studies: objectives by name or order, and constraints."""

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

import metaprior as mp
from metaprior.adapters.optuna import StudyUse, load_outputs, read_outputs

optuna.logging.set_verbosity(optuna.logging.ERROR)
X = optuna.distributions.FloatDistribution(0.0, 1.0)
ROLES = {"height": "maximize", "cost": "minimize"}


def add_study(storage, name, values, directions=("maximize", "minimize"), *, called=None, rules=()):
    """A study with trials at 0.1, 0.2, ... of these values."""
    study = optuna.create_study(study_name=name, storage=storage, directions=directions)
    if called is not None:
        with pytest.warns(optuna.exceptions.ExperimentalWarning):
            study.set_metric_names(called)
    for i, each in enumerate(values):
        trial = study.ask({"x": X})
        for key, value in rules[i : i + 1] and rules[i].items():
            trial.set_constraint(key, value)
        study.tell(trial, each)
    return study


@pytest.fixture
def storage():
    storage = optuna.storages.InMemoryStorage()
    add_study(storage, "plain", [(1.0, 2.0), (3.0, 4.0)])
    add_study(
        storage,
        "named",
        [(5.0, 6.0), (7.0, 8.0)],
        ["minimize", "maximize"],
        called=["cost", "height"],
    )
    return storage


def test_read_outputs_takes_objectives_by_name_or_in_order(storage):
    history = read_outputs(storage, outputs=ROLES)
    outputs = history.outputs
    assert history.names == ["plain", "named"] and outputs["cost"].names == ("plain", "named")
    np.testing.assert_array_equal(outputs["height"].run(0)[1], [1.0, 3.0])
    np.testing.assert_array_equal(outputs["cost"].run(0)[1], [2.0, 4.0])
    np.testing.assert_array_equal(outputs["height"].run(1)[1], [6.0, 8.0])
    np.testing.assert_array_equal(outputs["cost"].run(1)[1], [5.0, 7.0])
    assert (outputs["height"].direction, outputs["cost"].direction) == ("maximize", "minimize")
    assert outputs["cost"].quantity.name == "cost"
    # One of the objectives alone, by its name.
    alone = read_outputs(storage, outputs={"cost": "minimize"})
    assert alone.studies[0] == StudyUse("plain", False, 0, {}, "2 objectives without names")
    np.testing.assert_array_equal(alone.outputs["cost"].run(0)[1], [5.0, 7.0])


def test_read_outputs_reads_constraints_and_counts_what_is_left_out(storage):
    rules = [{"memory": -1.0, "time": -1.0}, {"memory": 2.0, "time": 0.0}, {"memory": 0.5}]
    rules += [{"memory": -1.0, "time": 1.0}, {"time": -1.0}]
    study = add_study(storage, "limits", [(float(i), 0.0) for i in range(5)], rules=rules)
    for state in (TrialState.FAIL, TrialState.RUNNING):
        study.add_trial(create_trial(state=state, params={"x": 0.5}, distributions={"x": X}))
    history = read_outputs(
        storage, outputs={**ROLES, "memory": "constraint"}, studies=["plain", "limits"]
    )
    few = "fewer than 2 complete trials with finite values"
    left_out = {"infeasible": 1, "without the constraint": 1, "failed": 1, "running": 1}
    assert history.studies == [
        StudyUse("plain", False, 0, {"without the constraint": 2}, few),
        StudyUse("limits", True, 3, left_out, ""),
    ]
    np.testing.assert_array_equal(history.outputs["memory"].run(0)[1], [-1.0, 2.0, 0.5])
    np.testing.assert_array_equal(history.outputs["height"].run(0)[1], [0.0, 1.0, 2.0])


def test_read_outputs_of_one_objective_and_a_constraint_becomes_priors(storage):
    for name in ("first", "second"):
        add_study(storage, name, [1.0, 2.0, 3.0], ["minimize"], rules=[{"c": 0.1}] * 3)
    outputs = load_outputs(
        storage, outputs={"loss": "minimize", "c": "constraint"}, studies=["first", "second"]
    )
    priors = mp.learn_outputs(outputs, method=mp.methods.FixedGP())
    assert priors["loss"].direction == "minimize" and priors["c"].space == outputs.space


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        ({}, "`outputs` is {}; give names and roles"),
        ({"height": "up"}, "The output 'height' is 'up'; give 'maximize', 'minimize' or"),
        ({"height": "minimize", "cost": "minimize"}, "'height' is maximized (2); choose others."),
        ({"height": "maximize", "loss": "minimize"}, "no objective 'loss' (1)"),
    ],
)
def test_read_outputs_answers_bad_roles_in_one_sentence(storage, outputs, sentence):
    with pytest.raises(ValueError) as raised:
        load_outputs(storage, outputs=outputs, match="named" if "loss" in outputs else None)
    assert sentence in str(raised.value) and "\n" not in str(raised.value)
