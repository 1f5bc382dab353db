"""The ensemble against its members, one by one, and mixtures against arithmetic by hand."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

import metaprior as mp
from metaprior.data import Standardiser, run_of
from metaprior.gp import ConstantMean, GaussianProcess, SquaredExponential, condition
from metaprior.methods import Ensemble, FixedGP, GPPosterior, LearnedGP
from metaprior.methods._mixture import MixturePosterior

BASE = LearnedGP(num_steps=40, learning_rate=3e-2, batch_size=4)
X = np.random.default_rng(5).uniform(size=(4, 2))


@pytest.fixture(scope="module")
def tasks(hill_space, hill_runs):
    return mp.Tasks.from_runs(hill_runs, space=hill_space)


@pytest.fixture(scope="module")
def surrogate(tasks):
    return Ensemble(BASE, 3).meta_train(tasks, key=jr.key(0))


def run_on(tasks, num):
    return run_of(tasks.x[3][:num], tasks.y[3][:num])


@eqx.filter_jit
def conditioned(surrogate, run):
    return surrogate.condition(run)


@pytest.mark.parametrize("num", [pytest.param(0, marks=pytest.mark.slow), 5])
def test_ensemble_predictions_are_the_mixture_of_trainings_one_by_one(surrogate, tasks, num):
    run = run_on(tasks, num)
    posterior = conditioned(surrogate, run)
    alone = [conditioned(BASE.meta_train(tasks, key=key), run) for key in jr.split(jr.key(0), 3)]
    for x in X:
        each = [member.moments(jnp.asarray(x)) for member in alone]
        means = np.array([m.mean for m in each])
        variances = np.array([m.variance for m in each])
        found = posterior.moments(jnp.asarray(x))
        np.testing.assert_allclose(found.mean, means.mean(), rtol=1e-6)
        np.testing.assert_allclose(found.variance, variances.mean() + means.var(), rtol=1e-6)
        y = float(means[0] + 0.5)
        density = stats.norm.pdf(y, means, np.sqrt(variances)).mean()
        np.testing.assert_allclose(
            posterior.log_density(jnp.asarray(x), jnp.asarray(y)), np.log(density), rtol=1e-6
        )
        below = stats.norm.cdf(y, means, np.sqrt(variances)).mean()
        np.testing.assert_allclose(posterior.cdf(jnp.asarray(x), jnp.asarray(y)), below, rtol=1e-6)


def test_ensemble_members_differ(surrogate):
    leaves = jax.tree.leaves(eqx.filter(surrogate.members, eqx.is_inexact_array))
    assert any(len(np.unique(np.asarray(leaf).reshape(3, -1), axis=0)) == 3 for leaf in leaves)


def two_levels(weights):
    """Constant functions of level 0 and 10, known almost for certain."""

    def one(level):
        kernel = SquaredExponential(jnp.zeros(1), jnp.log(1e-6))
        process = GaussianProcess(ConstantMean(level), kernel, jnp.log(1e-6))
        nothing = run_of(np.zeros((0, 1)), np.zeros(0))
        units = Standardiser(jnp.zeros(1), jnp.ones(1), jnp.asarray(0.0), jnp.asarray(1.0))
        return GPPosterior(condition(process, nothing.x, nothing.y, nothing.mask), units)

    return MixturePosterior(eqx.filter_vmap(one)(jnp.array([0.0, 10.0])), jnp.asarray(weights))


def test_ensemble_moments_of_unequal_weights_by_hand():
    found = two_levels([0.8, 0.2]).moments(jnp.array([0.3]))
    np.testing.assert_allclose(found.mean, 2.0)
    # 0.8 * 0.2 * 10^2, and what each level is unsure of.
    np.testing.assert_allclose(found.function_variance, 16.0 + 1e-6)
    np.testing.assert_allclose(found.noise_variance, 1e-6)


def test_ensemble_each_draw_is_of_one_member_in_proportion_to_the_weights():
    posterior, x = two_levels([0.8, 0.2]), jnp.array([[0.2], [0.7]])

    @eqx.filter_jit
    def draw(key):
        paths = jax.vmap(lambda key: jax.vmap(posterior.path(x, key=key))(x))
        return posterior.sample(x, 400, key=key), paths(jr.split(key, 400))

    for values in map(np.asarray, draw(jr.key(0))):
        high = values > 5.0
        assert (high[:, 0] == high[:, 1]).all()
        np.testing.assert_allclose(np.where(high, values - 10.0, values), 0.0, atol=0.01)
        # Four standard errors.
        assert abs(high[:, 0].mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 400)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"base": FixedGP(), "members": 2}, "`base` of Ensemble is FixedGP.*trained by"),
        ({"base": BASE, "members": 0}, "`members` of Ensemble is 0; give a whole number"),
        ({"base": BASE, "members": 1.5}, "`members` of Ensemble is 1.5; give a whole number"),
    ],
)
def test_ensemble_refuses_bad_settings(fields, message):
    # Called by itself: in these tests, wrong types are stopped before it is.
    with pytest.raises((TypeError, ValueError), match=message):
        Ensemble.__post_init__(SimpleNamespace(**fields))  # pyright: ignore
