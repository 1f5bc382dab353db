"""The posterior over networks: exact for linear ones, calibrated for others, and a method."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import metaprior as mp
from metaprior.data import Run, blank_standardiser
from metaprior.gp import Spread
from metaprior.meta._hyper_posterior import antithetic_normals
from metaprior.meta._network_prior import Layer, NetworkPrior, network_prior
from metaprior.meta._tangent import Observations
from metaprior.methods import FixedGP, FPacohBNN
from metaprior.methods._fpacoh_bnn import NetworkSurrogate
from metaprior.methods._randomised_map import posterior_particles, refine_network
from metaprior.metrics import calibration_error

MEAN, STD = np.array([0.7, -0.4, 0.3]), np.array([0.9, 0.5, 0.6])
KEPT = Spread(jnp.asarray(0.0), jnp.asarray(0.0))


def linear_prior(noise_variance: float) -> NetworkPrior:
    """A network without hidden layers: y = w x / sqrt 2 + b."""
    mean = (Layer(jnp.asarray(MEAN[None, :2]), jnp.asarray(MEAN[2:])),)
    return NetworkPrior(mean, jnp.log(STD), jnp.log(noise_variance))


def observations(num: int, capacity: int = 8, noise_std: float = 1.0) -> Observations:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(num, 2)), np.zeros((capacity - num, 2))])
    y = np.where(np.arange(capacity) < num, x[:, 0] + noise_std * rng.normal(size=capacity), 0.0)
    return Observations(jnp.asarray(x), jnp.asarray(y), jnp.arange(capacity) < num)


def surrogate(prior: NetworkPrior, spread: Spread = KEPT, num: int = 32) -> NetworkSurrogate:
    anchors = antithetic_normals(num, prior.num_weights, key=jr.key(0))
    columns = prior.mean[0].weight.shape[1]
    return NetworkSurrogate(prior, blank_standardiser(columns), anchors, spread, 8)


@eqx.filter_jit
def condition(surrogate, observed: Observations):
    run = Run(observed.x, observed.y, jnp.sum(observed.mask))
    return surrogate.condition(run)


@pytest.mark.parametrize("noise_variance", [0.5, 1e-3])
def test_fpacoh_bnn_particles_of_a_linear_network_are_draws_of_the_exact_posterior(noise_variance):
    """Bayesian linear regression by the normal equations, within five standard errors. Two
    observations leave one direction of the three weights to the prior."""
    prior, observed, num = linear_prior(noise_variance), observations(2), 4000
    features = np.column_stack([np.asarray(observed.x)[:2] / np.sqrt(2.0), np.ones(2)])
    covariance = np.linalg.inv(features.T @ features / noise_variance + np.diag(STD**-2.0))
    rhs = features.T @ np.asarray(observed.y)[:2] / noise_variance + MEAN / STD**2
    anchors = jr.normal(jr.key(1), (num, 3))

    def weights(anchors):
        particles = posterior_particles(prior, observed, anchors, jnp.asarray(1.0), 4)
        return MEAN + STD * np.asarray(particles)

    drawn = weights(anchors)
    error = np.sqrt(np.diag(covariance) / num)
    np.testing.assert_array_less(abs(drawn.mean(axis=0) - covariance @ rhs), 5 * error)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    difference = abs(np.cov(drawn.T) - covariance) / scale
    np.testing.assert_array_less(difference, 5 * np.sqrt(2 / num))
    # Without anchors of their own, all particles look for the same weights in that direction.
    alike = weights(jnp.zeros((num, 3)))
    assert alike.var(axis=0).sum() < 0.5 * np.trace(covariance)


@pytest.mark.slow
def test_fpacoh_bnn_without_observations_the_particles_are_draws_of_the_prior():
    prior = network_prior(2, 5, 1, 0.3, key=jr.key(0))
    model = surrogate(prior)
    posterior = condition(model, observations(0))
    np.testing.assert_array_equal(posterior.particles, model.anchors)
    np.testing.assert_array_equal(posterior.prior.log_noise_variance, prior.log_noise_variance)


@pytest.mark.slow
def test_fpacoh_bnn_capacity_of_a_run_does_not_matter():
    model = surrogate(network_prior(2, 5, 1, 0.3, key=jr.key(0)))
    small, large = (condition(model, observations(5, capacity)) for capacity in (8, 32))
    np.testing.assert_allclose(large.particles, small.particles, atol=1e-6)
    assert np.std(np.asarray(small.particles - model.anchors)) > 0.01


@pytest.mark.slow
def test_fpacoh_bnn_smoothing_keeps_mean_and_variance_of_the_particles():
    model = surrogate(network_prior(2, 5, 1, 0.3, key=jr.key(0)))
    posterior = condition(model, observations(3))
    x = jnp.asarray([0.3, 0.8])
    values = np.asarray(posterior.prior.functions(posterior.particles, x[None, :]))[:, 0]
    found = posterior.moments(x)
    np.testing.assert_allclose(found.mean, values.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.function_variance, values.var(), rtol=1e-9)


def test_fpacoh_bnn_learns_the_noise_of_a_run():
    """Around a learned noise that is wrong, unless it is to be kept."""
    prior = linear_prior(0.1)
    free = Spread(jnp.asarray(3.0), jnp.asarray(1.0))
    quiet, loud = (observations(16, 16, noise_std) for noise_std in (1e-3, 1.5))
    refine = eqx.filter_jit(refine_network)
    found = [float(refine(prior, o, free).noise_variance) for o in (quiet, loud)]
    assert found[0] < 1e-3 and found[1] > 0.2
    np.testing.assert_allclose(refine(prior, quiet, KEPT).noise_variance, 0.1)


@pytest.mark.slow
def test_fpacoh_bnn_posterior_is_calibrated_on_functions_of_the_prior():
    """600 predictions of 60 tasks: an error of 0.04 is chance. Anchors with a tenth of their
    spread, which is what a collapsed ensemble has, are far from it."""
    prior = network_prior(1, 8, 2, 0.5, key=jr.key(4))
    prior = eqx.tree_at(lambda p: p.log_noise_variance, prior, jnp.log(1e-4))
    x = jr.uniform(jr.key(1), (60, 13, 1), minval=-2.0, maxval=2.0)
    weights = jr.normal(jr.key(2), (60, prior.num_weights))
    y = jax.vmap(prior.function)(weights, x) + 1e-2 * jr.normal(jr.key(3), x.shape[:2])

    @eqx.filter_jit
    def probabilities(model):
        def one(task):
            x, y = task
            posterior = model.condition(Run(x[:3], y[:3], jnp.asarray(3)))
            return jax.vmap(posterior.cdf)(x[3:], y[3:])

        return jax.lax.map(one, (x, y))

    honest = surrogate(prior)
    collapsed = eqx.tree_at(lambda m: m.anchors, honest, 0.1 * honest.anchors)
    error, worse = (
        calibration_error(np.asarray(probabilities(model)).ravel()) for model in (honest, collapsed)
    )
    assert error < 0.05
    assert worse > 0.09


def test_fpacoh_bnn_settings_without_meaning_are_refused():
    with pytest.raises(ValueError, match="num_particles"):
        FPacohBNN(num_particles=3)


def waves(num: int, length: int, seed: int) -> mp.Tasks:
    """Waves of one frequency, with random phases and heights."""
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(num):
        x = rng.uniform(size=length)
        runs.append((x, rng.uniform(0.5, 1.5) * np.sin(6 * x + rng.normal(0.0, 0.3))))
    return mp.Tasks.from_runs(runs, space=mp.Space(x=mp.Real(0.0, 1.0)))


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param("spectral", marks=pytest.mark.slow),
        pytest.param("sliced", marks=pytest.mark.study),
    ],
)
def test_fpacoh_bnn_learns_what_tasks_have_in_common(estimator):
    """Better predictions of unseen tasks than a non-transfer GP, and calibrated ones."""
    steps = 400 if estimator == "spectral" else 200
    method = FPacohBNN(num_steps=steps, width=12, score_estimator=estimator)
    models = [m.meta_train(waves(10, 10, 0), key=jr.key(0)) for m in (method, FixedGP())]
    unseen = waves(20, 23, 1)

    @eqx.filter_jit
    def judge(model, x, y):
        posterior = model.condition(Run(x[:3], y[:3], jnp.asarray(3)))
        return tuple(jax.vmap(f)(x[3:], y[3:]) for f in (posterior.log_density, posterior.cdf))

    judged = []
    for model in models:
        pairs = [
            judge(model, jnp.asarray(x), jnp.asarray(y))
            for x, y in zip(unseen.x, unseen.y, strict=True)
        ]
        density, cdf = (np.concatenate(values) for values in zip(*pairs, strict=True))
        judged.append((density.mean(), calibration_error(cdf)))
    assert judged[0][0] > judged[1][0] + 0.3
    assert judged[0][1] < 0.2
