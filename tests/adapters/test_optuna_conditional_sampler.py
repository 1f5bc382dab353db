"""The sampler in studies whose parameters exist only under conditions."""

import warnings
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler, read_history
from metaprior.adapters.optuna._repeats import held_beside, stand_ins
from metaprior.adapters.optuna._study_window import gone, study_window, whole_window

optuna.logging.set_verbosity(optuna.logging.ERROR)


def boosting(trial, shift=0.0):
    """Trees are better, best near eta = 0.1 and drop = 0.2."""
    booster = trial.suggest_categorical("booster", ["linear", "tree", "dart"])
    value = -((trial.suggest_float("alpha", 0, 1) - 0.5) ** 2)
    if booster != "linear":
        eta = trial.suggest_float("eta", 1e-3, 1.0, log=True)
        value += 1.0 - (np.log10(eta) + 1.0 + shift) ** 2
        trial.suggest_int("depth", 2, 10, step=2)
    if booster == "dart":
        value += 0.5 - 4.0 * (trial.suggest_float("drop", 0, 0.5, step=0.05) - 0.2) ** 2
    return value


def optional(trial, shift=0.0):
    """`warm` helps, and is there or not for reasons of its own."""
    x = trial.suggest_float("x", 0, 1)
    value = -((x - 0.6 - shift) ** 2)
    if trial.number % 2:
        value += 0.3 - (trial.suggest_float("warm", 0, 1) - 0.3) ** 2
    return value


def learned_from(objective):
    storage = optuna.storages.InMemoryStorage()
    rng = np.random.default_rng(0)
    for seed in range(5):
        shift, sampler = 0.05 * rng.normal(), optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(storage=storage, direction="maximize", sampler=sampler)
        study.optimize(lambda trial, s=shift: objective(trial, s), n_trials=24)
    return mp.learn(read_history(storage).tasks, method=mp.methods.RankWeightedGP(), seed=0)


@pytest.fixture(scope="module")
def prior():
    return learned_from(boosting)


def run(prior, objective, num, n_jobs=1, **options):
    study = optuna.create_study(
        direction="maximize", sampler=MetaPriorSampler(prior, seed=0, **options)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        study.optimize(objective, n_trials=num, n_jobs=n_jobs)
    return study


def test_sampler_chooses_branch_and_values_together(prior):
    """No parameter is left to chance: an independent sampler that is asked fails the test."""

    class Refusing(optuna.samplers.RandomSampler):
        def sample_independent(self, study, trial, param_name, param_distribution):
            raise AssertionError(f"{param_name} was drawn")

    study = run(prior, boosting, 8, independent_sampler=Refusing())
    assert study.best_value > 1.3
    assert study.best_params["booster"] == "dart"
    assert max(float(trial.value or 0.0) for trial in study.trials[:3]) > 1.0


def test_sampler_fills_in_what_exists_only_since_a_trial_departed(prior):
    """Enqueued: the branch, and nothing of what exists there."""
    study = optuna.create_study(direction="maximize", sampler=MetaPriorSampler(prior, seed=0))
    for booster in ("linear", "tree", "linear", "dart", "tree"):
        study.enqueue_trial({"booster": booster})
    study.optimize(boosting, n_trials=5)
    found = [trial.params for trial in study.trials]
    assert [set(params) - {"booster", "alpha"} for params in found] == [
        set() if p["booster"] == "linear"
        else {"eta", "depth"} | ({"drop"} if p["booster"] == "dart" else set())
        for p in found
    ]  # fmt: skip
    etas = [params["eta"] for params in found if "eta" in params]
    assert all(0.02 < eta < 0.5 for eta in etas), etas  # the prior's, not random in 1e-3 .. 1


def test_sampler_expects_conditional_parameters_before_they_are_shown(prior):
    boosters = optuna.distributions.CategoricalDistribution(["linear", "tree", "dart"])
    asked = {"booster": [boosters], "alpha": [optuna.distributions.FloatDistribution(0, 1)]}
    window = study_window(prior.space, asked, shown={"booster", "alpha"})
    assert window is not None
    assert {name for name, _ in window.ranges} == {"booster", "alpha", "eta", "depth", "drop"}
    # Where they existed and were not asked for, they are held.
    window = study_window(prior.space, asked, shown={"booster", "alpha", "eta", "depth"})
    assert window is not None
    assert {name for name, _ in window.ranges} == {"booster", "alpha", "drop"}


def test_window_does_not_expect_what_held_values_forbid(prior):
    asked = {
        "booster": [optuna.distributions.CategoricalDistribution(["linear"])],
        "alpha": [optuna.distributions.FloatDistribution(0, 1)],
    }
    window = study_window(prior.space, asked, shown={"booster", "alpha"})
    assert window is not None
    assert [name for name, _ in window.ranges] == ["alpha"]
    asked["booster"] = [optuna.distributions.CategoricalDistribution(["tree"])]
    window = study_window(prior.space, asked, shown={"booster", "alpha"})
    assert window is not None
    assert [name for name, _ in window.ranges] == ["alpha", "eta", "depth"]


def test_window_without_an_optional_parameter_takes_its_own_points_back():
    space = mp.Space(
        x=mp.Real(0, 1),
        has_warm=mp.Categorical([False, True]),
        warm=mp.Real(0, 1, when={"has_warm": [True]}),
    )
    asked = {"x": [optuna.distributions.FloatDistribution(0, 1)]}
    window = study_window(space, asked, {"x", "has_warm"}, {"warm": 3})
    assert window is not None
    assert [name for name, _ in window.ranges] == ["x"]
    assert window.held == (("has_warm", False),)


def test_window_holds_what_is_never_asked_so_that_the_rest_exists(prior):
    eta = [optuna.distributions.FloatDistribution(1e-3, 1.0, log=True)]
    window = study_window(prior.space, {"eta": eta})
    assert window is not None
    assert dict(window.held)["booster"] in ("tree", "dart")
    assert window.space.conditions is None
    believed = window.through(prior.belief).condition(np.zeros((0, 1)), np.zeros(0))
    mean = believed.moments(np.array([[0.0], [2 / 3]])).mean
    assert mean[1] > mean[0] + 0.3  # eta still matters


def test_stand_ins_do_not_make_a_proposal_new():
    """`own` is new, and exists in another branch only; nothing is known of a branch's own rules."""
    space = mp.Space(
        kind=mp.Categorical(["a", "b"]), x=mp.Real(0, 1), z=mp.Real(0, 1, when={"kind": ["b"]})
    )
    unit = optuna.distributions.FloatDistribution(0, 1)
    kinds = optuna.distributions.CategoricalDistribution(["a", "b"])
    asked = {"kind": [kinds], "x": [unit], "z": [unit], "own": [unit]}
    window = study_window(space, asked)
    assert window is not None

    def trial_with(**outcome: Any) -> optuna.trial.FrozenTrial:
        params, distributions = {"kind": "a", "x": 0.5}, {"kind": kinds, "x": unit}
        return optuna.create_trial(params=params, distributions=distributions, **outcome)

    early = trial_with(state=TrialState.PRUNED)
    pruned = trial_with(state=TrialState.PRUNED, intermediate_values={1: 0.5})
    complete = trial_with(value=0.5)
    told = window.encode(pruned.params)
    assert told is not None
    assert stand_ins(early, told, window, asked) is None
    for trial, change, again in [
        (pruned, {"own": 0.9}, True),
        (complete, {"own": 0.9}, True),
        (pruned, {"own": 0.9, "x": 0.5005}, True),
        (complete, {"own": 0.9, "x": 0.5005}, False),
        (pruned, {"own": 0.9, "x": 0.6}, False),
        (pruned, {"own": 0.5, "kind": "b", "z": 0.5}, False),
    ]:
        found, point = stand_ins(trial, told, window, asked), window.encode(pruned.params | change)
        assert found is not None and point is not None
        assert found.held == {"x3": 0.5}
        assert found.repeated_by(window.space.encode([point])[0]) is again, change


def test_held_values_exist_beside_those_that_are_fixed():
    space = mp.Space(
        a=mp.Categorical(["s", "t"]),
        b=mp.Categorical(["u", "v"], when={"a": ["t"]}),
        c=mp.Real(0, 1, when={"b": ["v"]}),
    )
    held = {"b": "v", "c": 0.5}
    assert held_beside({}, held, space) == held
    assert held_beside({"a": "t"}, held, space) == {"a": "t", **held}
    assert held_beside({"a": "s"}, held, space) == {"a": "s"}
    assert held_beside({"b": "u"}, held, space) == {"b": "u"}


def test_gone_names_what_existed_and_was_not_asked_for(prior):
    space, alpha = prior.space, optuna.distributions.FloatDistribution(0, 1)
    boosters = optuna.distributions.CategoricalDistribution(["linear", "tree"])
    asked = {"booster": [boosters], "alpha": [alpha]}
    for shown, expected in [
        ({"booster", "alpha"}, {}),  # the others may exist elsewhere
        (
            {"booster", "alpha", "eta", "depth"},
            {"eta": "'eta' (held at 0.03162)", "depth": "'depth' (held at 6)"},
        ),
    ]:
        window = study_window(space, asked, shown)
        assert window is not None
        assert gone(window, asked, shown) == expected
    window = study_window(space, {"alpha": [alpha]}, {"alpha", "booster"})
    assert window is not None
    assert gone(window, {"alpha"}, {"alpha", "booster"}) == {
        "booster": "'booster' (held at 'linear')"
    }


def test_sampler_says_once_what_is_gone(prior):
    study = optuna.create_study(direction="maximize", sampler=MetaPriorSampler(prior, seed=0))

    def without_alpha(trial):
        return float(trial.suggest_categorical("booster", ["linear", "tree", "dart"]) == "linear")

    with pytest.warns(UserWarning) as caught:
        study.optimize(without_alpha, n_trials=4)
    said = [str(w.message) for w in caught if "does not ask for" in str(w.message)]
    assert len([each for each in said if "'alpha' (held at 0.5)" in each]) == 1


def test_sampler_in_two_threads_never_tries_a_conditional_point_twice(prior):
    study = run(prior, boosting, 8, n_jobs=2)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    tried = {tuple(sorted(trial.params.items())) for trial in study.trials}
    assert len(tried) == 8
    assert study.best_value > 1.2


def test_resumed_study_goes_on_as_if_it_had_not_stopped(prior):
    """Another sampler, as in another process, proposes what the first one would have."""
    whole = run(prior, boosting, 6)
    begun = run(prior, boosting, 3)
    begun.sampler = MetaPriorSampler(prior, seed=0)
    begun.optimize(boosting, n_trials=3)
    assert [t.params for t in begun.trials] == [t.params for t in whole.trials]


def test_window_of_everything_sees_what_the_prior_sees(prior):
    window, space = whole_window(prior.space), prior.space
    points = space.decode(np.random.default_rng(0).uniform(size=(12, space.num_columns)))
    own = [window.encode(point) or {} for point in points]
    for point, back in zip(points, map(window.decode, own), strict=True):
        assert back == pytest.approx(point) if "booster" not in point else set(back) == set(point)
    x, y = window.space.encode(own[:5]), np.linspace(0, 1, 5)
    through = window.through(prior.belief).unguarded.condition(x, y)
    direct = prior.belief.unguarded.condition(space.encode(points[:5]), y)
    queries = window.space.encode(own[5:]), space.encode(points[5:])
    np.testing.assert_allclose(
        through.moments(queries[0]).mean, direct.moments(queries[1]).mean, rtol=1e-8
    )


def test_sampler_decides_whether_to_use_an_optional_parameter():
    prior = learned_from(optional)
    assert "has_warm" in prior.space.names
    study = run(prior, optional, 6)
    assert all(("warm" in t.params) == bool(t.number % 2) for t in study.trials)
    assert not any("has_warm" in t.params for t in study.trials)
    warm = [t.params["warm"] for t in study.trials if "warm" in t.params]
    assert all(abs(value - 0.3) < 0.25 for value in warm), warm


def test_sampler_goes_on_after_failed_and_pruned_conditional_trials(prior):
    def objective(trial):
        value = boosting(trial)
        if trial.number == 1:
            raise optuna.TrialPruned
        if trial.number == 2:
            raise RuntimeError("lost")
        return value

    study = optuna.create_study(direction="maximize", sampler=MetaPriorSampler(prior, seed=0))
    study.optimize(objective, n_trials=6, catch=(RuntimeError,))
    states = [trial.state for trial in study.trials]
    assert states[1:3] == [TrialState.PRUNED, TrialState.FAIL]
    tried = [tuple(sorted(trial.params.items())) for trial in study.trials]
    assert len(set(tried)) == len(tried)


def test_sampler_never_tries_a_pruned_conditional_point_again(prior):
    """Two points of different branches are not near to each other."""

    def objective(trial):
        value = boosting(trial)
        for step in range(5):
            trial.report(value - 0.5 ** (step - 2), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = optuna.create_study(
        direction="maximize",
        sampler=MetaPriorSampler(prior, seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=2),
    )
    study.optimize(objective, n_trials=10)
    assert_never_near_a_pruned_one(study.trials, fewest=2)


@pytest.mark.parametrize("reports", [True, False])
def test_sampler_never_tries_a_pruned_point_again_that_lacked_what_the_prior_knows(prior, reports):
    """Values of `drop`, which the study does not have, do not make a point new."""

    def objective(trial):
        booster = trial.suggest_categorical("booster", ["linear", "tree", "dart"])
        value = -((trial.suggest_float("alpha", 0, 1) - 0.5) ** 2)
        if booster != "linear":
            value -= (np.log10(trial.suggest_float("eta", 1e-3, 1.0, log=True)) + 1.0) ** 2
            trial.suggest_int("depth", 2, 10, step=2)
        if booster == "dart":
            if reports:
                trial.report(value, 1)
            raise optuna.TrialPruned
        return value

    study = optuna.create_study(direction="maximize", sampler=MetaPriorSampler(prior, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        study.optimize(objective, n_trials=8)
    assert_never_near_a_pruned_one(study.trials, fewest=3)


def test_sampler_never_tries_a_pruned_point_again_that_lacked_an_optional_parameter():
    def objective(trial):
        trial.suggest_float("x", 0, 1)
        if trial.number:
            raise optuna.TrialPruned
        return 0.0

    sampler = MetaPriorSampler(learned_from(optional), seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        study.optimize(objective, n_trials=8)
    tried = [trial.params["x"] for trial in study.trials]
    assert min(abs(a - b) for i, a in enumerate(tried) for b in tried[1:i]) > 1e-3


def assert_never_near_a_pruned_one(trials, *, fewest):
    pruned = [trial for trial in trials if trial.state == TrialState.PRUNED]
    assert len(pruned) >= fewest
    for one in pruned:
        for other in trials[one.number + 1 :]:
            assert apart(one.params, other.params) > 1e-3


def apart(one, other):
    """The largest difference of two points in units of the ranges; 1 between branches."""
    if one.keys() != other.keys() or one["booster"] != other["booster"]:
        return 1.0
    units = {"alpha": 1.0, "depth": 8.0, "drop": 0.5}
    apart = [abs(one[n] - other[n]) / unit for n, unit in units.items() if n in one]
    if "eta" in one:
        apart.append(abs(np.log10(one["eta"] / other["eta"])) / 3.0)
    return max(apart)
