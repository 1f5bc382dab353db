"""Priors of every kind that has a belief, trained for a few steps and saved as users save them."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load_file

import metaprior as mp
from metaprior.belief import AbstractBelief, belief_of
from metaprior.gp import Constant, Linear, Matern, Periodic, RationalQuadratic
from metaprior.methods import (
    ABLR,
    AbstractMethod,
    AveragedGP,
    Ensemble,
    FittedGP,
    FixedGP,
    FPacohMap,
    FPacohVI,
    Guarded,
    LearnedGP,
    PacohMap,
    RankWeightedGP,
    SelfStandardisedGP,
    Weighed,
)
from tests.saved import arrays_of

NUM_COLUMNS = 3
QUICK: dict[str, Any] = {"num_steps": 30, "learning_rate": 1e-2}
DRAWS: dict[str, Any] = {"num_priors": 4, "num_functions": 4}
EFFECTS: dict[str, Any] = {"offset": True, "amplitude": True, "warp": True}
# Every kernel at least once, in sums and products.
COMPOSED = Matern(smoothness=1.5) * Constant(0.3) + Linear() + Periodic(log_period=1.0)
OTHERS = RationalQuadratic(log_lengthscale=np.array([0.1, -0.2, 0.3])) + Matern(smoothness=2.5)

METHODS: dict[str, Callable[[], AbstractMethod]] = {
    "ABLR": lambda: ABLR(**QUICK),
    "AveragedGP": AveragedGP,
    "Ensemble": lambda: Ensemble(FPacohMap(**QUICK, **EFFECTS), members=3),
    "Ensemble of ABLR": lambda: Ensemble(ABLR(**QUICK), members=2),
    "Ensemble of FPacohVI": lambda: Ensemble(FPacohVI(**QUICK, **DRAWS), members=2),
    "FPacohMap": lambda: FPacohMap(**QUICK),
    "FPacohMap with effects": lambda: FPacohMap(**QUICK, **EFFECTS),
    "FPacohMap with a composed kernel": lambda: FPacohMap(**QUICK, **EFFECTS, kernel=COMPOSED),
    "FPacohVI": lambda: FPacohVI(**QUICK, **DRAWS),
    "FPacohVI with a composed kernel": lambda: FPacohVI(**QUICK, **DRAWS, kernel=COMPOSED),
    "FittedGP": FittedGP,
    "FixedGP": FixedGP,
    "FixedGP with a composed kernel": lambda: FixedGP(kernel=OTHERS),
    "Guarded": lambda: Guarded(Ensemble(FPacohMap(**QUICK), members=3)),
    "Guarded RankWeightedGP": lambda: Guarded(RankWeightedGP()),
    "LearnedGP": lambda: LearnedGP(**QUICK),
    "LearnedGP with a composed kernel": lambda: LearnedGP(**QUICK, kernel=OTHERS + Constant()),
    "PacohMap": lambda: PacohMap(**QUICK),
    "RankWeightedGP": RankWeightedGP,
    "SelfStandardisedGP": SelfStandardisedGP,
    "Weighed": lambda: Weighed(Ensemble(FPacohMap(**QUICK), members=3)),
}


class Saved(NamedTuple):
    """A prior as compiled code has it, and the belief that its files hold."""

    prior: mp.Prior
    belief: AbstractBelief
    folder: Path


def read_belief(folder: Path) -> AbstractBelief:
    settings, arrays = read_files(folder)
    belief = belief_of(settings, arrays, NUM_COLUMNS)
    assert belief is not None
    return belief


def read_files(folder: Path) -> tuple[dict, dict[str, np.ndarray]]:
    settings = json.loads((folder / "prior.json").read_text())["method"]
    arrays = load_file(arrays_of(folder))
    return settings, {p: a for p, a in arrays.items() if not p.startswith("history/")}


def wavy(x: np.ndarray, top: float, height: float) -> np.ndarray:
    return height + 2.0 * np.exp(-((x - top) ** 2).sum(axis=1)) + np.sin(4.0 * x @ [1.0, -0.5, 0.3])


@pytest.fixture(scope="session")
def past():
    rng = np.random.default_rng(0)
    runs = []
    for length in (1, 5, 8, 12, 12, 12):
        x = rng.uniform(size=(length, NUM_COLUMNS))
        runs.append((x, wavy(x, 0.4 + 0.1 * rng.normal(), 3.0 * rng.normal())))
    space = mp.Space(**{f"x{i}": mp.Real(0.0, 1.0) for i in range(NUM_COLUMNS)})
    return mp.Tasks.from_runs(runs, space=space)


@pytest.fixture(scope="session")
def run():
    """A task that was not learned from, with a point observed twice."""
    x = np.random.default_rng(1).uniform(size=(30, NUM_COLUMNS))
    x[5] = x[2]
    return x, wavy(x, 0.45, 1.0)


@pytest.fixture(scope="session")
def queries(run):
    """Points all over the space, and some that the run has."""
    return np.concatenate([np.random.default_rng(2).uniform(size=(20, NUM_COLUMNS)), run[0][:4]])


@pytest.fixture(scope="session")
def saved(past, tmp_path_factory):
    """By name, a prior saved and its belief; each is trained once."""

    @functools.cache
    def of(name: str) -> Saved:
        folder = tmp_path_factory.mktemp("prior") / "saved"
        prior = mp.learn(past, method=METHODS[name](), seed=0)
        prior.save(folder)
        return Saved(prior, read_belief(folder), folder)

    return of
