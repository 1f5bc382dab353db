"""Run in the registry, where `optunahub` finds the package beside this file."""

import numpy as np
import optuna
import pytest
from optuna.testing.pytest_samplers import SingleOnlySamplerTestCase

import metaprior as mp
import optunahub


def prior() -> mp.Prior:
    space = mp.Space(x=mp.Real(0.0, 1.0))
    points = np.linspace(0.0, 1.0, 5)
    runs = [(points, -((points - top) ** 2)) for top in (0.4, 0.5, 0.6)]
    tasks = mp.Tasks.from_runs(runs, space=space)
    return mp.learn(tasks, method=mp.methods.FixedGP(), seed=0)


def new_sampler() -> optuna.samplers.BaseSampler:
    package = optunahub.load_module(package="samplers/metaprior")
    return package.MetaPriorSampler(prior(), seed=0)


class TestMetaPriorSampler(SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return new_sampler


def test_a_study() -> None:
    study = optuna.create_study(sampler=new_sampler(), direction="maximize")
    study.optimize(lambda trial: -((trial.suggest_float("x", 0.0, 1.0) - 0.5) ** 2), n_trials=8)
    assert study.best_value > -0.01
