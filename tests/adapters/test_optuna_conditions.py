"""Conditions, optional parameters and steps, read off past studies of Optuna."""

from typing import Any

import numpy as np
import optuna
import pytest

import metaprior as mp
from metaprior.adapters.histories import NothingUsable
from metaprior.adapters.optuna import read_history

optuna.logging.set_verbosity(optuna.logging.ERROR)


def boosting(trial: optuna.Trial) -> float:
    """Nested conditions on choices and on an integer, as people write them."""
    booster = trial.suggest_categorical("booster", ["gbtree", "dart", "gblinear"])
    alpha = trial.suggest_float("alpha", 1e-3, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 4)
    units = [trial.suggest_int(f"units_{i}", 16, 128, step=16) for i in range(1, layers + 1)]
    if booster != "gblinear":
        trial.suggest_float("eta", 1e-3, 1.0, log=True)
        policy = trial.suggest_categorical("policy", ["depth", "loss"])
        if policy == "loss" and booster == "dart":
            trial.suggest_int("leaves", 2, 64, log=True)
    return alpha + sum(units) / 100


def history_of(objective, *, studies=3, trials=40, space=None):
    storage = optuna.storages.InMemoryStorage()
    for seed in range(studies):
        sampler = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(storage=storage, study_name=f"s{seed}", sampler=sampler)
        study.optimize(objective, n_trials=trials)
    history = read_history(storage, space=space)
    params = [
        [t.params for t in optuna.load_study(study_name=n, storage=storage).trials]
        for n in history.names
    ]
    return history, params


EXPECTED = mp.Space(
    booster=mp.Categorical(["gbtree", "dart", "gblinear"]),
    alpha=mp.Real(1e-3, 1.0, log=True),
    layers=mp.Integer(1, 4),
    units_1=mp.Integer(16, 128, step=16),
    units_2=mp.Integer(16, 128, step=16, when={"layers": [2, 3, 4]}),
    units_3=mp.Integer(16, 128, step=16, when={"layers": [3, 4]}),
    units_4=mp.Integer(16, 128, step=16, when={"layers": [4]}),
    eta=mp.Real(1e-3, 1.0, log=True, when={"booster": ["gbtree", "dart"]}),
    policy=mp.Categorical(["depth", "loss"], when={"booster": ["gbtree", "dart"]}),
    leaves=mp.Integer(2, 64, log=True, when={"booster": ["dart"], "policy": ["loss"]}),
)


def by_name(space):
    return dict(zip(space.names, space.dimensions, strict=True))


def test_history_infers_the_conditions_that_trials_follow():
    history, params = history_of(boosting)
    found = by_name(history.tasks.space)
    assert {n: (type(d), d.when) for n, d in found.items()} == {
        n: (type(d), d.when) for n, d in by_name(EXPECTED).items()
    }
    assert "The parameter 'eta' exists only if booster is 'dart' or 'gbtree'." in [
        note.replace("'gbtree' or 'dart'", "'dart' or 'gbtree'") for note in history.notes
    ]
    assert "The parameter 'units_2' exists only if layers is from 2 to 4." in history.notes
    assert not any("left out" in note or "missing" in note for note in history.notes)
    for i, expected in enumerate(params):
        points, _ = history.tasks.run(i)
        assert [set(p) for p in points] == [set(p) for p in expected]
        for point, own in zip(points, expected, strict=True):
            for name, value in own.items():
                assert point[name] == (pytest.approx(value) if type(value) is float else value)


def test_history_keeps_to_given_conditions():
    space = mp.Space(
        **{
            name: dimension
            for name, dimension in by_name(EXPECTED).items()
            if name in ("booster", "alpha", "eta")
        }
    )
    history, params = history_of(boosting, space=space)
    assert history.tasks.space == space
    points, _ = history.tasks.run(1)
    assert [set(p) for p in points] == [
        {"booster", "alpha"} | ({"eta"} if "eta" in p else set()) for p in params[1]
    ]
    # A space that forbids what trials have leaves those trials out.
    narrow = mp.Space(**{**by_name(space), "eta": mp.Real(1e-3, 1.0, when={"booster": ["dart"]})})
    history, params = history_of(boosting, space=narrow)
    outside = sum(p["booster"] == "gbtree" for p in params[0])
    assert history.studies[0].left_out == {"outside the space": outside}
    first = next(i for i, p in enumerate(params[0]) if p["booster"] == "gbtree")
    others = sum(p["booster"] == "gbtree" for own in params for p in own) - 1
    assert history.notes[0] == (
        f"The parameter 'eta' is there where the space forbids it, in trial {first} of study 's0' "
        f"and {others} more: left out."
    )


def test_history_says_which_conditions_were_broken_if_nothing_is_left():
    """Every trial has a parameter that the space forbids there."""

    def objective(trial):
        trial.suggest_categorical("booster", ["gblinear", "dart"])
        return trial.suggest_float("alpha", 0, 1) + trial.suggest_float("eta", 1e-3, 1.0)

    space = mp.Space(
        booster=mp.Categorical(["gbtree", "gblinear", "dart"]),
        alpha=mp.Real(0, 1),
        eta=mp.Real(1e-3, 1.0, when={"booster": ["gbtree"]}),
    )
    with pytest.raises(NothingUsable) as caught:
        history_of(objective, studies=2, trials=4, space=space)
    assert str(caught.value).endswith(
        "choose others or change the space. The parameter 'eta' is there where the space forbids "
        "it, in trial 0 of study 's0' and 7 more: left out."
    )


def test_history_makes_presence_without_a_rule_a_switch():
    rng = np.random.default_rng(0)

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if rng.uniform() < 0.5:
            x += trial.suggest_float("decay", 0, 1) + trial.suggest_float("warm", 0, 1)
        return x

    history, params = history_of(objective)
    space = history.tasks.space
    assert by_name(space) == {
        "x": mp.Real(0, 1),
        "decay": mp.Real(0, 1, when={"has_decay": [True]}),
        "warm": mp.Real(0, 1, when={"has_decay": [True]}),
        "has_decay": mp.Categorical([False, True]),
    }
    points, _ = history.tasks.run(0)
    assert [p["has_decay"] for p in points] == ["decay" in p for p in params[0]]
    assert [("decay" in p, "warm" in p) for p in points] == [(p["has_decay"],) * 2 for p in points]
    count = sum("decay" in p for own in params for p in own)
    assert history.notes == [
        f"The parameter 'decay' is optional: {count} of 120 trials have it, and no other "
        "parameter says which.",
        "The parameter 'warm' is optional, together with 'decay'.",
    ]


def test_history_infers_a_condition_on_three_parameters():
    def objective(trial):
        tuned = trial.suggest_categorical("tuned", [True, False])
        solver = trial.suggest_categorical("solver", ["sgd", "adam"])
        rounds = trial.suggest_int("rounds", 0, 3)
        value = trial.suggest_float("x", 0, 1)
        if tuned and solver == "sgd" and rounds >= 2:
            value += trial.suggest_float("momentum", 0, 1)
        return value

    history, _ = history_of(objective, studies=4, trials=40)
    when = (("tuned", (True,)), ("solver", ("sgd",)), ("rounds", (2, 3)))
    assert by_name(history.tasks.space)["momentum"].when == when
    note = "The parameter 'momentum' exists only if tuned is True and solver is 'sgd' and rounds is"
    assert history.notes == [f"{note} 2 or 3."]


def test_history_takes_no_chance_for_a_rule():
    """Few trials, each with a value of its own: presence is a function of the choice, by chance."""
    rng = np.random.default_rng(1)

    def objective(trial):
        trial.suggest_categorical("name", [f"n{i}" for i in range(30)])
        trial.suggest_int("seed", 0, 10**6)
        x = trial.suggest_float("x", 0, 1)
        if rng.uniform() < 0.5:
            trial.suggest_float("z", 0, 1)
        return x

    history, _ = history_of(objective, studies=2, trials=15)
    assert not any("exists only if" in note for note in history.notes)
    assert by_name(history.tasks.space)["z"].when == (("has_z", (True,)),)


def test_history_leaves_out_what_only_some_studies_have():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.study.study_name == "s2":
            x += trial.suggest_float("new", 0, 1)
        return x

    history, _ = history_of(objective)
    assert history.tasks.space.names == ("x",)
    assert history.notes == [
        "Too often missing, and left out of the space: 'new' (in 33% of the trials)."
    ]


def test_history_keeps_steps_that_all_studies_have():
    def objective(trial):
        number = trial.study.study_name == "s1"
        a = trial.suggest_float("a", 0.0, 1.0, step=0.1)
        b = trial.suggest_int("b", 0, 20 if number else 40, step=5)
        c = trial.suggest_float("c", 0.0, 1.0, step=0.25 if number else 0.2)
        return a + b + c

    history, params = history_of(objective)
    assert by_name(history.tasks.space) == {
        "a": mp.Real(0.0, 1.0, step=0.1),
        "b": mp.Integer(0, 40, step=5),
        "c": mp.Real(0.0, 1.0),
    }
    assert history.notes == [
        "The parameter 'b' has bounds that differ: all of [0, 40] is kept.",
        "The parameter 'c' has steps that differ, or values between them: taken without a step.",
    ]
    values: list[Any] = [p["a"] for p in history.tasks.run(0)[0]]
    assert values == [round(p["a"], 10) for p in params[0]]


def test_history_with_conditions_can_be_learned_from_and_saved(tmp_path):
    history, _ = history_of(boosting)
    prior = mp.learn(history.tasks, method=mp.methods.FixedGP(), seed=0)
    loaded = mp.load(prior.save(tmp_path / "prior"))
    assert loaded.space == history.tasks.space
    optimizer = mp.Optimizer(loaded, seed=0)
    for point in optimizer.ask(4):
        assert set(point) == set(loaded.space.existing(point))
