"""The fitted GP against the same objective, written in NumPy and maximised by SciPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from scipy.spatial.distance import cdist

from metaprior.data import run_of
from metaprior.gp import ConstantMean, SquaredExponential
from metaprior.methods import FittedGP
from metaprior.methods._fitted_gp import fit_process


def log_posterior(parameters, x, y):
    """Log marginal likelihood plus the log priors of the module's table, up to a constant.

    The parameters are mean, ln noise variance, ln variance, ln lengthscales.
    """
    d = x.shape[1]
    noise, variance, lengthscales = parameters[1], parameters[2], np.exp(parameters[3:])
    kernel = np.exp(variance - 0.5 * cdist(x / lengthscales, x / lengthscales, "sqeuclidean"))
    covariance = kernel + (np.exp(noise) + 1e-8) * np.eye(len(y))
    centre = np.sqrt(2) + 0.5 * np.log(d)
    return (
        scipy.stats.multivariate_normal(np.full(len(y), parameters[0]), covariance).logpdf(y)
        - (noise + 4.0) ** 2 / 2
        - variance**2 / 2
        - np.sum((parameters[3:] - centre) ** 2) / (2 * 3)
    )


def best_by_scipy(x, y, num_starts=10):
    d = x.shape[1]
    bounds = [(-3, 3), (np.log(1e-6), 1), (-4, 4), *[(-4, 6)] * d]
    rng = np.random.default_rng(0)
    starts = [rng.uniform([-1, -9, -1, *[-2] * d], [1, 0, 2, *[2] * d]) for _ in range(num_starts)]
    return max(
        -scipy.optimize.minimize(
            lambda p: -log_posterior(p, x, y), start, method="L-BFGS-B", bounds=bounds
        ).fun
        for start in starts
    )


@partial(jax.jit, static_argnums=3)
def fitted(x, y, mask, num_steps):
    process = fit_process(x, y, mask, num_steps=num_steps)
    assert isinstance(process.mean, ConstantMean)
    assert isinstance(process.kernel, SquaredExponential)
    return jnp.concatenate(
        [
            jnp.stack([process.mean.value, process.log_noise_variance]),
            jnp.asarray(process.kernel.log_variance)[None],
            jnp.asarray(process.kernel.log_lengthscale),
        ]
    )


def our_fit(x, y):
    run = run_of(x, y)
    return np.asarray(fitted(run.x, run.y, run.mask, FittedGP().num_steps))


@pytest.mark.parametrize(
    "d, kind",
    [
        (1, "smooth"),
        (1, "noisy"),
        (1, "rough"),
        (1, "few"),
        (2, "smooth"),
        (2, "noisy"),
        (2, "few"),
    ],
)
def test_fitted_gp_fit_is_as_good_as_scipys_best_of_ten(d, kind):
    """Where the run says something: on one that looks like noise in two dimensions, the density
    has many modes, and neither search finds the best of them reliably."""
    rng = np.random.default_rng(d)
    x = rng.uniform(size=(3 if kind == "few" else 14, d))
    y = {
        "smooth": np.sin(3 * x).sum(axis=1),
        "noisy": np.sin(3 * x).sum(axis=1) + 0.2 * rng.normal(size=len(x)),
        "rough": np.sin(25 * x).prod(axis=1),
        "few": x.sum(axis=1),
    }[kind]
    y = (y - y.mean()) / y.std()
    assert log_posterior(our_fit(x, y), x, y) >= best_by_scipy(x, y) - 1e-2


def test_fitted_gp_fit_test_can_fail():
    """Negative control: the starting point itself is far from the optimum."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(14, 2))
    y = np.sin(3 * x).sum(axis=1)
    y = (y - y.mean()) / y.std()
    start = np.array([0.0, -6.0, 0.0, *np.log([0.2, 0.2]) + 0.5 * np.log(2)])
    assert log_posterior(start, x, y) < best_by_scipy(x, y, num_starts=3) - 1.0


def test_fitted_gp_without_data_the_fit_is_the_most_probable_prior():
    fit = our_fit(np.zeros((0, 2)), np.zeros(0))
    expected = [0.0, -4.0, 0.0, *[np.sqrt(2) + 0.5 * np.log(2)] * 2]
    np.testing.assert_allclose(fit, expected, atol=1e-4)


@jax.jit
def predicted(run, test):
    return jax.vmap(FittedGP().from_scratch(2).condition(run).moments)(test)


def test_fitted_gp_predictions_follow_the_units_of_the_run():
    rng = np.random.default_rng(0)
    x, test = rng.uniform(size=(15, 2)), rng.uniform(size=(5, 2))
    y = np.sin(4 * x).sum(axis=1)
    plain, scaled = predicted(run_of(x, y), test), predicted(run_of(x, 500.0 * y - 3e4), test)
    np.testing.assert_allclose(scaled.mean, 500.0 * plain.mean - 3e4, rtol=1e-6)
    np.testing.assert_allclose(scaled.variance, 500.0**2 * plain.variance, rtol=1e-3)
    assert np.median(np.abs(plain.mean - np.sin(4 * test).sum(axis=1))) < 0.1


@pytest.mark.parametrize("y", [[5.0], [3.0, 3.0, 3.0], [0.0, 1.0, 1e6], [1.0, 2.0, 2.5]], ids=str)
def test_fitted_gp_awkward_runs_give_finite_predictions(y):
    x = np.full((len(y), 2), 0.5)  # all at one place
    moments = predicted(
        run_of(x, np.array(y)), jnp.array([[0.5, 0.5], [0.1, 0.9]] * 2 + [[1, 1.0]])
    )
    assert np.isfinite(moments.mean).all()
    assert np.isfinite(moments.variance).all() and (moments.variance > 0).all()
