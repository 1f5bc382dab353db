"""F-PACOH-VI as a method: mixtures over drawn priors, and what is left without variance."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

import metaprior as mp
from metaprior.data import Run
from metaprior.methods import FPacohVI
from metaprior.methods._fpacoh_vi import GPMixtureSurrogate
from metaprior.processes import (
    DescribedProcess,
    SquaredExponential,
    StudentTProcess,
    gaussian_process,
)

QUICK = FPacohVI(num_steps=60, learning_rate=1e-2, num_priors=4, num_functions=4)


@pytest.fixture(scope="module")
def tasks(hill_space, hill_runs):
    return mp.Tasks.from_runs(hill_runs, space=hill_space)


@pytest.fixture(scope="module")
def prior(tasks):
    return mp.learn(tasks, method=replace(QUICK, initial_std=0.05), seed=0)


RUN_X = np.array([[0.1, 5.0], [-0.5, 2.0], [0.6, 7.0]])
RUN_Y = np.array([1.2, 0.3, 1.0])


@pytest.mark.slow
def test_fpacoh_vi_without_variance_predicts_as_its_mean_prior(prior):
    """All priors that are drawn are one, and the mixture is the posterior of F-PACOH-MAP."""
    dirac = eqx.tree_at(
        lambda s: s.hyper_posterior.log_std, prior.surrogate, replace_fn=lambda s: s - jnp.inf
    )
    single = mp.methods.GPSurrogate(dirac.hyper_posterior.mean, dirac.standardiser, dirac.spread)
    run = Run(jnp.asarray(prior.space.encode(RUN_X)), jnp.asarray(RUN_Y), jnp.asarray(3))
    x, y = jnp.asarray([0.4, 0.3]), jnp.asarray(0.7)

    @eqx.filter_jit
    def both(surrogate):
        posterior = surrogate.condition(run)
        return *posterior.moments(x), posterior.log_density(x, y), posterior.cdf(x, y)

    np.testing.assert_allclose(both(dirac), both(single), rtol=1e-10)
    assert not np.allclose(both(prior.surrogate), both(single), rtol=1e-3)


@pytest.mark.slow
def test_fpacoh_vi_drawn_priors_disagree_more_where_the_hyper_posterior_is_wider(prior):
    def disagreement(widening):
        wider = eqx.tree_at(
            lambda s: s.hyper_posterior.log_std,
            prior.surrogate,
            replace_fn=lambda s: s + jnp.log(widening),
        )
        posterior = wider.condition(Run(jnp.zeros((4, 2)), jnp.zeros(4), jnp.asarray(0)))
        x = jnp.asarray([0.9, 0.1])
        each = eqx.filter_vmap(lambda member: member.moments(x).mean)(posterior.members)
        return float(np.std(each))

    assert disagreement(0.1) < disagreement(1.0) < disagreement(3.0)


@pytest.mark.slow
def test_fpacoh_vi_density_and_cdf_against_numerical_integration(prior):
    """One density with several components: its integral is one, and up to a point is the CDF."""
    posterior = prior.condition(RUN_X, RUN_Y)
    x = np.array([[-0.9, 9.0]])
    mean, std = posterior.predict(x)

    def density(y):
        return float(np.exp(posterior.log_density(x, np.array([y])))[0])

    low, high = mean[0] - 12 * std[0], mean[0] + 12 * std[0]
    total, _ = integrate.quad(density, low, high, points=[mean[0]], limit=100)
    np.testing.assert_allclose(total, 1.0, rtol=1e-6)
    first, _ = integrate.quad(lambda y: y * density(y), low, high, points=[mean[0]], limit=100)
    np.testing.assert_allclose(first, mean[0], atol=1e-6 * std[0])
    second, _ = integrate.quad(
        lambda y: (y - mean[0]) ** 2 * density(y), low, high, points=[mean[0]], limit=100
    )
    np.testing.assert_allclose(second, std[0] ** 2, rtol=1e-5)
    at = mean[0] + 0.7 * std[0]
    below, _ = integrate.quad(density, low, at, points=[mean[0]], limit=100)
    np.testing.assert_allclose(posterior.cdf(x, np.array([at]))[0], below, atol=1e-6)


@pytest.mark.slow
def test_fpacoh_vi_samples_have_the_moments_of_the_mixture(prior):
    """4000 joint draws at two points: means and variances within four standard errors."""
    posterior = prior.condition(RUN_X, RUN_Y)
    x = np.array([[-0.9, 9.0], [0.8, 1.0]])
    mean, std = posterior.predict(x, noiseless=True)
    drawn = posterior.sample(x, 4000, seed=0)
    np.testing.assert_allclose((drawn.mean(0) - mean) / std, 0.0, atol=4 / np.sqrt(4000))
    # Kurtosis of a mixture may be above that of a normal: a factor of two for safety.
    np.testing.assert_allclose(drawn.var(0) / std**2, 1.0, atol=8 * np.sqrt(2 / 4000))


def hyper_prior_of(prior: mp.Prior) -> str:
    """What a loaded prior remembers of its hyper-prior."""
    assert isinstance(prior.method, FPacohVI)
    assert isinstance(prior.method.hyper_prior, DescribedProcess)
    return prior.method.hyper_prior.description


@pytest.mark.slow
def test_fpacoh_vi_any_hyper_prior_trains_and_is_remembered_by_description(tasks, tmp_path):
    kernel = SquaredExponential(jnp.log(0.3), jnp.log(1.0))
    heavy = StudentTProcess(gaussian_process(kernel), 4.0)
    learned = mp.learn(tasks, method=replace(QUICK, num_steps=5, hyper_prior=heavy))
    learned.save(tmp_path / "prior")
    loaded = mp.load(tmp_path / "prior")
    described = hyper_prior_of(loaded)
    assert "StudentTProcess" in described and "4.0" in described
    expected = learned.condition(RUN_X, RUN_Y).predict(RUN_X + 0.05)
    np.testing.assert_array_equal(loaded.condition(RUN_X, RUN_Y).predict(RUN_X + 0.05), expected)
    # A second round trip keeps the description as it is.
    loaded.save(tmp_path / "again")
    assert hyper_prior_of(mp.load(tmp_path / "again")) == described
    with pytest.raises(ValueError, match="give the process itself as `hyper_prior`"):
        mp.learn(tasks, method=loaded.method)


def test_fpacoh_vi_unknown_estimator_is_named(tasks):
    with pytest.raises(ValueError, match="no score estimator 'magic'; give one of 'spectral'"):
        mp.learn(tasks, method=replace(QUICK, score_estimator="magic"))


@pytest.mark.slow
def test_fpacoh_vi_hyper_posterior_learns_its_width(tasks):
    """Parameters begin equally wide and end up differently; training is not frozen."""
    learned = mp.learn(tasks, method=replace(QUICK, num_steps=150, initial_std=0.2), seed=0)
    assert isinstance(learned.surrogate, GPMixtureSurrogate)
    std = np.exp(np.asarray(learned.surrogate.hyper_posterior.log_std))
    assert std.max() / std.min() > 1.5
    assert learned.history["fit"][-20:].mean() < learned.history["fit"][:20].mean()
