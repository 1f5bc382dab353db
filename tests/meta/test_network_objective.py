"""The objective of a prior over networks: exact cases, importance sampling, any loss, padding."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from metaprior.data import Real, Space, Tasks, fit_standardiser
from metaprior.meta import (
    Schedule,
    TaskBatch,
    gp_hyper_prior,
    measurement_sizes,
    meta_data,
    train,
)
from metaprior.meta._hyper_posterior import antithetic_normals
from metaprior.meta._network_likelihood import (
    condition_draws,
    log_mean_exp,
    total_losses,
)
from metaprior.meta._network_objective import NetworkObjective
from metaprior.meta._network_prior import Layer, NetworkPrior, evaluate, network_prior
from metaprior.meta._tangent import Observations

# scipy's stubs take a covariance for a whole number.
multivariate_normal: Any = scipy.stats.multivariate_normal

WEIGHT, BIAS = np.array([[0.7, -0.4]]), np.array([0.3])
STD = np.array([0.9, 0.5, 0.6])
CAPACITY = 8


def linear_prior(noise_variance: float = 0.1) -> NetworkPrior:
    """A network without hidden layers: y = w x / sqrt 2 + b, with independent normal w and b."""
    mean = (Layer(jnp.asarray(WEIGHT), jnp.asarray(BIAS)),)
    return NetworkPrior(mean, jnp.log(STD), jnp.log(noise_variance))


def exact_evidence(flat, log_std, log_noise_variance, x, y) -> float:
    """The evidence of the linear network, by the rules for linear maps of Gaussians."""
    features = np.column_stack([x / np.sqrt(2.0), np.ones(len(x))])
    covariance = features @ np.diag(np.exp(2 * log_std)) @ features.T
    covariance = covariance + np.exp(log_noise_variance) * np.eye(len(x))
    return multivariate_normal(features @ flat, covariance).logpdf(y)


def evidence_of(prior: NetworkPrior, observed: Observations) -> float:
    num = int(observed.mask.sum())
    flat, _ = ravel_pytree(prior.mean)
    x, y = np.asarray(observed.x)[:num], np.asarray(observed.y)[:num]
    return exact_evidence(
        np.asarray(flat), np.asarray(prior.log_std), float(prior.log_noise_variance), x, y
    )


def observations(seed: int, length: int = 6, junk: float = 0.0) -> Observations:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(CAPACITY, 2)), rng.normal(size=CAPACITY)
    mask = np.arange(CAPACITY) < length
    x, y = np.where(mask[:, None], x, junk * x), np.where(mask, y, junk * y)
    return Observations(jnp.asarray(x), jnp.asarray(y), jnp.asarray(mask))


@eqx.filter_jit
def plain_estimate(prior, observed, num: int, key):
    """From draws of the prior alone."""
    values = prior.functions(jr.normal(key, (num, prior.num_weights)), observed.x)
    return log_mean_exp(-total_losses(values, observed.y, observed.mask, prior.noise_variance))


@eqx.filter_jit
def estimate(prior, observed, num: int, key, num_steps: int = 2):
    """From as many draws of the prior and of a tangent's posterior."""
    key_weights, key_noise = jr.split(key)
    whitened = antithetic_normals(num, prior.num_weights, key=key_weights)
    noise = jr.normal(key_noise, (num, CAPACITY))
    conditioned, log_weights = condition_draws(prior, observed, whitened, noise, num_steps)
    values = prior.functions(jnp.concatenate([whitened, conditioned]), observed.x)
    losses = total_losses(values, observed.y, observed.mask, prior.noise_variance)
    return log_mean_exp(log_weights - losses)


def test_network_evaluate_matches_numpy():
    prior = network_prior(3, 5, 2, 0.1, key=jr.key(0))
    x = np.random.default_rng(0).normal(size=(4, 3))
    values = x
    for depth, (weight, bias) in enumerate(prior.mean):
        values = values @ np.asarray(weight).T / np.sqrt(values.shape[1]) + np.asarray(bias)
        values = np.tanh(values) if depth < 2 else values
    np.testing.assert_allclose(evaluate(prior.mean, jnp.asarray(x)), values[:, 0], rtol=1e-12)
    assert prior.num_weights == (3 * 5 + 5) + (5 * 5 + 5) + (5 + 1)


def test_network_prior_functions_have_its_moments():
    """Of the linear network, within five standard errors of 20,000 draws."""
    prior, x = linear_prior(), np.array([[1.0, 2.0], [-0.5, 0.3]])
    features = np.column_stack([x / np.sqrt(2.0), np.ones(2)])
    drawn = np.asarray(prior.sample(jnp.asarray(x), 20_000, key=jr.key(0)))
    mean = features @ np.append(WEIGHT, BIAS)
    variance = (features**2) @ STD**2
    np.testing.assert_array_less(abs(drawn.mean(0) - mean), 5 * np.sqrt(variance / 20_000))
    np.testing.assert_array_less(abs(drawn.var(0) - variance), 5 * variance * np.sqrt(2 / 20_000))


def test_network_objective_evidence_improves_with_more_prior_draws():
    prior, observed = linear_prior(0.5), observations(0)
    exact = evidence_of(prior, observed)

    def error(num):
        found = [float(plain_estimate(prior, observed, num, jr.key(seed))) for seed in range(20)]
        return np.sqrt(np.mean((np.array(found) - exact) ** 2))

    few, many = error(50), error(5000)
    # A hundred times the samples, a tenth of the error: asked for is a third.
    assert many < few / 3
    assert many < 0.1


@pytest.mark.parametrize("noise_variance", [1e-1, 1e-4])
def test_condition_draws_makes_the_evidence_of_a_linear_network_nearly_exact(
    noise_variance,
):
    """For any noise, while draws of the prior alone are lost where it is small.

    Of 128 terms between 0 and 2 Z the mean has a standard error of at most Z / sqrt 128; three.
    """
    prior, observed = linear_prior(noise_variance), observations(1)
    # Values that the prior can explain: with others, the jitter of the library would show.
    values = prior.function(jnp.asarray([1.0, -0.5, 0.5]), observed.x)
    noise = jnp.sqrt(noise_variance) * observed.y
    observed = observed._replace(y=jnp.where(observed.mask, values + noise, 0.0))
    exact = evidence_of(prior, observed)
    assert abs(estimate(prior, observed, 64, jr.key(0)) - exact) < 3 / np.sqrt(128)
    if noise_variance < 1e-3:
        assert abs(plain_estimate(prior, observed, 64, jr.key(0)) - exact) > 10.0


@pytest.mark.slow
def test_condition_draws_importance_sampling_is_right_for_a_network():
    """Against sixty thousand draws of the prior, within five standard errors of both."""
    prior = network_prior(2, 6, 1, 0.4, key=jr.key(1))
    observed = observations(2, length=3)
    keys = jr.split(jr.key(3), 30)
    logs = np.array([float(estimate(prior, observed, 64, key)) for key in keys])
    plain = np.array([float(plain_estimate(prior, observed, 2000, key)) for key in keys])
    likelihoods, reference = np.exp(logs - plain.max()), np.exp(plain - plain.max())
    error = np.hypot(likelihoods.std(), reference.std()) / np.sqrt(30)
    assert abs(likelihoods.mean() - reference.mean()) < 5 * error
    assert error < 0.1 * reference.mean()


def test_network_objective_gradient_is_that_of_the_exact_evidence():
    """Finite differences of the exact evidence of a linear network, in all parameters."""
    prior, observed = linear_prior(0.05), observations(3)
    flat, unravel = ravel_pytree((prior.mean, prior.log_std, prior.log_noise_variance))

    def estimated(flat):
        return estimate(NetworkPrior(*unravel(flat)), observed, 64, jr.key(0))

    def exact(flat):
        x, y = (np.asarray(v)[np.asarray(observed.mask)] for v in observed[:2])
        return exact_evidence(flat[:3], flat[3:6], flat[6], x, y)

    base, steps = np.asarray(flat), 1e-5 * np.eye(7)
    expected = [(exact(base + step) - exact(base - step)) / 2e-5 for step in steps]
    found = np.asarray(jax.grad(estimated)(flat))
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(-5.0, 5.0), min_size=4, max_size=4), st.sampled_from([-1e6, 0.0, 1e6]))
def test_log_mean_exp_is_stable(exponents, shift):
    expected = np.log(np.mean(np.exp(exponents))) + shift
    value, slope = jax.value_and_grad(log_mean_exp)(jnp.asarray(exponents) + shift)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(np.sum(np.asarray(slope)), 1.0, rtol=1e-9)


def test_log_mean_exp_survives_losses_that_differ_by_millions():
    far = jnp.asarray([[0.0, 0.0], [2e3, -2e3]])
    losses = total_losses(far, jnp.zeros(2), jnp.ones(2, bool), jnp.asarray(1.0))
    expected = -scipy.stats.norm.logpdf([[0.0, 0.0], [2e3, -2e3]]).sum(axis=1)
    np.testing.assert_allclose(losses, expected)
    assert losses[1] > 1e6
    np.testing.assert_allclose(log_mean_exp(-losses), -expected[0] - np.log(2.0))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(0, CAPACITY))
def test_network_objective_padded_rows_never_matter(seed, length):
    prior = linear_prior()
    clean = estimate(prior, observations(seed, length), 16, jr.key(0))
    dirty = estimate(prior, observations(seed, length, junk=100.0), 16, jr.key(0))
    np.testing.assert_allclose(dirty, clean, rtol=1e-9, atol=1e-12)


def absolute_loss(predicted, observed, noise_variance):
    return jnp.abs(observed - predicted)


def line_tasks() -> Tasks:
    """Lines with random slopes, one of them short."""
    rng = np.random.default_rng(0)
    runs = []
    for length in (2, 5, 5, 5):
        x = rng.uniform(size=(length, 2))
        runs.append((x, x @ rng.normal([2.0, -1.0], 0.3)))
    return Tasks.from_runs(runs, space=Space(a=Real(0.0, 1.0), b=Real(0.0, 1.0)))


TASKS = line_tasks()
DATA = meta_data(TASKS, fit_standardiser(TASKS.x, TASKS.y, TASKS.mask))


def objective_on_lines(kl_weight: float, **settings: Any) -> NetworkObjective:
    return NetworkObjective(
        DATA,
        gp_hyper_prior(1.0, 1.0),
        jnp.asarray(kl_weight),
        jnp.asarray(1e-2),
        measurement_sizes(6, 3, 2),
        batch_size=3,
        num_samples=32,
        num_weights=3,
        **settings,
    )


@eqx.filter_jit
def draw_and_judge(objective, prior, key):
    batch = objective.draw(key=key)
    judge = eqx.filter_value_and_grad(lambda prior: objective.loss(prior, batch), has_aux=True)
    return batch, *judge(prior)


@pytest.mark.slow
def test_network_objective_fit_is_minus_the_mean_evidence_per_point():
    prior = linear_prior()
    batch, (loss, terms), _ = draw_and_judge(objective_on_lines(0.0), prior, jr.key(0))
    tasks: TaskBatch = batch.measured.tasks
    expected = [
        -evidence_of(prior, Observations(x, y, mask)) / int(mask.sum())
        for x, y, mask in zip(tasks.x, tasks.y, tasks.mask, strict=True)
    ]
    np.testing.assert_allclose(terms["fit"], np.mean(expected), atol=0.05)
    np.testing.assert_allclose(loss, terms["fit"], rtol=1e-12)


@pytest.mark.slow
def test_network_objective_divergence_pulls_functions_apart():
    """A hyper-prior of unit variance widens the weights of a prior without any to speak of, and
    narrows those of one with far too much."""
    for log_std, sign in ((-4.0, -1.0), (3.0, 1.0)):
        prior = eqx.tree_at(lambda p: p.log_std, linear_prior(), jnp.full(3, log_std))
        slopes = {}
        for weight in (0.0, 10.0):
            objective = objective_on_lines(weight)
            _, (_, terms), gradient = draw_and_judge(objective, prior, jr.key(0))
            slopes[weight] = np.asarray(gradient.log_std)
        assert (sign * (slopes[10.0] - slopes[0.0]) > 0.1).all()
        assert (terms["function_std"] > 1.0) == (log_std > 0)


@pytest.mark.slow
def test_network_objective_trains_with_any_loss():
    objective = objective_on_lines(0.1, loss_function=absolute_loss, newton_steps=0)
    trained = train(linear_prior(), objective, Schedule(4e-2, 1.0, 0.0), 100, key=jr.key(0))
    fit = trained.history["fit"]
    assert fit[-20:].mean() < fit[:10].mean() - 0.05
