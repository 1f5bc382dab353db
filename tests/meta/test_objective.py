"""The F-PACOH objective: a case worked by hand, independent implementations, gradients, padding."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from metaprior.data import Real, Space, Tasks, blank_standardiser, fit_standardiser
from metaprior.gp import (
    ConstantMean,
    FeatureKernel,
    GaussianProcess,
    NeuralMean,
    SquaredExponential,
    reference,
)
from metaprior.meta import (
    Domain,
    FPacohBatch,
    FPacohObjective,
    MeasuredTasks,
    MetaData,
    TaskBatch,
    gp_hyper_prior,
    measurement_sizes,
    meta_data,
)

# scipy's stubs take a covariance for a whole number.
multivariate_normal: Any = scipy.stats.multivariate_normal

JITTER = 1e-8

# At this distance the prior's correlation is 1/2, at twice the distance 1/16; that of the
# hyper-prior, whose lengthscale is shorter by the square root of 2, is 1/4.
UNIT = math.sqrt(2 * math.log(2))

evaluate = eqx.filter_jit(lambda objective, prior, batch: objective.loss(prior, batch))


def hand_prior() -> GaussianProcess:
    """Mean 1/2, variance 2, lengthscale 1, noise variance 1/2."""
    kernel = SquaredExponential(jnp.asarray(0.0), jnp.log(2.0))
    return GaussianProcess(ConstantMean(jnp.asarray(0.5)), kernel, jnp.log(0.5))


def hand_case(*, num_tasks: int, kappa: float, mask=((1, 1), (1, 1))):
    """Task 1 observes 1 and 0 at distance 1 unit, task 2 observes -1/2 and 3/2 at 2 units.

    Measurement set 1 is the second input of task 1 and a point 1 unit away; set 2 is the first
    input of task 2 and a point sqrt(2) units away. Both sides of the divergence get 1/4 of jitter.
    """
    space = Space(x=Real(0, 1))
    x = UNIT * jnp.asarray([[[0.0], [1.0]], [[0.0], [2.0]]])
    y = jnp.asarray([[1.0, 0.0], [-0.5, 1.5]])
    tasks = TaskBatch(x, y, jnp.asarray(mask, bool))
    data = MetaData(x, y, tasks.mask, jnp.asarray(num_tasks), Domain(space, blank_standardiser(1)))
    hyper_prior = gp_hyper_prior(math.sqrt(0.5), 1.0)
    jitter = jnp.asarray(0.25)
    sizes = measurement_sizes(2, 1, 1)
    objective = FPacohObjective(data, hyper_prior, jnp.asarray(kappa), jitter, sizes, 2)
    points = jnp.concatenate([x, UNIT * jnp.asarray([[[2.0]], [[-math.sqrt(2)]]])], axis=1)
    rows = jnp.asarray([[1, 2], [0, 2]])
    sets = jnp.stack([points[0, rows[0]], points[1, rows[1]]])
    at_sets = jax.jit(jax.vmap(lambda x: reference(hyper_prior.marginal(x), jitter)))(sets)
    return objective, FPacohBatch(MeasuredTasks(tasks, points, rows), at_sets, None, None)


# ln N(r; 0, K) for K = [[a, b], [b, a]] is -(q + ln det + 2 ln 2 pi) / 2 with det = a^2 - b^2 and
# q = (a r1^2 - 2 b r1 r2 + a r2^2) / det. With the library's jitter, a = 2 + 1/2 + 1e-8.
DIAGONAL = 2.5 + JITTER
# Task 1: b = 2 / 2 = 1, residuals (1/2, -1/2).
DET_1 = DIAGONAL**2 - 1.0
QUADRATIC_1 = (0.25 * DIAGONAL + 0.5 + 0.25 * DIAGONAL) / DET_1
LN_Z_1 = -0.5 * (QUADRATIC_1 + math.log(DET_1) + 2 * math.log(2 * math.pi))
# Task 2: b = 2 / 16 = 1/8, residuals (-1, 1).
DET_2 = DIAGONAL**2 - 1 / 64
QUADRATIC_2 = (DIAGONAL + 0.25 + DIAGONAL) / DET_2
LN_Z_2 = -0.5 * (QUADRATIC_2 + math.log(DET_2) + 2 * math.log(2 * math.pi))
# Set 1: K_q = [[9/4, 1], [1, 9/4]], K_p = [[5/4, 1/4], [1/4, 5/4]], means differ by (1/2, 1/2).
# |K_q| = 81/16 - 1 = 65/16, |K_p| = 25/16 - 1/16 = 3/2,
# tr(K_p^-1 K_q) = 2 (5/4 * 9/4 - 1/4 * 1) / (3/2) = 41/12,
# the shift is 1/4 * 2 (5/4 - 1/4) / (3/2) = 1/3.
KL_1 = 0.5 * (41 / 12 + 1 / 3 - 2 + math.log(3 / 2) - math.log(65 / 16))
# Set 2: K_q = [[9/4, 1/2], [1/2, 9/4]], K_p = [[5/4, 1/16], [1/16, 5/4]], the same means.
# |K_q| = 81/16 - 1/4 = 77/16, |K_p| = 25/16 - 1/256 = 399/256,
# tr(K_p^-1 K_q) = 2 (45/16 - 1/32) / (399/256) = 1424/399,
# the shift is 1/4 * 2 (5/4 - 1/16) / (399/256) = 152/399.
KL_2 = 0.5 * (1424 / 399 + 152 / 399 - 2 + math.log(399 / 256) - math.log(77 / 16))


def test_fpacoh_objective_by_hand():
    objective, batch = hand_case(num_tasks=2, kappa=0.3)
    loss, terms = evaluate(objective, hand_prior(), batch)
    weight = 0.3 * (1 / math.sqrt(2) + 1 / (2 * 2))
    expected = 0.5 * ((-LN_Z_1 / 2 + weight * KL_1) + (-LN_Z_2 / 2 + weight * KL_2))
    assert abs(float(loss) - expected) < 1e-10
    assert abs(float(loss) - 1.6150444719306) < 1e-10
    assert abs(float(terms["fit"]) - 1.5019066605048) < 1e-10
    assert abs(float(terms["complexity"]) - 0.1131378114259) < 1e-10


@pytest.mark.parametrize(("num_tasks", "kappa"), [(2, 0.0), (2, 5.0), (50, 0.3), (1000, 2.0)])
def test_fpacoh_objective_weight_counts_all_tasks_not_those_of_the_batch(num_tasks, kappa):
    objective, batch = hand_case(num_tasks=num_tasks, kappa=kappa)
    _, terms = evaluate(objective, hand_prior(), batch)
    weight = kappa * (1 / math.sqrt(num_tasks) + 1 / (num_tasks * 2))
    assert abs(float(terms["complexity"]) - 0.5 * weight * (KL_1 + KL_2)) < 1e-10
    assert abs(float(terms["fit"]) + 0.25 * (LN_Z_1 + LN_Z_2)) < 1e-10


def test_fpacoh_objective_of_different_lengths_by_hand():
    """The second task keeps its first observation only: T is 2 and 1."""
    objective, batch = hand_case(num_tasks=2, kappa=0.3, mask=((1, 1), (1, 0)))
    loss, _ = evaluate(objective, hand_prior(), batch)
    ln_z = -0.5 * (1 / DIAGONAL + math.log(DIAGONAL) + math.log(2 * math.pi))
    # The padded row is a standard normal at its mean, but for its jitter.
    ln_z -= 0.5 * math.log(1 + JITTER)
    weights = [0.3 * (1 / math.sqrt(2) + 1 / (2 * length)) for length in (2, 1)]
    expected = 0.5 * ((-LN_Z_1 / 2 + weights[0] * KL_1) + (-ln_z + weights[1] * KL_2))
    assert abs(float(loss) - expected) < 1e-10


SPACE = Space(a=Real(0, 1), b=Real(0, 1))
LENGTHS = (1, 3, 4, 4, 2)
KAPPA, MEASUREMENT_VARIANCE = 0.7, 1e-3


def make_objective(data: MetaData, batch_size: int = 3) -> FPacohObjective:
    return FPacohObjective(
        data,
        gp_hyper_prior(0.4, 1.5),
        jnp.asarray(KAPPA),
        jnp.asarray(MEASUREMENT_VARIANCE),
        measurement_sizes(6, 3, min(LENGTHS)),
        batch_size,
    )


def make_data() -> MetaData:
    rng = np.random.default_rng(0)
    runs = [(rng.uniform(size=(m, 2)), 3 + rng.normal(size=m)) for m in LENGTHS]
    tasks = Tasks.from_runs(runs, space=SPACE)
    return meta_data(tasks, fit_standardiser(tasks.x, tasks.y, tasks.mask))


def neural_prior() -> GaussianProcess:
    key_mean, key_features = jax.random.split(jax.random.key(3))
    mean = NeuralMean(eqx.nn.MLP(2, 1, 4, 1, jnp.tanh, key=key_mean))
    features = eqx.nn.MLP(2, 2, 4, 1, jnp.tanh, key=key_features)
    kernel = FeatureKernel(SquaredExponential(jnp.log(0.5), jnp.log(1.3)), features)
    return GaussianProcess(mean, kernel, jnp.log(0.05))


@eqx.filter_jit
def draw_and_evaluate(objective: FPacohObjective, prior: GaussianProcess, key):
    batch = objective.draw(key=key)
    return batch, objective.loss(prior, batch)


@pytest.mark.parametrize("seed", range(4))
def test_fpacoh_objective_random_batches_match_an_independent_implementation(seed):
    """Kernels by sklearn, densities by scipy, the divergence by inverses and determinants."""
    data = make_data()
    kernel = SquaredExponential(jnp.log(jnp.asarray([0.5, 0.9])), jnp.log(1.3))
    prior = GaussianProcess(ConstantMean(jnp.asarray(0.2)), kernel, jnp.log(0.05))
    batch, (loss, _) = draw_and_evaluate(make_objective(data), prior, jax.random.key(seed))
    lengthscales: Any = [0.5, 0.9]
    own, hyper = ConstantKernel(1.3) * RBF(lengthscales), ConstantKernel(1.5) * RBF(0.4)
    n, values = len(LENGTHS), []
    for task in range(3):
        mask = np.asarray(batch.measured.tasks.mask[task])
        length = mask.sum()
        x, y = (
            np.asarray(batch.measured.tasks.x[task])[mask],
            np.asarray(batch.measured.tasks.y[task])[mask],
        )
        observed = multivariate_normal(
            np.full(length, 0.2), own(x) + (0.05 + JITTER) * np.eye(length)
        )
        points = np.asarray(batch.measured.points[task])[np.asarray(batch.measured.rows[task])]
        jitter = MEASUREMENT_VARIANCE * np.eye(len(points))
        k_q, precision = own(points) + jitter, np.linalg.inv(hyper(points) + jitter)
        determinants = -np.linalg.slogdet(precision)[1] - np.linalg.slogdet(k_q)[1]
        shift = np.full(len(points), 0.2)
        kl = 0.5 * (
            np.trace(precision @ k_q) + shift @ precision @ shift - len(points) + determinants
        )
        weight = KAPPA * (1 / np.sqrt(n) + 1 / (n * length))
        values.append(-observed.logpdf(y) / length + weight * kl)
    np.testing.assert_allclose(loss, np.mean(values), rtol=1e-7)


def test_fpacoh_objective_gradient_by_every_parameter_matches_finite_differences():
    objective = make_objective(make_data())
    batch = eqx.filter_jit(objective.draw)(key=jax.random.key(0))
    assert len({int(length) for length in batch.measured.tasks.mask.sum(axis=1)}) > 1
    params, static = eqx.partition(neural_prior(), eqx.is_inexact_array)
    flat, unravel = ravel_pytree(params)

    def value(flat):
        return objective.loss(eqx.combine(unravel(flat), static), batch)[0]

    step = 1e-5
    steps = step * np.eye(len(flat))
    values, base = jax.jit(jax.vmap(value)), np.asarray(flat)[None, :]
    expected = (values(jnp.asarray(base + steps)) - values(jnp.asarray(base - steps))) / (2 * step)
    got = jax.jit(jax.grad(value))(flat)
    # All but one move the loss: the features' biases shift all features alike.
    assert np.sum(np.abs(np.asarray(expected)) > 1e-4) >= len(flat) - 2
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


def test_fpacoh_objective_batch_of_all_tasks_gives_the_whole_fit():
    """Whatever the key: only the measurement sets are random then."""
    objective, prior = make_objective(make_data(), len(LENGTHS)), neural_prior()
    results = [draw_and_evaluate(objective, prior, jax.random.key(seed))[1] for seed in range(3)]
    fits = [float(terms["fit"]) for _, terms in results]
    np.testing.assert_allclose(fits, fits[0], rtol=1e-12)
    assert len({float(terms["complexity"]) for _, terms in results}) == 3


def test_fpacoh_objective_small_batches_estimate_the_whole_objective_without_bias():
    """Mean over 4000 batches of 3 tasks, within 4 standard errors of the mean over batches of 5."""
    prior, data = neural_prior(), make_data()
    keys = jax.random.split(jax.random.key(0), 4000)

    def values(batch_size: int) -> np.ndarray:
        objective = make_objective(data, batch_size)
        many = jax.vmap(lambda key: draw_and_evaluate(objective, prior, key)[1][0])
        return np.asarray(jax.jit(many)(keys))

    part, whole = values(3), values(5)
    standard_error = np.sqrt((part.var() + whole.var()) / len(keys))
    assert abs(part.mean() - whole.mean()) < 4 * standard_error
    assert part.std() > 2 * whole.std()  # So that agreement is no matter of course.


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**31 - 1), lengths=st.tuples(*[st.integers(1, 4)] * len(LENGTHS)))
def test_fpacoh_objective_padded_rows_and_padded_tasks_never_matter(seed, lengths):
    rng = np.random.default_rng(seed)
    data = DATA
    mask = np.arange(4) < np.array([*lengths, 0, 0, 0])[:, None]
    x, y = rng.normal(size=(8, 4, 2)), rng.normal(size=(8, 4))
    junk = 1e3 * rng.normal(size=(8, 4, 3))

    def evaluate_on(x, y):
        arrays = (jnp.asarray(x), jnp.asarray(y), jnp.asarray(mask))
        objective = make_objective(MetaData(*arrays, data.num_tasks, data.domain))
        return draw_and_evaluate(objective, PRIOR, jax.random.key(seed))[1]

    clean, _ = evaluate_on(np.where(mask[..., None], x, 0.0), np.where(mask, y, 0.0))
    dirty, _ = evaluate_on(
        np.where(mask[..., None], x, junk[..., :2]), np.where(mask, y, junk[..., 2])
    )
    assert np.isfinite(clean)
    np.testing.assert_allclose(dirty, clean, rtol=1e-10)


DATA, PRIOR = make_data(), neural_prior()


def test_fpacoh_objective_measurement_sets_may_come_from_the_tasks_alone():
    objective = eqx.tree_at(lambda o: o.data.mask, make_objective(DATA), jnp.ones_like(DATA.mask))
    objective = FPacohObjective(
        objective.data,
        objective.hyper_prior,
        objective.kl_weight,
        objective.measurement_variance,
        measurement_sizes(3, 3, 4),
        3,
    )
    batch, (loss, _) = draw_and_evaluate(objective, PRIOR, jax.random.key(0))
    assert batch.measured.points.shape == (3, 4, 2) and int(batch.measured.rows.max()) < 4
    assert np.isfinite(loss)
