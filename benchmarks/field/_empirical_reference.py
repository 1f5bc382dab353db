r"""An empirical GP: mean and covariance over past tasks themselves, where all share a grid.

    symbol              meaning                                                       shape
    Z                   the configurations that every past task has tried             (n, d)
    $\hat\mu, \hat\Sigma$   mean and covariance of their values over past tasks       (n,), (n, n)
    k                   a Matern 5/2 kernel with ARD of all past runs together
    s                   how far $\hat\Sigma$ is drawn to k, in (0, 1)

After Lin et al., "Empirical Gaussian Processes", arXiv:2602.12082: the prior at $Z$ is
$\mathcal N(\hat\mu, \Sigma)$ with $\Sigma = (1 - s) \hat\Sigma + s\, \tau K$, $\tau$ matching the
traces; elsewhere it is extended by k,

$$ f(x) = c + A_x (f(Z) - c) + \text{residual}, \qquad A_x = k(x, Z)\, K^{-1}. $$

On a complete grid their EM ends after one step, in these moments. It is our own code, not BoTorch's
`botorch.models.empirical_gps`, which BoTorch 0.18 does not have. $s$ is chosen by the likelihood of
past tasks left out one at a time.
"""

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import multivariate_normal

from benchmarks.field._hyperbo_reference import DTYPE, JITTER, fit, log_improvement, matern
from benchmarks.field._pools import Pool
from benchmarks.field._runs import GaussianPredictions, Think
from metaprior.data import Tasks

SHRINKAGES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


class SharedGP(torch.nn.Module):
    """Constant mean and ARD kernel, the same for all tasks."""

    def __init__(self, dimension: int):
        super().__init__()
        self.constant = torch.nn.Parameter(torch.zeros((), dtype=DTYPE))
        self.log = torch.nn.Parameter(torch.tensor([0.0, -4.0], dtype=DTYPE))
        self.log_lengthscale = torch.nn.Parameter(torch.full((dimension,), -0.5, dtype=DTYPE))

    def moments(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and covariance of the function at points."""
        return self.constant.expand(x.shape[:-1]), self.covariance(x, x)

    def covariance(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Between points."""
        scale = torch.exp(-self.log_lengthscale)
        return self.log[0].exp() * matern(one * scale, other * scale)

    @property
    def noise(self) -> torch.Tensor:
        """Variance of the noise, kept away from zero."""
        return self.log[1].exp() + JITTER


def shrunk(
    values: Float[np.ndarray, "tasks n"], kernel: Float[np.ndarray, "n n"], share: float
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]]:
    """Mean and covariance over tasks, the covariance drawn to the kernel."""
    covariance = np.cov(values.T, bias=True)
    matched = kernel * np.trace(covariance) / np.trace(kernel)
    return values.mean(axis=0), (1.0 - share) * covariance + share * matched


def chosen_shrinkage(values: np.ndarray, kernel: np.ndarray, noise: float) -> float:
    """The one under which past tasks, left out one at a time, are likeliest."""

    def score(share: float) -> float:
        total = 0.0
        for left in range(len(values)):
            mean, covariance = shrunk(np.delete(values, left, axis=0), kernel, share)
            covariance = covariance + noise * np.eye(len(mean))
            total += multivariate_normal(mean, covariance).logpdf(values[left])
        return total

    return max(SHRINKAGES, key=score)


def empirical(tasks: Tasks) -> Think:
    """The empirical prior given the run, and log expected improvement; before the first value, over
    the largest mean."""
    prior = fit(tasks, lambda dimension: SharedGP(dimension))
    length = int(tasks.lengths[0])
    grid, values = tasks.x[0, :length], (tasks.y[:, :length] - prior.level) / prior.unit

    def k(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return prior.model.covariance(torch.tensor(one), torch.tensor(other)).numpy()

    noise, constant = float(prior.model.noise), float(prior.model.constant)
    kernel = k(grid, grid) + JITTER * np.eye(length)
    factor = cho_factor(kernel)
    mean, covariance = shrunk(values, kernel, chosen_shrinkage(values, kernel, noise))
    # What f(Z) has beyond the kernel's own covariance, extended by A on both sides.
    weights, inner = cho_solve(factor, mean - constant), covariance - kernel
    inner = cho_solve(factor, cho_solve(factor, inner).T)

    def mean_at(at: np.ndarray) -> np.ndarray:
        return constant + k(at, grid) @ weights

    def covariance_at(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return k(one, other) + k(one, grid) @ inner @ k(grid, other)

    def think(x: np.ndarray, y: np.ndarray, pool: Pool, rng: np.random.Generator):
        own = (y - prior.level) / prior.unit
        known = covariance_at(x, x) + noise * np.eye(len(y))
        alpha, root = np.zeros(0), None
        if len(y):
            root = np.linalg.cholesky(known)
            alpha = np.linalg.solve(root, own - mean_at(x))

        def function(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            at_grid = k(at, grid)
            variance = np.diag(kernel)[0] - JITTER + np.sum((at_grid @ inner) * at_grid, axis=1)
            if root is None:
                return mean_at(at), np.maximum(variance, 1e-10)
            across = np.linalg.solve(root, covariance_at(x, at))
            variance = variance - np.sum(across**2, axis=0)
            return mean_at(at) + across.T @ alpha, np.maximum(variance, 1e-10)

        def observed(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mean, variance = function(at)
            return prior.level + prior.unit * mean, prior.unit * np.sqrt(variance + noise)

        now, variance = function(pool.x)
        best = own.max() if len(y) else now.max()
        return GaussianPredictions(observed), log_improvement(now, np.sqrt(variance), best)

    return think
