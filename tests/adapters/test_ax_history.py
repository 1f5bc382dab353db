"""Past experiments that Ax itself has run and saved: what is used, what is not, and why."""

# ruff: noqa: E402 (nothing below can be imported without Ax)

import json

import numpy as np
import pytest

pytest.importorskip("ax", reason="`make oracle` installs Ax")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ax\..*"),
    pytest.mark.filterwarnings("ignore:`is_ordered` is not specified"),
]

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.storage.json_store.save import save_experiment
from typer.testing import CliRunner

import metaprior as mp
from metaprior.adapters.ax import (
    StudyUse,
    generation_strategy,
    load_outputs,
    load_tasks,
    read_history,
    read_outputs,
)
from metaprior.cli._app import app

RATE = RangeParameterConfig("rate", (1e-4, 1.0), "float", scaling="log")
DEPTH = RangeParameterConfig("depth", (2, 9), "int")
ACT = ChoiceParameterConfig("act", ["relu", "elu"], "str", is_ordered=False)
BATCH = ChoiceParameterConfig("batch", [16, 32, 64], "int", is_ordered=True)
DROP = RangeParameterConfig("drop", (0.0, 1.0), "float", step_size=0.25)
CODE = ChoiceParameterConfig("code", [1, 5, 9], "int", is_ordered=False)
FLAG = ChoiceParameterConfig("flag", [True, False], "bool", is_ordered=False)


def site(name):
    """A parameter that is fixed in an experiment."""
    return ChoiceParameterConfig("site", [name], "str", is_ordered=False)


ALL = [RATE, DEPTH, ACT, BATCH, DROP, CODE, FLAG]
SPACE = mp.Space(
    rate=mp.Real(1e-4, 1.0, log=True),
    depth=mp.Integer(2, 9),
    act=mp.Categorical(["relu", "elu"]),
    batch=mp.Integer(16, 64, log=True),
    drop=mp.Real(0.0, 1.0, step=0.25),
    code=mp.Categorical([1, 5, 9]),
    flag=mp.Categorical([False, True]),
)


def point(i, **others):
    return {
        "rate": 10.0**-i,
        "depth": 2 + i,
        "act": ("relu", "elu")[i % 2],
        "batch": (16, 32, 64)[i % 3],
        "drop": 0.25 * (i % 5),
        "code": (1, 5, 9)[i % 3],
        "flag": i % 2 == 0,
        **others,
    }


def client_of(name, objective="-loss", *, parameters=ALL, outcomes=None):
    client = Client(random_seed=0)
    client.configure_experiment(parameters, name=name)
    client.configure_optimization(objective, outcome_constraints=outcomes)
    return client


def tell(client, values, metric="loss", **others):
    for i, value in enumerate(values):
        client.complete_trial(client.attach_trial(point(i, **others)), {metric: value})


@pytest.fixture
def clients():
    north, south = (client_of(name, parameters=[*ALL, site(name)]) for name in ("north", "south"))
    tell(north, [1.0, 2.0, 3.0, 4.0], site="north")
    tell(south, [5.0, 6.0, 7.0], site="south")
    return [north, south]


def saved(clients, folder, *, as_experiments=False):
    for i, client in enumerate(clients):
        if as_experiments:
            save_experiment(client._experiment, str(folder / f"past{i}.json"))
        else:
            client.save_to_json_file(str(folder / f"past{i}.json"))
    return folder


@pytest.mark.parametrize("kind", ["clients", "experiments", "saved clients", "saved experiments"])
def test_read_history_gives_the_same_tasks_from_every_source(clients, tmp_path, kind):
    sources = {
        "clients": lambda: clients,
        "experiments": lambda: [client._experiment for client in clients],
        "saved clients": lambda: saved(clients, tmp_path),
        "saved experiments": lambda: saved(clients, tmp_path, as_experiments=True),
    }[kind]()
    history = read_history(sources, features=["site"])
    assert history.tasks.space == SPACE
    assert history.tasks.direction == "minimize" and history.tasks.quantity.name == "loss"
    assert history.tasks.feature_values == ({"site": "north"}, {"site": "south"})
    assert history.studies == [
        StudyUse("north", True, 4, {}, ""),
        StudyUse("south", True, 3, {}, ""),
    ]
    points, values = history.tasks.run(0)
    np.testing.assert_array_equal(values, [1.0, 2.0, 3.0, 4.0])
    assert [each["batch"] for each in points] == [16, 32, 64, 16]
    assert [each["flag"] for each in points] == [True, False, True, False]
    assert history.notes == [
        "The same in all trials of each study, and left out of the space: 'site'; as a feature it "
        "would say something of the task."
    ]


def test_read_history_counts_unusable_trials():
    client = client_of("mixed", "score", outcomes=["memory <= 3.0", "speed >= 1.0"])
    for memory, speed in ((3.0, 1.0), (2.0, 5.0), (3.5, 5.0), (2.0, 0.5)):
        values = {"score": memory + speed, "memory": memory, "speed": speed}
        client.complete_trial(client.attach_trial(point(0)), values)
    client.complete_trial(client.attach_trial(point(1)), {"memory": 1.0, "speed": 1.0})
    client.mark_trial_failed(client.attach_trial(point(2)))
    client.mark_trial_abandoned(client.attach_trial(point(2)))
    early = client.attach_trial(point(2))
    client.attach_data(early, {"score": 9.0}, progression=1)
    client.mark_trial_early_stopped(early)
    client.attach_trial(point(2))
    other = client_of("other", "score")
    tell(other, [1.0, 2.0], "score")
    history = read_history([client, other])
    left_out = {
        "infeasible": 2,
        "without the metric": 1,
        "failed": 1,
        "abandoned": 1,
        "stopped early": 1,
        "running": 1,
    }
    assert history.studies[0] == StudyUse("mixed", True, 2, left_out, "")
    np.testing.assert_array_equal(history.tasks.run(0)[1], [4.0, 7.0])


def test_read_history_takes_the_latest_value_of_a_metric():
    client = client_of("curve")
    for i in range(2):
        trial = client.attach_trial(point(i))
        for step in (1, 2, 3):
            client.attach_data(trial, {"loss": 10.0 * i + step}, progression=step)
        client.complete_trial(trial)
    np.testing.assert_array_equal(load_tasks(client).run(0)[1], [3.0, 13.0])


def test_read_history_needs_a_metric_where_there_are_several_objectives():
    both = client_of("both", "acc, -cost")
    for i in range(3):
        values = {"acc": 0.1 * i, "cost": 5.0 - i, "time": 1.0 + i}
        both.complete_trial(both.attach_trial(point(i)), values)
    one = client_of("one", "cost")
    tell(one, [1.0, 2.0], "cost")
    assert read_history([both, one]).studies[0] == StudyUse(
        "both", False, 0, {}, "several objectives, and no metric is named"
    )
    history = read_history([both, one], metric="cost")
    assert history.tasks.direction == "minimize"
    assert history.notes == ["One study is maximized ('one'): values are negated, to be minimized."]
    timed = load_tasks(both, metric="time", direction="minimize")
    np.testing.assert_array_equal(timed.run(0)[1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="Nothing in 1 Ax experiment says whether high or low val"):
        load_tasks(both, metric="time")
    with pytest.raises(ValueError, match="no metric 'auc' in 1 Ax experiment; there are 'acc', 'c"):
        load_tasks(both, metric="auc")
    with pytest.raises(ValueError, match="has a fixed parameter 'rate'"):
        load_tasks(one, features="rate")


def test_read_history_asks_for_the_direction_that_only_a_skipped_experiment_has(clients):
    short = client_of("short", "-cost")
    tell(short, [1.0], "cost")
    other = client_of("other", "-loss")
    for i in range(3):
        other.complete_trial(other.attach_trial(point(i)), {"loss": 1.0, "cost": float(i)})
    with pytest.raises(ValueError, match="that are used says whether high or low values are bett"):
        read_history([short, other], metric="cost")
    used = read_history([short, other], metric="cost", direction="minimize")
    assert used.names == ["other"] and used.tasks.direction == "minimize"


def test_read_outputs_of_objectives_and_constraints():
    past = []
    for k in range(2):
        limits = ["memory <= 3.0", "speed >= 1.0"]
        client = client_of(f"past {k}", "acc, -cost", outcomes=limits)
        for i in range(4):
            values = {"acc": 0.1 * i + k, "cost": 5.0 - i, "memory": 2.0 + i, "speed": 1.0}
            client.complete_trial(client.attach_trial(point(i)), values)
        past.append(client)
    roles = {"acc": "maximize", "cost": "minimize", "memory": "constraint", "speed": "constraint"}
    outputs = load_outputs(past, outputs=roles)
    assert list(outputs.objectives) == ["acc", "cost"]
    assert outputs.space.names == SPACE.names and outputs["acc"].names == ("past 0", "past 1")
    np.testing.assert_allclose(outputs["acc"].run(1)[1], [1.0, 1.1, 1.2, 1.3])
    np.testing.assert_array_equal(outputs["cost"].run(0)[1], [5.0, 4.0, 3.0, 2.0])
    np.testing.assert_array_equal(outputs["memory"].run(0)[1], [-1.0, 0.0, 1.0, 2.0])
    np.testing.assert_array_equal(outputs["speed"].run(0)[1], [0.0] * 4)
    few = read_outputs(past, outputs={"acc": "maximize", "cost": "minimize"}, match="*0")
    assert few.studies == [StudyUse("past 0", True, 2, {"infeasible": 2}, "")]
    with pytest.raises(ValueError, match=r"'cost' is minimized .2."):
        load_outputs(past, outputs={"acc": "maximize", "cost": "maximize"})
    with pytest.raises(ValueError, match=r"no absolute constraint on 'acc' .2."):
        load_outputs(past, outputs={"cost": "minimize", "acc": "constraint"})


def test_read_outputs_keeps_constraints_on_sums_apart_and_refuses_two_bounds():
    roles = {"acc": "maximize", "memory": "constraint"}
    limits = ["memory <= 3.0", "memory + speed <= 5.5", "memory >= 0.5 * baseline"]
    past = [client_of("sum", "acc", outcomes=limits)]
    past += [client_of("two", "acc", outcomes=["memory <= 3.0", "memory >= 1.0"])]
    for client in past:
        for i in range(4):
            values = {"acc": 0.1 * i, "memory": 2.0 + i, "speed": 1.0}
            client.complete_trial(client.attach_trial(point(i)), values)
    found = read_outputs(past, outputs=roles)
    assert found.studies == [
        StudyUse("sum", True, 3, {"infeasible": 1}, ""),
        StudyUse("two", False, 0, {}, "2 constraints on 'memory'"),
    ]
    np.testing.assert_array_equal(found.outputs["memory"].run(0)[1], [-1.0, 0.0, 1.0])


def test_read_history_of_experiments_that_our_own_strategy_ran(tmp_path):
    """What Ax saves of a client names our node, and is read with it."""
    space = mp.Space(rate=mp.Real(1e-4, 1.0, log=True), depth=mp.Integer(2, 9))
    runs = [([{"rate": 0.1, "depth": 3}, {"rate": 0.5, "depth": 4}], [1.0, 2.0])] * 2
    prior = mp.learn(mp.Tasks.from_runs(runs, space=space), method=mp.methods.FixedGP())
    client = client_of("ours", "score", parameters=[RATE, DEPTH])
    client.set_generation_strategy(generation_strategy(prior))
    [trial] = client.get_next_trials(1)
    client.complete_trial(trial, {"score": 1.0})
    for depth in (2, 9):
        client.complete_trial(client.attach_trial({"rate": 0.5, "depth": depth}), {"score": 2.0})
    tasks = load_tasks(saved([client], tmp_path))
    assert tasks.space == space and list(tasks.lengths) == [3]
    # The next strategy accepts a prior that was learned from these tasks.
    generation_strategy(mp.learn(tasks.join(tasks), method=mp.methods.FixedGP()))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "holds no Ax experiment; give a file by `client.save_to_json_file`"),
        ('{"search_space": 1}', "holds a dict and no Ax experiment."),
        ('{"__type": "Nothing", "search_space": 1}', "is damaged, or of another version of Ax ("),
    ],
)
def test_read_history_refuses_other_files_in_one_sentence(tmp_path, text, sentence):
    (tmp_path / "past.json").write_text(text)
    with pytest.raises(ValueError) as raised:
        read_history(tmp_path / "past.json")
    assert sentence in str(raised.value) and "\n" not in str(raised.value)


def test_learn_command_reads_saved_experiments(clients, tmp_path, monkeypatch):
    monkeypatch.setattr("metaprior.cli._app.prepare_jax", lambda: None)
    monkeypatch.setattr(
        "metaprior.cli._learn.learn",
        lambda tasks, **options: mp.learn(tasks, method=mp.methods.FixedGP()),
    )
    folder = saved(clients, tmp_path)
    done = CliRunner().invoke(
        app,
        ["learn", f"ax:{folder}/past*.json", "--json", "--out", str(tmp_path / "prior")],
    )
    assert done.exit_code == 0 and done.stderr == "", done.output
    runs = json.loads(done.stdout)["runs"]
    assert (runs["names"], runs["points"]) == (["north", "south"], [4, 3])
