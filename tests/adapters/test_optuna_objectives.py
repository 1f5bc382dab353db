"""Studies of several objectives, and with learned constraints."""

import pickle
import sys
from dataclasses import replace

import numpy as np
import optuna
import pytest

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)

TOP = {"x": 0.32, "z": 6.3}


def height(x, z):
    """A hill like those that the prior was learned from; 2 at its top."""
    return 2.0 - ((x - TOP["x"]) / 0.8) ** 2 - ((z - TOP["z"]) / 4.0) ** 2


def ask(trial):
    return trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("z", 0.0, 10.0)


def both(trial):
    """A hill to climb, and the distance from the left, which is to be small."""
    x, z = ask(trial)
    return height(x, z), x + 1.0


@pytest.fixture(scope="module")
def untrained(hill_runs, hill_space):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    return mp.learn(tasks, method=mp.methods.FixedGP(), seed=0)


@pytest.fixture(scope="module")
def priors(hill_prior, hill_runs, hill_space, quick_fpacoh):
    runs = [(p, 1.0 + 0.05 * i + np.asarray(p)[:, 0]) for i, (p, _) in enumerate(hill_runs)]
    tasks = mp.Tasks.from_runs(runs, space=hill_space, direction="minimize")
    return mp.Priors({"height": hill_prior, "left": mp.learn(tasks, method=quick_fpacoh, seed=0)})


def new_study(sampler, directions=("maximize", "minimize"), **options):
    return optuna.create_study(sampler=sampler, directions=list(directions), **options)


def test_sampler_first_trial_is_proposed_from_the_priors(priors):
    study = new_study(
        MetaPriorSampler(mp.Priors({"height": priors["height"]}), seed=0), ["maximize"]
    )
    study.optimize(lambda trial: height(*ask(trial)), n_trials=1)
    assert study.best_value > 1.8


def test_sampler_finds_a_wide_front(priors):
    study = new_study(MetaPriorSampler(priors, seed=0))
    study.optimize(both, n_trials=12)
    front = np.array([trial.values for trial in study.best_trials])
    assert len(front) >= 6
    assert front[:, 0].max() > 1.85 and front[:, 1].min() < 0.2
    worst = np.array([0.0, 2.0])
    volume = mp.bo.hypervolume(front * [1, -1], worst * [1, -1])
    assert volume > 2.4  # 2.87 is all there is


def test_sampler_follows_the_directions_of_the_study(priors):
    """The same problem turned around: values are negated, and the trials are the same."""
    study = new_study(MetaPriorSampler(priors, seed=0))
    study.optimize(both, n_trials=4)
    turned = new_study(MetaPriorSampler(priors, seed=0), ("minimize", "maximize"))
    turned.optimize(lambda trial: [-value for value in both(trial)], n_trials=4)
    assert [t.params for t in turned.trials] == [t.params for t in study.trials]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_sampler_takes_objectives_by_their_names(priors):
    study = new_study(MetaPriorSampler(priors, seed=0), ("minimize", "maximize"))
    study.set_metric_names(["left", "height"])
    study.optimize(lambda trial: both(trial)[::-1], n_trials=4)
    ordered = new_study(MetaPriorSampler(priors, seed=0))
    ordered.optimize(both, n_trials=4)
    assert [t.params for t in study.trials] == [t.params for t in ordered.trials]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_sampler_rejects_objectives_of_other_names(priors):
    study = new_study(MetaPriorSampler(priors, seed=0))
    study.set_metric_names(["left", "top"])
    with pytest.raises(ValueError, match="give both the same names"):
        study.optimize(both, n_trials=1)


def test_sampler_rejects_another_number_of_objectives(priors, hill_prior):
    with pytest.raises(
        ValueError, match="has 2 objectives, and MetaPriorSampler has a prior for one"
    ):
        new_study(MetaPriorSampler(hill_prior)).optimize(both, n_trials=1)
    with pytest.raises(ValueError, match="has one objective, and MetaPriorSampler has priors for"):
        new_study(MetaPriorSampler(priors), ["maximize"]).optimize(lambda t: ask(t)[0], n_trials=1)


def test_sampler_reads_a_folder_of_priors_and_survives_pickling(priors, tmp_path):
    sampler = MetaPriorSampler(priors.save(tmp_path / "priors"), seed=3)
    trials = []
    for each in (sampler, pickle.loads(pickle.dumps(sampler)), MetaPriorSampler(priors, seed=3)):
        study = new_study(each)
        study.optimize(both, n_trials=2)
        trials.append([trial.params for trial in study.trials])
    assert trials[0] == trials[1] == trials[2]


def test_sampler_respects_other_workers(priors):
    study = new_study(MetaPriorSampler(priors, seed=0))
    study.optimize(both, n_trials=3)
    running = [study.ask() for _ in range(3)]
    asked = np.array([ask(trial) for trial in running]) / [2.0, 10.0]
    distances = np.abs(asked[:, None] - asked[None]).max(axis=2)
    assert distances[~np.eye(3, dtype=bool)].min() > 1e-2


def test_sampler_does_not_repeat_a_failed_trial(priors):
    study = new_study(MetaPriorSampler(priors, seed=0))
    failed = study.ask()
    where = ask(failed)
    study.tell(failed, state=optuna.trial.TrialState.FAIL)
    study.optimize(both, n_trials=3)
    others = np.array([ask(t) for t in study.trials[1:]])
    assert np.abs((others - where) / [2.0, 10.0]).max(axis=1).min() > 1e-3


def test_sampler_learned_constraint_steers_the_first_trial(hill_prior, hill_runs, hill_space):
    """Allowed where x is at least 0.6, which the constraint's past runs say; the top is at 0.3."""
    runs = [(points, 0.6 - np.asarray(points)[:, 0]) for points, _ in hill_runs]
    tasks = mp.Tasks.from_runs(runs, space=hill_space, direction="minimize")
    right = mp.learn(tasks, method=mp.methods.RankWeightedGP())
    first = {}
    for name, constraints in (("free", {}), ("bound", {"right": right})):
        sampler = MetaPriorSampler(mp.Priors({"height": hill_prior}, constraints), seed=0)
        study = new_study(sampler, ["maximize"])
        study.optimize(lambda trial: height(*ask(trial)), n_trials=1)
        first[name] = study.trials[0].params["x"]
    assert first["free"] < 0.5 < first["bound"]


def test_sampler_models_a_constraint_without_a_prior_from_the_run(priors):
    def objective(trial):
        values = both(trial)
        trial.set_constraint("z", 4.0 - trial.params["z"])
        return values

    study = new_study(MetaPriorSampler(priors, seed=0))
    study.optimize(objective, n_trials=10)
    late = study.trials[5:]
    assert np.mean([trial.params["z"] >= 4.0 for trial in late]) >= 0.6
    assert all(trial.params["z"] >= 4.0 for trial in study.best_trials)


def test_sampler_three_objectives(priors, untrained):
    three = mp.Priors({**priors.objectives, "low": replace(untrained, direction="minimize")})
    study = new_study(MetaPriorSampler(three, seed=0), ("maximize", "minimize", "minimize"))
    study.optimize(lambda trial: (*both(trial), trial.params["z"]), n_trials=5)
    assert len(study.best_trials) >= 3


def test_sampler_of_five_objectives_says_what_to_install(monkeypatch, untrained):
    for name in [name for name in sys.modules if name.startswith("metaprior.adapters.botorch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botorch", None)  # what Python takes for not installed
    priors = mp.Priors({f"f{i}": untrained for i in range(5)})
    study = new_study(MetaPriorSampler(priors, seed=0), ["maximize"] * 5)
    with pytest.raises(ValueError, match=r"pip install 'metaprior\[botorch\]'"):
        study.optimize(lambda trial: (height(*ask(trial)),) * 5, n_trials=1)
