"""The callback that ends a study when little is left to be gained, in real studies."""

import optuna
import pytest

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler, StopWhenDone

optuna.logging.set_verbosity(optuna.logging.WARNING)
MOST = 12


def miss(trial):
    """A bowl, to be minimised; 0 at its bottom."""
    x, z = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("z", 0.0, 10.0)
    return ((x - 0.32) / 0.8) ** 2 + ((z - 6.3) / 4.0) ** 2


@pytest.fixture(scope="module")
def prior(hill_runs, hill_space):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    return mp.learn(tasks, method=mp.methods.FixedGP(lengthscale=0.7))


def minimised(prior, objective, *callbacks):
    study = optuna.create_study(sampler=MetaPriorSampler(prior, seed=0))
    study.optimize(objective, n_trials=MOST, callbacks=list(callbacks))
    return study


def test_stop_when_done_ends_a_study_early_and_near_the_optimum(prior):
    study = minimised(prior, miss, StopWhenDone(tolerance=0.5))
    assert 1 < len(study.trials) < MOST and study.best_value < 0.5
    hint = MetaPriorSampler(prior, seed=0).stopping(study, 0.5)
    assert hint is not None and hint.is_done() and hint.tolerance == 0.5
    # It had no reason to stop before the last trial.
    shorter = optuna.create_study()
    shorter.add_trials(study.trials[:-1])
    before = MetaPriorSampler(prior, seed=0).stopping(shorter, 0.5)
    assert before is not None and not before.is_done()


def test_stop_when_done_goes_on_while_much_is_left(prior):
    assert len(minimised(prior, miss, StopWhenDone(tolerance=1e-9)).trials) == MOST


def test_stop_when_done_waits_for_the_first_complete_trial(prior):
    def fails(trial):
        miss(trial)
        raise optuna.TrialPruned

    assert len(minimised(prior, fails, StopWhenDone(tolerance=0.5)).trials) == MOST


def test_stop_when_done_refuses_what_has_no_hint(prior):
    with pytest.raises(ValueError, match="The tolerance is 0.0; give a positive number"):
        StopWhenDone(tolerance=0.0)
    with pytest.raises(ValueError, match="The probability is 95.0; give a number between 0 and 1"):
        StopWhenDone(probability=95.0)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(TypeError, match="is sampled by RandomSampler, which has no hint"):
        study.optimize(miss, n_trials=2, callbacks=[StopWhenDone()])
    constrained = optuna.create_study(sampler=MetaPriorSampler(prior, seed=0))

    def limited(trial):
        trial.set_constraint("heat", -1.0)
        return miss(trial)

    with pytest.raises(ValueError, match="has several objectives or constraints"):
        constrained.optimize(limited, n_trials=2, callbacks=[StopWhenDone()])
