"""The sampler in studies as people run them: what it proposes, to whom, and what it survives."""

import copy
import pickle
import re
import threading
from typing import Literal

import jax
import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler
from metaprior.adapters.optuna._values import OneValue

optuna.logging.set_verbosity(optuna.logging.WARNING)

X, Z = FloatDistribution(-1.0, 1.0), FloatDistribution(0.0, 10.0)
TOP = {"x": 0.32, "z": 6.3}


class NeverAsked(RandomSampler):
    """An independent sampler for studies in which the prior should know everything."""

    def sample_independent(self, study, trial, param_name, param_distribution):
        raise AssertionError(f"{param_name} was left to chance")


def height(x, z):
    """A hill like those that the prior was learned from; 2 at its top."""
    return 2.0 - ((x - TOP["x"]) / 0.8) ** 2 - ((z - TOP["z"]) / 4.0) ** 2


def climb(trial):
    return height(trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("z", 0.0, 10.0))


def points(study):
    return [trial.params for trial in study.get_trials(deepcopy=False)]


def apart(points):
    """The smallest distance between two of the points, in units of the space."""
    array = np.array([[p["x"] / 2, p["z"] / 10] for p in points])
    distances = np.abs(array[:, None] - array[None]).max(axis=2)
    return distances[~np.eye(len(array), dtype=bool)].min()


@pytest.fixture(scope="module")
def untrained_prior(hill_runs, hill_space):
    """A prior over the hills' space that has learned nothing of where they are: it is quick."""
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    return mp.learn(tasks, method=mp.methods.FixedGP(), seed=0)


@pytest.fixture
def sampler(hill_prior):
    return MetaPriorSampler(hill_prior, seed=0, independent_sampler=NeverAsked())


def new_study(sampler, direction: Literal["minimize", "maximize"] = "maximize", **options):
    return optuna.create_study(sampler=sampler, direction=direction, **options)


class TestProposals:
    def test_sampler_proposes_the_first_trial_from_the_prior(self, sampler):
        study = new_study(sampler)
        study.optimize(climb, n_trials=1)
        assert study.best_value > 1.8  # chance is above that once in twenty times

    def test_sampler_finds_the_optimum(self, sampler):
        study = new_study(sampler)
        study.optimize(climb, n_trials=8)
        assert study.best_value > 1.99

    def test_sampler_gives_the_same_trials_for_the_same_seed(self, hill_prior, sampler):
        studies = [new_study(sampler), new_study(MetaPriorSampler(hill_prior, seed=0))]
        for study in studies:
            study.optimize(climb, n_trials=4)
        assert points(studies[0]) == points(studies[1])

    def test_sampler_treats_both_directions_alike(self, hill_prior, sampler):
        up, down = new_study(sampler), new_study(sampler, "minimize")
        up.optimize(climb, n_trials=4)
        down.optimize(lambda trial: -climb(trial), n_trials=4)
        assert points(up) == points(down)

    def test_sampler_loads_a_saved_prior(self, untrained_prior, tmp_path):
        folder = untrained_prior.save(tmp_path / "prior")
        for prior in (folder, str(folder)):
            assert MetaPriorSampler(prior).prior.space == untrained_prior.space
        with pytest.raises(mp.PriorFileError, match="nowhere"):
            MetaPriorSampler(tmp_path / "nowhere")

    def test_sampler_uses_trials_of_another_sampler(self, sampler):
        study = new_study(RandomSampler(seed=0))
        study.optimize(climb, n_trials=6)
        study.sampler = sampler
        study.optimize(climb, n_trials=3)
        assert study.best_value > 1.99

    def test_sampler_copies_and_pickles_are_independent(self, sampler):
        study = new_study(sampler)
        study.optimize(climb, n_trials=3)
        trial = study.ask()
        frozen = study.get_trials()[-1]
        wanted = sampler.sample_independent(study, frozen, "x", X)
        for other in (copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
            assert other.sample_independent(study, frozen, "x", X) == wanted
        assert trial.suggest_float("x", -1.0, 1.0) == wanted


class TestSpacesThatDiffer:
    def test_sampler_keeps_bounds_and_steps_of_the_study(self, untrained_prior):
        study = new_study(
            MetaPriorSampler(untrained_prior, seed=0, independent_sampler=NeverAsked())
        )

        def objective(trial):
            x = trial.suggest_float("x", -0.5, 0.0)
            z = trial.suggest_int("z", 1, 9, step=4)
            return height(x, z)

        study.optimize(objective, n_trials=12)
        assert {p["z"] for p in points(study)} <= {1, 5, 9}
        assert study.best_params["z"] == 5 and study.best_params["x"] > -0.02
        assert all(type(p["z"]) is int for p in points(study))

    def test_sampler_explores_wider_bounds(self, untrained_prior):
        """The prior knows z up to 10; the best is 16."""
        study = new_study(MetaPriorSampler(untrained_prior, seed=0), study_name="weekly")

        def objective(trial):
            x = trial.suggest_float("x", -1.0, 1.0)
            return height(x, 6.3 + (trial.suggest_float("z", 0, 20) - 16.0) / 2.0)

        with pytest.warns(
            UserWarning, match="beyond its prior: 'z' from 0 to 20 .it knows 0 to 10"
        ) as told:
            study.optimize(objective, n_trials=14)
        assert len(told) == 1 and "'weekly'" in str(told[0].message)
        assert abs(study.best_params["z"] - 16.0) < 2.0 and study.best_value > 1.9

    def test_sampler_tries_new_choices_and_returns_to_the_best(self):
        """The new one is the best of three, or the worst."""
        space = mp.Space(x=mp.Real(0.0, 1.0), c=mp.Categorical(["a", "b"]))
        rows = [{"x": 0.1 * i, "c": c} for i, c in enumerate("abab")]
        tasks = mp.Tasks.from_runs([(rows, [0.0, 1.0, 0.2, 1.2])] * 2, space=space)
        prior = mp.learn(tasks, method=mp.methods.FixedGP(), seed=0)
        for worth in (3.0, -3.0):

            def objective(trial, worth=worth):
                c = trial.suggest_categorical("c", ["a", "b", "new"])
                return {"a": 0.0, "b": 1.0, "new": worth}[c] + trial.suggest_float("x", 0.0, 1.0)

            study = new_study(MetaPriorSampler(prior, seed=0))
            with pytest.warns(UserWarning, match="'new' as choices of 'c'"):
                study.optimize(objective, n_trials=10)
            tried = [p["c"] for p in points(study)]
            assert "new" in tried[:6]
            assert study.best_params["c"] == ("new" if worth > 0 else "b")
            assert tried[6:].count("new") >= 3 if worth > 0 else tried[6:].count("new") <= 2

    def test_sampler_models_parameters_that_the_prior_does_not_know(self, untrained_prior):
        """Random draws of 14 come that near to the best about once in two studies."""

        def objective(trial):
            other = trial.suggest_float("other", 0.0, 100.0, log=False)
            kind = trial.suggest_categorical("kind", ["good", None])
            return climb(trial) - ((other - 37.0) / 20.0) ** 2 - (kind is None)

        study = new_study(MetaPriorSampler(untrained_prior, seed=0))
        with pytest.warns(UserWarning, match="the parameter 'other', the parameter 'kind'") as told:
            study.optimize(objective, n_trials=16)
        assert len(told) == 1
        late = points(study)[10:]
        assert sum(abs(p["other"] - 37.0) < 10.0 for p in late) >= 4
        assert sum(p["kind"] == "good" for p in late) >= 6
        assert abs(study.best_params["other"] - 37.0) < 5.0

    def test_sampler_holds_parameters_that_the_study_does_not_ask_for(self, untrained_prior):
        study = new_study(
            MetaPriorSampler(untrained_prior, seed=0, independent_sampler=NeverAsked())
        )
        with pytest.warns(UserWarning) as warned:
            study.optimize(
                lambda trial: height(trial.suggest_float("x", -1.0, 1.0), 5.0), n_trials=12
            )
        assert len(warned) == 1
        assert "does not ask for what its prior knows: 'z' (held at 5)." in str(warned[0].message)
        assert all(set(p) == {"x"} for p in points(study))
        assert abs(study.best_params["x"] - TOP["x"]) < 0.05

    def test_sampler_warns_once_of_a_prior_for_another_space(self, untrained_prior):
        study = new_study(MetaPriorSampler(untrained_prior, seed=0), study_name="weekly")
        with pytest.warns(UserWarning) as warned:
            study.optimize(lambda trial: trial.suggest_float("w", 0.0, 1.0), n_trials=5)
        assert len(warned) == 1 and len(study.trials) == 5
        message = str(warned[0].message)
        assert "'weekly'" in message and "['w']" in message and "sampled independently" in message

    def test_sampler_models_a_parameter_of_another_kind_and_says_so(self, untrained_prior):
        study = new_study(MetaPriorSampler(untrained_prior, seed=0), study_name="weekly")

        def objective(trial):
            return trial.suggest_float("x", -1.0, 1.0) + trial.suggest_categorical("z", [1, 2])

        with pytest.warns(UserWarning) as warned:
            study.optimize(objective, n_trials=8)
        assert len(warned) == 1
        sentence = "Study 'weekly' .* 'z', which is categorical here and a number in the prior;"
        assert re.match(sentence, str(warned[0].message))
        assert study.best_params["z"] == 2

    def test_sampler_follows_ranges_that_move_or_lie_outside(self, untrained_prior):
        study = new_study(MetaPriorSampler(untrained_prior, seed=0))
        with pytest.warns(UserWarning, match="'z' from 0 to 30 .it knows 0 to 10"):
            for low, high in [(0.0, 4.0), (2.0, 9.0), (20.0, 30.0), (0.0, 10.0)]:
                for _ in range(2):
                    trial = study.ask({"x": X, "z": FloatDistribution(low, high)})
                    assert low <= trial.params["z"] <= high
                    study.tell(trial, height(**trial.params))
        assert len(study.trials) == 8

    def test_sampler_models_choices_of_which_the_prior_knows_one(self):
        """And `None`, which a space knows as text."""
        space = mp.Space(x=mp.Real(0.0, 1.0), c=mp.Categorical(["linear", "None"]))
        rows = [{"x": 0.1 * i, "c": c} for i, c in enumerate(["linear", "None"] * 4)]
        values = [x["x"] if x["c"] == "None" else -x["x"] for x in rows]
        tasks = mp.Tasks.from_runs([(rows, values)] * 2, space=space)
        prior = mp.learn(tasks, method=mp.methods.FixedGP(), seed=0)
        study = new_study(MetaPriorSampler(prior, seed=0))
        with pytest.warns(UserWarning, match="'poly' as choices of 'c'"):
            study.optimize(
                lambda t: (
                    t.suggest_float("x", 0.0, 1.0)
                    - 9.0 * (t.suggest_categorical("c", [None, "poly"]) == "poly")
                ),
                n_trials=8,
            )
        tried = [p["c"] for p in points(study)]
        assert set(tried) == {None, "poly"} and tried.count("poly") <= 3

    def test_sampler_does_not_warn_of_a_constant_parameter(self, untrained_prior, recwarn):
        study = new_study(MetaPriorSampler(untrained_prior, seed=0))
        study.optimize(
            lambda t: height(t.suggest_float("x", -1.0, 1.0), t.suggest_float("z", 6.3, 6.3)),
            n_trials=4,
        )
        assert [str(warning.message) for warning in recwarn] == []

    @pytest.mark.filterwarnings("ignore:PartialFixedSampler is experimental")
    def test_sampler_keeps_parameters_fixed_by_another_sampler(self, untrained_prior):
        """The best x for a fixed z of 9 is 0.8, far from where both would be best."""

        def ridge(trial):
            x, z = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("z", 0.0, 10.0)
            return -((x - (z / 5.0 - 1.0)) ** 2) - 0.1 * z

        study = new_study(MetaPriorSampler(untrained_prior, seed=0))
        study.optimize(ridge, n_trials=8)
        study.sampler = optuna.samplers.PartialFixedSampler({"z": 9.0}, study.sampler)
        study.optimize(ridge, n_trials=12)
        late = points(study)[8:]
        assert all(p["z"] == 9.0 for p in late)
        assert min(abs(p["x"] - 0.8) for p in late) < 0.05
        assert len({round(p["x"], 2) for p in late}) >= 4  # and not one of them again and again

    def test_sampler_survives_an_enqueued_infinite_value(self, untrained_prior):
        study = new_study(MetaPriorSampler(untrained_prior, seed=0))
        study.enqueue_trial({"x": float("inf"), "z": 5.0})
        with pytest.warns(UserWarning, match="out of range"):
            study.ask({"x": X, "z": Z})
        study.tell(0, 1.0)
        study.optimize(climb, n_trials=3)
        assert len(study.trials) == 4


class TestTrialsUnderWay:
    def test_sampler_workers_of_one_seed_draw_different_independent_parameters(
        self, untrained_prior
    ):
        """Of what the prior does not know; and the same worker draws the same again."""
        study = new_study(RandomSampler())
        trials = [study.ask() for _ in range(3)]
        drawn = [
            MetaPriorSampler(untrained_prior, seed=0).sample_independent(
                study, study.get_trials()[trial.number], name, X
            )
            for name in ("other", "another", "other")
            for trial in trials
        ]
        assert len(set(drawn)) == 6 and drawn[:3] == drawn[6:]

    def test_sampler_gives_simultaneous_workers_different_points(self, hill_prior):
        """Each has a sampler of its own and sees that the others have begun, not what they do."""
        study = new_study(MetaPriorSampler(hill_prior, seed=0))
        for _ in range(4):
            study.ask()
        taken = []
        for frozen in study.get_trials():
            worker = MetaPriorSampler(hill_prior, seed=0)
            taken.append(
                {name: worker.sample_independent(study, frozen, name, d)
                 for name, d in (("x", X), ("z", Z))}
            )  # fmt: skip
        assert apart(taken) > 0.01
        # The first of them would have been everybody's choice.
        alone = new_study(MetaPriorSampler(hill_prior, seed=0))
        assert alone.ask({"x": X, "z": Z}).params == taken[0]

    def test_sampler_avoids_points_of_running_trials(self, hill_prior):
        study = new_study(MetaPriorSampler(hill_prior, seed=0))
        trials = [study.ask({"x": X, "z": Z})]
        study.sampler = MetaPriorSampler(hill_prior, seed=0)  # as another process would have
        trials += [study.ask({"x": X, "z": Z}) for _ in range(3)]
        assert apart([trial.params for trial in trials]) > 0.01

    def test_sampler_recomputes_a_proposal_that_another_worker_made_meanwhile(
        self, hill_prior, monkeypatch
    ):
        """The other one is quicker: while this one thinks, it tries the very same point."""
        study = new_study(MetaPriorSampler(hill_prior, seed=0))
        study.optimize(climb, n_trials=2)
        quick = []
        ask = mp.Optimizer.ask

        def ask_slowly(self, n, **options):
            asked = ask(self, n)
            if not quick:
                quick.append({"x": 2 * asked[-1]["x0"] - 1, "z": 10 * asked[-1]["x1"]})
                study.add_trial(
                    optuna.create_trial(
                        params=quick[0], distributions={"x": X, "z": Z}, value=height(**quick[0])
                    )
                )
            return asked

        monkeypatch.setattr(mp.Optimizer, "ask", ask_slowly)
        study.optimize(climb, n_trials=1)
        assert points(study)[-2] == quick[0] or points(study)[-1] == quick[0]
        assert apart(points(study)) > 0.005

    def test_sampler_can_be_shared_by_threads(self, sampler):
        study = new_study(sampler)
        both = threading.Barrier(2, timeout=60)

        def objective(trial):
            both.wait()
            return climb(trial)

        study.optimize(objective, n_trials=6, n_jobs=2)
        assert len({tuple(p.values()) for p in points(study)}) == 6
        assert study.best_value > 1.95

    def test_sampler_avoids_failed_and_pruned_trials(self, hill_prior):
        study = new_study(MetaPriorSampler(hill_prior, seed=0))
        first = study.ask({"x": X, "z": Z})
        study.tell(first, state=TrialState.FAIL)
        second = study.ask({"x": X, "z": Z})
        assert apart([first.params, second.params]) > 0.01
        with pytest.warns(UserWarning, match="nan is not acceptable"):
            study.tell(second, float("nan"))
        third = study.ask({"x": X, "z": Z})
        third.report(-1e6, step=1)
        study.tell(third, state=TrialState.PRUNED)
        study.optimize(climb, n_trials=3)
        assert study.best_value > 1.9

    def test_sampler_ignores_parameters_that_a_failed_trial_did_not_reach(self, untrained_prior):
        """What it would have asked for is known to the sampler that proposed it, and to no
        other."""
        samplers = [MetaPriorSampler(untrained_prior, seed=0) for _ in range(2)]
        study = new_study(samplers[0])
        for value in (0.1, 0.2):
            study.tell(study.ask({"x": X, "z": Z}), value)
        half = study.ask()
        x = half.suggest_float("x", -1.0, 1.0)
        study.tell(half, state=TrialState.FAIL)
        failed = []
        for study.sampler in samplers:
            study.ask({"x": X, "z": Z})
            asked = study.sampler._proposer(study)._optimizer
            assert isinstance(asked, OneValue)
            failed.append(asked.optimizer._lost)
        assert [len(each) for each in failed] == [1, 0]
        assert failed[0][0, 0] == pytest.approx((x + 1.0) / 2.0)

    def test_sampler_starts_afresh_for_a_recreated_study(self, sampler):
        storage = optuna.storages.InMemoryStorage()
        for sign in (1.0, -1.0):
            study = new_study(sampler, study_name="again", storage=storage)
            study.optimize(lambda trial, sign=sign: sign * climb(trial), n_trials=4)
            if sign > 0:
                optuna.delete_study(study_name="again", storage=storage)
        # Of the first study, in which the top was the best, nothing is believed any more.
        assert len(study.trials) == 4 and study.best_value > -2.0

    def test_sampler_works_with_hyperband_brackets(self, sampler):
        pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=4, reduction_factor=2)
        study = new_study(sampler, pruner=pruner)
        study.optimize(climb, n_trials=6)
        assert study.best_value > 1.9

    def test_sampler_uses_trials_of_all_hyperband_brackets(self, untrained_prior):
        """The prior has learned nothing, so that each bracket alone would begin at one point."""
        pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
        study = new_study(MetaPriorSampler(untrained_prior, seed=0), pruner=pruner)

        def objective(trial):
            value = climb(trial)
            for step in range(1, 10):
                trial.report(value - 1.0 / step, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return value

        study.optimize(objective, n_trials=16)
        assert len({pruner._get_bracket_id(study, trial) for trial in study.trials}) > 1
        assert {t.state for t in study.trials} == {TrialState.PRUNED, TrialState.COMPLETE}
        assert apart(points(study)) > 1e-6
        for one in (t for t in study.trials if t.state == TrialState.PRUNED):
            later = [t.params for t in study.trials[one.number + 1 :]]
            assert min((apart([one.params, params]) for params in later), default=1.0) > 1e-3


class TestPruning:
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    @pytest.mark.parametrize(
        "pruner", [optuna.pruners.MedianPruner(), optuna.pruners.SuccessiveHalvingPruner()]
    )
    def test_sampler_never_tries_a_pruned_point_again(self, untrained_prior, pruner, noise):
        """The prior has learned nothing, so that it returns to the best few points."""
        study = new_study(MetaPriorSampler(untrained_prior, seed=0), pruner=pruner)

        def objective(trial):
            value, rng = climb(trial), np.random.default_rng(trial.number)
            for step in range(5):
                trial.report(value - 0.5 ** (step - 2) + noise * rng.normal(), step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return value + noise * rng.normal()

        study.optimize(objective, n_trials=20)
        pruned = [t for t in study.trials if t.state == TrialState.PRUNED]
        assert len(pruned) >= 3
        for one in pruned:
            later = [t.params for t in study.trials[one.number + 1 :]]
            assert min((apart([one.params, params]) for params in later), default=1.0) > 1e-3

    def test_sampler_learns_from_pruned_trials(self, untrained_prior):
        """All trials at large x are pruned: what the complete ones say of it is not all."""
        chosen = []
        for state in (TrialState.COMPLETE, TrialState.PRUNED):
            study = new_study(MetaPriorSampler(untrained_prior, seed=0))
            for x, z in [(-0.9, 2.0), (-0.5, 8.0), (-0.1, 5.0)]:
                self.add(study, x, z, TrialState.COMPLETE)
            for x, z in [(0.9, 2.0), (0.5, 8.0), (0.4, 5.0)]:
                self.add(study, x, z, state)
            chosen.append(study.ask({"x": X, "z": Z}).params["x"])
        assert chosen[0] > 0.4 and chosen[1] < 0.4

    @staticmethod
    def add(study, x, z, state):
        """A trial whose value is x, and which was behind all others if it was pruned."""
        complete = state == TrialState.COMPLETE
        study.add_trial(
            optuna.create_trial(
                params={"x": x, "z": z},
                distributions={"x": X, "z": Z},
                state=state,
                value=x if complete else None,
                intermediate_values={0: 0.0 if complete else -1.0},
            )
        )


class TestConstraints:
    def test_sampler_finds_the_best_feasible_point(self, untrained_prior):
        """The top is forbidden: x must stay at or below 0, where z decides. Median of 3 studies."""

        def objective(trial):
            value = climb(trial)
            trial.set_constraint("x", trial.params["x"])
            return value

        found = []
        for seed in range(3):
            study = new_study(MetaPriorSampler(untrained_prior, seed=seed))
            study.optimize(objective, n_trials=24)
            feasible = [t for t in study.trials if t.constraints["x"] <= 0.0]
            assert len(feasible) >= 5
            found.append(study.best_value)  # Optuna looks among the feasible ones only
        assert np.median(found) > height(0.0, TOP["z"]) - 0.03


def test_sampler_suggests_without_compiling(hill_prior):
    compiled = []

    def note(event, duration_secs, **_):
        if event == "/jax/core/compile/jaxpr_trace_duration":
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    study = new_study(MetaPriorSampler(hill_prior, seed=0))
    study.optimize(climb, n_trials=10)
    assert not compiled
    # The listener hears of what is compiled.
    jax.jit(lambda x: x + 1.0)(0.0)
    assert compiled
