"""The fitted GP against BoTorch's default single-task model on one smooth run.

BoTorch keeps the output variance at one and its log-normal priors are densities of the parameters
themselves rather than of their logarithms, so the fits differ a little; the predictions of a
smooth function from 30 points must not.
"""

import jax
import numpy as np
import pytest
import scipy.stats
from scipy.spatial.distance import cdist

pytestmark = pytest.mark.oracle

torch = pytest.importorskip("torch", reason="`make oracle` installs torch")

from benchmarks._botorch_reference import ask  # noqa: E402
from metaprior.data import run_of  # noqa: E402
from metaprior.methods import FittedGP  # noqa: E402


def smooth(x):
    return np.sin(3 * x[:, 0]) + np.cos(4 * x[:, 1]) * x[:, 0] + 5.0


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(30, 2))
    return x, smooth(x), rng.uniform(size=(200, 2))


@pytest.fixture(scope="module")
def botorch_model(data):
    x, y, _ = data
    return ask(x, y, np.array([[0.0, 0.0], [1.0, 1.0]]), num_restarts=1, raw_samples=8).model


@pytest.fixture(scope="module")
def our_posterior(data):
    x, y, _ = data
    surrogate = FittedGP().from_scratch(2)
    return jax.jit(lambda run: surrogate.condition(run))(run_of(x, y))


def test_fitted_gp_predictions_agree_with_botorch_on_a_smooth_function(
    data, botorch_model, our_posterior
):
    """Root mean squared difference below 3 % of the spread of the function, and no larger error."""
    _, y, test = data
    ours = np.asarray(jax.vmap(our_posterior.moments)(test).mean)
    with torch.no_grad():
        theirs = botorch_model.posterior(torch.as_tensor(test)).mean.squeeze(-1).numpy()
    assert np.sqrt(np.mean((ours - theirs) ** 2)) < 0.03 * y.std()
    error, their_error = (np.sqrt(np.mean((p - smooth(test)) ** 2)) for p in (ours, theirs))
    assert error < 1.2 * their_error


def log_marginal_likelihood(x, y, mean, lengthscales, variance, noise_variance):
    scaled = x / lengthscales
    kernel = variance * np.exp(-0.5 * cdist(scaled, scaled, "sqeuclidean"))
    covariance = kernel + noise_variance * np.eye(len(y))
    return scipy.stats.multivariate_normal(np.full(len(y), mean), covariance).logpdf(y)


def test_fitted_gp_likelihood_is_not_worse_than_botorch(data, botorch_model, our_posterior):
    x, y, _ = data
    y = (y - y.mean()) / y.std()
    process = our_posterior.conditioned.process
    ours = log_marginal_likelihood(
        x,
        y,
        float(process.mean.value),
        np.exp(process.kernel.log_lengthscale),
        float(np.exp(process.kernel.log_variance)),
        float(process.noise_variance) + 1e-8,
    )
    with torch.no_grad():
        theirs = log_marginal_likelihood(
            x,
            # BoTorch standardises with the denominator n - 1.
            y * np.sqrt((len(y) - 1) / len(y)),
            botorch_model.mean_module.constant.item(),
            botorch_model.covar_module.lengthscale.squeeze(0).numpy(),
            1.0,
            botorch_model.likelihood.noise.item(),
        )
    assert ours > theirs - 0.5
