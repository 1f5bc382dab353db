"""Learned GP: its likelihood against sklearn and scipy, and recovery of a process that is known."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import metaprior as mp
from metaprior.data import Real, Space, empty_run, fit_standardiser
from metaprior.gp import ConstantMean, GaussianProcess, SquaredExponential
from metaprior.meta import TaskBatch, meta_data
from metaprior.meta._likelihood import log_likelihoods
from metaprior.methods._learned_gp import LearnedGP

# Their published types know scalars only.
multivariate_normal: Any = scipy.stats.multivariate_normal
rbf: Any = RBF

SPACE = Space(a=Real(0, 1), b=Real(0, 1))
# The truth, in the units of the unit cube and of y.
LENGTHSCALES, VARIANCE, NOISE_VARIANCE, MEAN = np.array([0.2, 0.6]), 4.0, 0.09, 7.0
TOLERANCE = 0.15


@pytest.fixture(scope="module")
def drawn_tasks():
    """Runs of 12 to 20 points, drawn from the known process by sklearn's kernel."""
    rng = np.random.default_rng(0)
    runs = []
    for length in [20] * 70 + [12] * 10:
        x = rng.uniform(size=(length, 2))
        covariance = (ConstantKernel(VARIANCE) * rbf(LENGTHSCALES))(x)
        covariance += NOISE_VARIANCE * np.eye(length)
        runs.append((x, rng.multivariate_normal(np.full(length, MEAN), covariance)))
    return mp.Tasks.from_runs(runs, space=SPACE)


@pytest.fixture(scope="module")
def learned(drawn_tasks):
    return LearnedGP().meta_train(drawn_tasks, key=jr.key(0))


def in_user_units(surrogate):
    process, standardiser = surrogate.process, surrogate.standardiser
    lengthscales = np.exp(process.kernel.log_lengthscale) * np.asarray(standardiser.x_std)
    scale = float(standardiser.y_std) ** 2
    variance = np.exp(process.kernel.log_variance) * scale
    return lengthscales, variance, float(process.noise_variance) * scale


@pytest.mark.slow
def test_learned_gp_hyper_parameters_of_a_known_process_are_recovered(learned):
    lengthscales, variance, noise_variance = in_user_units(learned)
    np.testing.assert_allclose(lengthscales, LENGTHSCALES, rtol=TOLERANCE)
    np.testing.assert_allclose(noise_variance, NOISE_VARIANCE, rtol=TOLERANCE)
    # Eighty functions say little more of the variance than eighty numbers would.
    np.testing.assert_allclose(variance, VARIANCE, rtol=2 * TOLERANCE)


def test_learned_gp_recovery_test_can_fail(learned):
    """Negative control: the recovery above is the work of the training."""
    method = LearnedGP()
    start = method.surrogate(method.initial(2, key=jr.key(0)), learned.standardiser)
    lengthscales, _, noise_variance = in_user_units(start)
    assert (np.abs(lengthscales / LENGTHSCALES - 1) > 2 * TOLERANCE).any()
    assert abs(noise_variance / NOISE_VARIANCE - 1) > 2 * TOLERANCE


def test_learned_gp_no_other_hyper_parameters_nearby_are_more_likely(learned, drawn_tasks):
    """The sum of all log-likelihoods by sklearn's kernel and scipy's density."""
    lengthscales, variance, noise_variance = in_user_units(learned)
    constant = float(learned.process.mean.value * learned.standardiser.y_std)
    mean = float(learned.standardiser.y_mean) + constant

    def total(lengthscales, variance, noise_variance, mean):
        kernel = ConstantKernel(variance) * rbf(lengthscales)
        value = 0.0
        for x, y, mask in zip(drawn_tasks.x, drawn_tasks.y, drawn_tasks.mask, strict=True):
            covariance = kernel(x[mask]) + noise_variance * np.eye(mask.sum())
            at_mean = np.full(mask.sum(), mean)
            value += multivariate_normal(at_mean, covariance).logpdf(y[mask])
        return value

    best = total(lengthscales, variance, noise_variance, mean)
    for factor in (0.85, 1.15):
        assert best > total(lengthscales * [factor, 1.0], variance, noise_variance, mean)
        assert best > total(lengthscales * [1.0, factor], variance, noise_variance, mean)
        assert best > total(lengthscales, variance * factor, noise_variance, mean)
        assert best > total(lengthscales, variance, noise_variance * factor, mean)
    for shift in (-0.5, 0.5):
        assert best > total(lengthscales, variance, noise_variance, mean + shift)


def small_case():
    rng = np.random.default_rng(1)
    runs = [(rng.uniform(size=(m, 2)), 3 + rng.normal(size=m)) for m in (1, 3, 4, 4, 2)]
    tasks = mp.Tasks.from_runs(runs, space=SPACE)
    data = meta_data(tasks, fit_standardiser(tasks.x, tasks.y, tasks.mask))
    kernel = SquaredExponential(jnp.log(jnp.asarray([0.5, 0.9])), jnp.log(1.3))
    return tasks, data, GaussianProcess(ConstantMean(jnp.asarray(0.2)), kernel, jnp.log(0.05))


def test_learned_gp_likelihoods_of_a_batch_match_an_independent_implementation():
    _, data, process = small_case()
    batch = TaskBatch(data.x, data.y, data.mask)
    found = eqx.filter_jit(log_likelihoods)(process, batch)
    for i in range(5):
        mask = np.asarray(data.mask[i])
        x, y = np.asarray(data.x[i])[mask], np.asarray(data.y[i])[mask]
        covariance = (ConstantKernel(1.3) * rbf([0.5, 0.9]))(x) + 0.05 * np.eye(len(y))
        expected = multivariate_normal(np.full(len(y), 0.2), covariance).logpdf(y)
        np.testing.assert_allclose(found[i], expected, rtol=1e-6)


def test_learned_gp_batches_estimate_the_sum_of_the_likelihoods_without_bias():
    """The mean over all batches of one task is the negative likelihood per observation."""
    tasks, data, process = small_case()
    objective = LearnedGP(batch_size=1).objective(tasks, data)
    loss = jax.jit(lambda batch: objective.loss(process, batch)[0])
    rows = (slice(i, i + 1) for i in range(5))
    losses = [float(loss(TaskBatch(data.x[r], data.y[r], data.mask[r]))) for r in rows]
    batch = TaskBatch(data.x[:5], data.y[:5], data.mask[:5])
    everything = eqx.filter_jit(log_likelihoods)(process, batch)
    np.testing.assert_allclose(np.mean(losses), -np.sum(everything) / (1 + 3 + 4 + 4 + 2))


def test_learned_gp_without_points_is_the_learned_process(learned):
    condition = eqx.filter_jit(lambda surrogate, run: surrogate.condition(run))
    moments = condition(learned, empty_run(16, 2)).moments(jnp.asarray([0.3, 0.9]))
    _, variance, noise_variance = in_user_units(learned)
    standardiser = learned.standardiser
    mean = standardiser.y_mean + standardiser.y_std * learned.process.mean.value
    np.testing.assert_allclose(moments.mean, mean)
    np.testing.assert_allclose(moments.function_variance, variance)
    np.testing.assert_allclose(moments.noise_variance, noise_variance)


def test_learned_gp_blank_surrogate_has_the_structure_of_a_trained_one(learned):
    blank = eqx.filter(LearnedGP().blank_surrogate(2), eqx.is_array)
    trained = eqx.filter(learned, eqx.is_array)
    assert jax.tree.structure(blank) == jax.tree.structure(trained)
    assert [a.shape for a in jax.tree.leaves(blank)] == [a.shape for a in jax.tree.leaves(trained)]
