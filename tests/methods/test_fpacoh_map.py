"""F-PACOH-MAP as a method: what it learns, what kappa does, and how honest its intervals are."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.stats import norm

import metaprior as mp
from metaprior.data import Run
from metaprior.gp import Spread
from metaprior.methods import FixedGP, FPacohMap, meta_train_many


@pytest.fixture(scope="module")
def hill_tasks(hill_space, hill_runs):
    return mp.Tasks.from_runs(hill_runs, space=hill_space)


def new_hill(seed, num):
    rng = np.random.default_rng(seed)
    points = rng.uniform([-1.0, 0.0], [1.0, 10.0], (num, 2))
    top = np.array([0.3, 6.0]) + rng.normal(size=2) * [0.05, 0.3]
    return points, 2.0 - (((points - top) / [0.8, 4.0]) ** 2).sum(axis=1)


def test_fpacoh_map_learns_what_a_fixed_gp_cannot(hill_prior, hill_tasks):
    """On unseen tasks, before any data and after three points: closer, and more probable."""
    fixed = mp.learn(hill_tasks, method=FixedGP())
    for num_context in (0, 3):
        errors, densities = {}, {}
        for name, prior in (("ours", hill_prior), ("fixed", fixed)):
            error, density = [], []
            for seed in range(100, 110):
                x, y = new_hill(seed, 40)
                posterior = prior.condition(x[:num_context], y[:num_context])
                error.append(np.mean((posterior.predict(x)[0] - y) ** 2))
                density.append(np.mean(posterior.log_density(x, y)))
            errors[name], densities[name] = np.mean(error), np.mean(density)
        assert errors["ours"] < 0.2 * errors["fixed"]
        assert densities["ours"] > densities["fixed"] + 0.5


def test_fpacoh_map_kappa_pulls_the_prior_towards_the_hyper_prior(hill_tasks, quick_fpacoh):
    """Functional divergence left after training, and how far the mean strays from zero."""
    divergence, spread = [], []
    cube = np.random.default_rng(0).uniform([-1.0, 0.0], [1.0, 10.0], (50, 2))
    for kappa in (1e-3, 1.0, 100.0):
        prior = mp.learn(hill_tasks, method=replace(quick_fpacoh, kappa=kappa), seed=0)
        divergence.append(prior.history["complexity"][-20:].mean() / kappa)
        mean, _ = prior.condition([], []).predict(cube)
        spread.append(mean.std())
    assert divergence[0] > 3 * divergence[1] > 3 * divergence[2]
    assert spread[0] > 2 * spread[2]


def test_fpacoh_map_batch_of_different_sizes_is_refused(hill_tasks):
    methods = [FPacohMap(), FPacohMap(num_steps=7)]
    with pytest.raises(ValueError, match=r"`num_steps` takes the values \[7, 4000\]; [^.]*\.$"):
        meta_train_many(methods, hill_tasks, keys=jr.split(jr.key(0), 2))


def test_fpacoh_map_one_task_is_refused(hill_tasks):
    with pytest.raises(ValueError, match="at least 2 tasks, received 1"):
        FPacohMap().meta_train(hill_tasks.subset([2]), key=jr.key(0))


NUM_DRAWS, NUM_CONTEXT = 2000, 5
LEVELS = np.array([0.5, 0.8, 0.95])
# Standard errors beyond which coverage is not nominal: honest intervals stay within, others do not.
LIMIT = 4


@pytest.fixture(scope="module")
def draws(hill_prior):
    """Functions drawn from the learned prior itself, observed with its own noise.

    Distribution function of one held-out observation given five others, for each draw: with the
    posterior as it is, and with the context of another draw.
    """
    # No refinement: the truth has exactly the learned noise and scale.
    surrogate = eqx.tree_at(
        lambda s: s.spread, hill_prior.surrogate, Spread(jnp.asarray(0.0), jnp.asarray(0.0))
    )
    process, standardiser = surrogate.process, surrogate.standardiser
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(NUM_DRAWS, NUM_CONTEXT + 1, 2))
    marginals = jax.jit(jax.vmap(lambda x: process.marginal(standardiser.x(x))))(x)
    covariance = np.asarray(marginals.covariance)
    covariance = covariance + float(process.noise_variance) * np.eye(NUM_CONTEXT + 1)
    values, vectors = np.linalg.eigh(covariance)
    white = rng.normal(size=(NUM_DRAWS, NUM_CONTEXT + 1))
    y = marginals.mean + np.einsum("nij,nj->ni", vectors * np.sqrt(values)[:, None, :], white)
    y = np.asarray(standardiser.y_mean + standardiser.y_std * y)

    @jax.jit
    @jax.vmap
    def cdf(x, y, truth):
        run = Run(x[:-1], y[:-1], jnp.asarray(NUM_CONTEXT))
        return surrogate.condition(run).cdf(x[-1], truth)

    return np.asarray(cdf(x, y, y[:, -1])), np.asarray(cdf(x, np.roll(y, 1, axis=0), y[:, -1]))


def off_nominal(cdf_values):
    """Distance of the coverage from nominal, in standard errors of a binomial fraction."""
    errors = np.sqrt(LEVELS * (1 - LEVELS) / NUM_DRAWS)
    return np.abs(mp.metrics.coverage(cdf_values, LEVELS) - LEVELS) / errors


def test_fpacoh_map_intervals_cover_when_the_prior_is_the_truth(draws):
    honest, _ = draws
    assert (off_nominal(honest) < LIMIT).all()


def test_fpacoh_map_interval_test_can_fail(draws):
    """Negative controls: half the standard deviation, and a context from another function."""
    honest, shuffled = draws
    overconfident = norm.cdf(2.0 * norm.ppf(np.clip(honest, 1e-12, 1 - 1e-12)))
    assert (off_nominal(overconfident) > LIMIT).all()
    assert (off_nominal(shuffled) > LIMIT).all()
