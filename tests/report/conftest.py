"""A small prior that was really trained, with and without findings."""

from dataclasses import replace

import pytest

import metaprior as mp
from metaprior.data import Quantity
from tests.report.made_up import SPACE, findings_for, make_runs


@pytest.fixture(scope="session")
def bare_prior():
    """Learned with a fixed method: nothing was held out."""
    runs = make_runs(SPACE, 8, 15)
    tasks = mp.Tasks.from_runs(runs, space=SPACE, quantity=Quantity("accuracy", "points"))
    method = mp.methods.FPacohMap(num_steps=60, learning_rate=1e-2)
    return mp.learn(tasks, method=method, seed=0)


@pytest.fixture(scope="session")
def prior(bare_prior):
    """The same with findings."""
    return replace(bare_prior, findings=findings_for(make_runs(SPACE, 8, 15)))
