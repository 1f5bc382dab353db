"""One training for each method, shared by all checks."""

from typing import NamedTuple

import pytest

import metaprior as mp
from metaprior.methods import AbstractMethod, AbstractSurrogate, known_methods
from tests.conformance.cases import CASES, Case, hill_tasks, method_of


class Trained(NamedTuple):
    """A method of the table after its small training."""

    case: Case
    method: AbstractMethod
    prior: mp.Prior

    @property
    def surrogate(self) -> AbstractSurrogate:
        return self.prior.surrogate


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if CASES[name].slow else []


NAMES = [pytest.param(name, marks=marks_of(name)) for name in known_methods() if name in CASES]


@pytest.fixture(scope="session")
def tasks() -> mp.Tasks:
    return hill_tasks()


@pytest.fixture(scope="session", params=NAMES)
def trained(request, tasks) -> Trained:
    method = method_of(request.param)
    return Trained(CASES[request.param], method, mp.learn(tasks, method=method, seed=0))
