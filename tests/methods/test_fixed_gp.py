"""The fixed GP against scikit-learn's, on data standardised by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import metaprior as mp
from metaprior.data import run_of
from metaprior.methods import FixedGP

METHOD = FixedGP(lengthscale=0.4, variance=1.7, noise_variance=0.03)


def sklearn_predict(d, x, y, test):
    """Mean, standard deviation of f, and of y, in standardised units, at the points `test`."""
    kernel = ConstantKernel(1.7, "fixed") * RBF(0.4 * np.sqrt(d), "fixed")
    settings: dict[str, Any] = dict(alpha=0.03 + 1e-8, optimizer=None)
    gp: Any = GaussianProcessRegressor(kernel, **settings)
    mean, std = (gp.fit(x, y) if len(y) else gp).predict(test, return_std=True)
    return mean, std, np.sqrt(std**2 + 0.03)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_fixed_gp_posterior_matches_sklearn(d, direction):
    rng = np.random.default_rng(d)
    low, high = -2.0, 6.0
    space = mp.Space(**{f"x{j}": mp.Real(low, high) for j in range(d)})
    runs = [(rng.uniform(low, high, (m, d)), 30.0 + 5.0 * rng.normal(size=m)) for m in (2, 9, 4)]
    prior = mp.learn(mp.Tasks.from_runs(runs, space=space, direction=direction), method=METHOD)

    past_x = np.concatenate([(x - low) / (high - low) for x, _ in runs])
    past_y = np.concatenate([y for _, y in runs])

    def standardise(x):
        return ((x - low) / (high - low) - past_x.mean(axis=0)) / past_x.std(axis=0)

    test = rng.uniform(low, high, (5, d))
    for m in (0, 1, 7):
        x, y = rng.uniform(low, high, (m, d)), 30.0 + 5.0 * rng.normal(size=m)
        mean, function_std, std = sklearn_predict(
            d, standardise(x), (y - past_y.mean()) / past_y.std(), standardise(test)
        )
        posterior = prior.condition(x, y)
        got_mean, got_std = posterior.predict(test)
        np.testing.assert_allclose(got_mean, past_y.mean() + past_y.std() * mean, rtol=1e-7)
        np.testing.assert_allclose(got_std, past_y.std() * std, rtol=1e-6)
        _, got_function_std = posterior.predict(test, noiseless=True)
        np.testing.assert_allclose(got_function_std, past_y.std() * function_std, rtol=1e-6)


@jax.jit
def from_scratch(run, test):
    return jax.vmap(METHOD.from_scratch(2).condition(run).moments)(test)


def test_self_standardised_gp_standardises_by_the_run():
    """Inputs as a uniform distribution would be: mean 1/2, variance 1/12."""
    rng = np.random.default_rng(0)
    x, y, test = rng.uniform(size=(6, 2)), 100 + 7 * rng.normal(size=6), rng.uniform(size=(4, 2))
    moments = from_scratch(run_of(x, y), test)
    mean, std, _ = sklearn_predict(
        2, (x - 0.5) * np.sqrt(12), (y - y.mean()) / y.std(), (test - 0.5) * np.sqrt(12)
    )
    np.testing.assert_allclose(moments.mean, y.mean() + y.std() * mean, rtol=1e-7)
    np.testing.assert_allclose(moments.function_variance, (y.std() * std) ** 2, rtol=1e-5)
    np.testing.assert_allclose(moments.noise_variance, 0.03 * y.var(), rtol=1e-12)


@pytest.mark.parametrize(
    "y, level", [([], 0.0), ([41.0], 41.0), ([1e6, 1e6, 1e6], 1e6), ([0.0, 0.0], 0.0)]
)
def test_self_standardised_gp_has_scale_one_where_the_run_has_none(y, level):
    x = np.linspace(0.1, 0.2, len(y))[:, None] * np.ones((1, 2))
    moments = from_scratch(run_of(x, np.array(y)), jnp.array([[0.9, 0.9]]))
    np.testing.assert_allclose(moments.mean, [level], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(moments.noise_variance, [0.03], rtol=1e-12)
    assert 0 < moments.function_variance[0] <= 1.7 + 1e-12
