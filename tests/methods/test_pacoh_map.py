"""PACOH-MAP: its objective worked by hand, gradients, and what the hyper-prior does."""

import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from jax.flatten_util import ravel_pytree

import metaprior as mp
from metaprior.data import Real, Space, blank_standardiser, fit_standardiser
from metaprior.gp import (
    ConstantMean,
    FeatureKernel,
    GaussianProcess,
    NeuralMean,
    SquaredExponential,
)
from metaprior.meta import Domain, MetaData, TaskBatch, meta_data
from metaprior.meta._likelihood import PacohObjective
from metaprior.methods._pacoh_map import PacohMap

JITTER = 1e-8
# At this distance the prior's correlation is 1/2, at twice the distance 1/16.
UNIT = math.sqrt(2 * math.log(2))


def hand_prior() -> GaussianProcess:
    """Mean 1/2, variance 2, lengthscale 1, noise variance 1/2."""
    kernel = SquaredExponential(jnp.asarray(0.0), jnp.log(2.0))
    return GaussianProcess(ConstantMean(jnp.asarray(0.5)), kernel, jnp.log(0.5))


# The parameters of the hand-written prior are 1/2, ln 1, ln 2 and ln 1/2.
SQUARED_NORM = 0.25 + 2 * math.log(2) ** 2


def hand_case(*, num_tasks: int, kappa: float, harmonic_length: float, mask=((1, 1), (1, 1))):
    """Task 1 observes 1 and 0 at distance 1 unit, task 2 observes -1/2 and 3/2 at 2 units; the
    hyper-prior has variance 4."""
    x = UNIT * jnp.asarray([[[0.0], [1.0]], [[0.0], [2.0]]])
    y = jnp.asarray([[1.0, 0.0], [-0.5, 1.5]])
    tasks = TaskBatch(x, y, jnp.asarray(mask, bool))
    domain = Domain(Space(x=Real(0, 1)), blank_standardiser(1))
    data = MetaData(x, y, tasks.mask, jnp.asarray(num_tasks), domain)
    weight, variance, length = jnp.asarray([kappa, 4.0, harmonic_length])
    return PacohObjective(data, weight, variance, length, 2), tasks


# ln N(r; 0, K) for K = [[a, b], [b, a]] is -(q + ln det + 2 ln 2 pi) / 2 with det = a^2 - b^2 and
# q = (a r1^2 - 2 b r1 r2 + a r2^2) / det. With the library's jitter, a = 2 + 1/2 + 1e-8.
DIAGONAL = 2.5 + JITTER
# Task 1: b = 2 / 2 = 1, residuals (1/2, -1/2).
DET_1 = DIAGONAL**2 - 1.0
LN_Z_1 = -0.5 * ((0.5 * DIAGONAL + 0.5) / DET_1 + math.log(DET_1) + 2 * math.log(2 * math.pi))
# Task 2: b = 2 / 16 = 1/8, residuals (-1, 1).
DET_2 = DIAGONAL**2 - 1 / 64
LN_Z_2 = -0.5 * ((2 * DIAGONAL + 0.25) / DET_2 + math.log(DET_2) + 2 * math.log(2 * math.pi))


def test_pacoh_map_objective_by_hand():
    objective, batch = hand_case(num_tasks=2, kappa=1.0, harmonic_length=2.0)
    loss, terms = objective.loss(hand_prior(), batch)
    # lambda = sqrt 2, n T~ = 4, and -ln P = |phi|^2 / 8.
    complexity = (1 / math.sqrt(2) + 1 / 4) * SQUARED_NORM / 8
    expected = -0.5 * (LN_Z_1 / 2 + LN_Z_2 / 2) + complexity
    assert abs(float(loss) - expected) < 1e-10
    assert abs(float(loss) - 1.6467774568325) < 1e-10
    assert abs(float(terms["fit"]) - 1.5019066605048) < 1e-10
    assert abs(float(terms["complexity"]) - complexity) < 1e-10


def test_pacoh_map_objective_of_different_lengths_by_hand():
    """The second task keeps its first observation only: T is 2 and 1, their harmonic mean 4/3."""
    mask = ((1, 1), (1, 0))
    objective, batch = hand_case(num_tasks=2, kappa=0.3, harmonic_length=4 / 3, mask=mask)
    loss, _ = objective.loss(hand_prior(), batch)
    ln_z = -0.5 * (1 / DIAGONAL + math.log(DIAGONAL) + math.log(2 * math.pi))
    # The padded row is a standard normal at its mean, but for its jitter.
    ln_z -= 0.5 * math.log(1 + JITTER)
    complexity = 0.3 * (1 / math.sqrt(2) + 3 / 8) * SQUARED_NORM / 8
    assert abs(float(loss) - (-0.5 * (LN_Z_1 / 2 + ln_z) + complexity)) < 1e-10


@pytest.mark.parametrize(("num_tasks", "kappa"), [(2, 0.0), (50, 0.3), (1000, 2.0)])
def test_pacoh_map_weight_counts_all_tasks_not_those_of_the_batch(num_tasks, kappa):
    objective, batch = hand_case(num_tasks=num_tasks, kappa=kappa, harmonic_length=3.0)
    _, terms = objective.loss(hand_prior(), batch)
    weight = kappa * (1 / math.sqrt(num_tasks) + 1 / (num_tasks * 3.0))
    assert abs(float(terms["complexity"]) - weight * SQUARED_NORM / 8) < 1e-10
    assert abs(float(terms["fit"]) + 0.25 * (LN_Z_1 + LN_Z_2)) < 1e-10


@pytest.fixture(scope="module")
def hill_tasks(hill_space, hill_runs):
    return mp.Tasks.from_runs(hill_runs, space=hill_space)


def objective_of(method: PacohMap, tasks) -> PacohObjective:
    standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask)
    return method.objective(tasks, meta_data(tasks, standardiser))


def test_pacoh_map_method_builds_the_objective_of_its_tasks(hill_tasks):
    objective = objective_of(PacohMap(hyper_prior_std=3.0, kappa=0.4), hill_tasks)
    lengths = [len(hill_tasks.y[i][hill_tasks.mask[i]]) for i in range(len(hill_tasks))]
    np.testing.assert_allclose(objective.harmonic_length, scipy.stats.hmean(lengths))
    np.testing.assert_allclose(objective.hyper_prior_variance, 9.0)
    np.testing.assert_allclose(objective.kappa, 0.4)
    assert objective.draw(key=jr.key(0)).y.shape[0] == 4


def test_pacoh_map_gradient_by_every_parameter_matches_finite_differences(hill_tasks):
    key_mean, key_features = jr.split(jr.key(3))
    mean = NeuralMean(eqx.nn.MLP(2, 1, 4, 1, jnp.tanh, key=key_mean))
    features = eqx.nn.MLP(2, 2, 4, 1, jnp.tanh, key=key_features)
    kernel = FeatureKernel(SquaredExponential(jnp.log(0.5), jnp.log(1.3)), features)
    params, static = eqx.partition(
        GaussianProcess(mean, kernel, jnp.log(0.05)), eqx.is_inexact_array
    )
    flat, unravel = ravel_pytree(params)
    objective = objective_of(PacohMap(hyper_prior_std=1.0), hill_tasks)
    batch = objective.draw(key=jr.key(0))

    def value(flat):
        return objective.loss(eqx.combine(unravel(flat), static), batch)[0]

    steps = 1e-5 * np.eye(len(flat))
    values, base = jax.jit(jax.vmap(value)), np.asarray(flat)[None, :]
    numeric = (values(base + steps) - values(base - steps)) / 2e-5
    np.testing.assert_allclose(jax.jit(jax.grad(value))(flat), numeric, rtol=1e-5, atol=1e-7)


KAPPAS = (1e-3, 1.0, 100.0)


@pytest.fixture(scope="module")
def priors(hill_tasks):
    """Three weights of the hyper-prior, trained from the same start on the same batches."""
    first = PacohMap(num_steps=150, learning_rate=1e-2)
    return [mp.learn(hill_tasks, method=replace(first, kappa=kappa), seed=0) for kappa in KAPPAS]


@pytest.mark.slow
def test_pacoh_map_kappa_pulls_all_parameters_towards_zero(priors):
    norms, noises = [], []
    for prior in priors:
        flat, _ = ravel_pytree(eqx.filter(prior.surrogate.process, eqx.is_inexact_array))
        norms.append(np.sum(np.asarray(flat) ** 2))
        noises.append(abs(float(prior.surrogate.process.log_noise_variance)))
    assert norms[0] > 1.2 * norms[1] > 3 * norms[2]
    # The noise too: a strong hyper-prior believes in a variance of one, and these data in less.
    assert noises[0] > noises[1] > noises[2]


@pytest.mark.slow
def test_pacoh_map_learns_what_a_fixed_gp_cannot(priors, hill_tasks):
    fixed = mp.learn(hill_tasks, method=mp.methods.FixedGP())
    rng = np.random.default_rng(100)
    x = rng.uniform([-1.0, 0.0], [1.0, 10.0], (60, 2))
    y = 2.0 - (((x - [0.32, 5.8]) / [0.8, 4.0]) ** 2).sum(axis=1)
    errors = [
        np.mean((prior.condition(x[:3], y[:3]).predict(x[3:])[0] - y[3:]) ** 2)
        for prior in (priors[0], fixed)
    ]
    assert errors[0] < 0.2 * errors[1]
