r"""HyperBO's prior in PyTorch: one deep-kernel GP with a neural mean, of all past runs together.

    symbol     meaning                                                       shape
    phi        features, a network with tanh                                 (n, k)
    m          mean: linear in the features                                  (n,)
    k          $a\,\mathrm{Matern}_{5/2}(\phi, \phi') + b$: b is the level of a task

Wang, Dahl, Swersky, Lee, Nado, Gilmer, Snoek and Ghahramani, "Pre-trained Gaussian processes for
Bayesian optimization", JMLR 2024. They minimise the negative log marginal likelihood of the past
runs or, where all of them have the same configurations, the empirical KL divergence. There the two
have one minimiser, since with $\hat\mu, \hat\Sigma$ the mean and covariance over N tasks

$$ -\tfrac1N \sum_i \ln \mathcal N(y_i; m, K)
   = \mathrm{KL}\big(\mathcal N(\hat\mu, \hat\Sigma) \,\|\, \mathcal N(m, K)\big) + c $$

so that training on a grid is both. New tasks are asked with the trained prior as it is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from botorch.acquisition.analytic import _log_ei_helper

from benchmarks.field._pools import Pool
from benchmarks.field._runs import GaussianPredictions, Think
from metaprior.data import Tasks

DTYPE = torch.float64
WIDTH, NUM_FEATURES = 32, 8
JITTER = 1e-6
LEARNING_RATE, MAX_STEPS = 5e-3, 6000
# Training ends when the mean loss of so many steps is not lower by `TOLERANCE` than that before.
WINDOW, TOLERANCE = 250, 2e-3


def matern(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The Matern 5/2 correlation of points in units of the lengthscales."""
    squares = (one**2).sum(-1)[..., :, None] + (other**2).sum(-1)[..., None, :]
    squares = squares - 2.0 * one @ other.transpose(-1, -2)
    r = math.sqrt(5.0) * (squares.clamp_min(0.0) + 1e-12).sqrt()
    return (1.0 + r + r**2 / 3.0) * torch.exp(-r)


def log_improvement(mean: np.ndarray, std: np.ndarray, best: float) -> np.ndarray:
    """Log expected improvement of Gaussian predictions on `best`."""
    u = torch.as_tensor((mean - best) / std)
    return _log_ei_helper(u).numpy() + np.log(std)


class DeepKernelGP(torch.nn.Module):
    """The prior, on inputs in the unit cube and values in units of all past values."""

    def __init__(self, dimension: int, seed: int):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.features = torch.nn.Sequential(
                torch.nn.Linear(dimension, WIDTH, dtype=DTYPE),
                torch.nn.Tanh(),
                torch.nn.Linear(WIDTH, WIDTH, dtype=DTYPE),
                torch.nn.Tanh(),
                torch.nn.Linear(WIDTH, NUM_FEATURES, dtype=DTYPE),
            )
            self.mean = torch.nn.Linear(NUM_FEATURES, 1, dtype=DTYPE)
        # Logarithms of a, b, the noise variance and the lengthscales of the features.
        self.log = torch.nn.Parameter(torch.tensor([0.0, -1.0, -4.0], dtype=DTYPE))
        self.log_lengthscale = torch.nn.Parameter(torch.zeros(NUM_FEATURES, dtype=DTYPE))

    def moments(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and covariance of the function at points, with leading dimensions of tasks."""
        phi = self.features(x)
        return self.mean(phi)[..., 0], self.covariance(phi, phi)

    def covariance(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Between features."""
        scale = torch.exp(-self.log_lengthscale)
        return self.log[0].exp() * matern(one * scale, other * scale) + self.log[1].exp()

    @property
    def noise(self) -> torch.Tensor:
        """Variance of the noise, kept away from zero."""
        return self.log[2].exp() + JITTER


def negative_log_likelihood(
    model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Of all runs, per observation; runs with the same points share one factorisation.

    - `x`: `(t, n, d)`, or `(1, n, d)` if it is the same in all; `y`, `mask`: `(t, n)`.
    """
    mean, covariance = model.moments(x)
    inside = mask[: len(x)]
    pairs = inside[:, :, None] & inside[:, None, :]
    # Rows that are padding become those of the identity, which add nothing.
    diagonal = torch.where(inside, model.noise, torch.ones((), dtype=DTYPE))
    root = torch.linalg.cholesky(covariance * pairs + torch.diag_embed(diagonal))
    residual = (y - mean) * mask
    if len(x) == 1:
        white = torch.linalg.solve_triangular(root[0], residual.T, upper=False)
        log_determinant = len(y) * root[0].diagonal().log().sum()
    else:
        white = torch.linalg.solve_triangular(root, residual[..., None], upper=False)
        log_determinant = root.diagonal(dim1=1, dim2=2).log().sum()
    count = mask.sum()
    total = 0.5 * (white**2).sum() + log_determinant + 0.5 * count * math.log(2 * math.pi)
    return total / count


@dataclass(frozen=True)
class Trained:
    """A prior, the units of all past values, and the loss of every step."""

    model: torch.nn.Module
    level: float
    unit: float
    losses: list[float]


def trained(tasks: Tasks, seed: int, max_steps: int = MAX_STEPS) -> Trained:
    """The deep-kernel GP of all runs together."""
    return fit(tasks, lambda dimension: DeepKernelGP(dimension, seed), max_steps)


def fit(
    tasks: Tasks, initial: Callable[[int], torch.nn.Module], max_steps: int = MAX_STEPS
) -> Trained:
    """Adam on all runs at once, until the loss no longer falls.

    - `initial`: a prior with `moments` and `noise`, from the number of inputs.
    """
    length = int(tasks.lengths.max())  # the rest is padding
    inside, points = tasks.mask[:, :length], tasks.x[:, :length]
    values = tasks.y[tasks.mask]
    level, unit = float(values.mean()), float(values.std()) or 1.0
    mask = torch.tensor(inside)
    y = torch.tensor(np.where(inside, (tasks.y[:, :length] - level) / unit, 0.0))
    points = np.where(inside[..., None], points, 0.0)
    same = bool(inside.all()) and bool(np.all(points == points[:1]))
    x = torch.tensor(points[:1] if same else points)
    model = initial(x.shape[-1])
    optimiser = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    losses: list[float] = []
    while len(losses) < max_steps and not _has_converged(losses):
        optimiser.zero_grad()
        loss = negative_log_likelihood(model, x, y, mask)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimiser.step()
        losses.append(float(loss.detach()))
    return Trained(model.requires_grad_(False), level, unit, losses)


def _has_converged(losses: list[float]) -> bool:
    if len(losses) < 2 * WINDOW or len(losses) % WINDOW:
        return False
    before, now = np.mean(losses[-2 * WINDOW : -WINDOW]), np.mean(losses[-WINDOW:])
    return bool(before - now < TOLERANCE)


def by_prior(prior: Trained) -> Think:
    """The prior given the run, and log expected improvement; before the first value, over the
    largest mean."""
    model = prior.model

    def think(x: np.ndarray, y: np.ndarray, pool: Pool, rng: np.random.Generator):
        own = torch.tensor((y - prior.level) / prior.unit)
        phi = model.features(torch.tensor(x))
        covariance = model.covariance(phi, phi) + model.noise * torch.eye(len(y), dtype=DTYPE)
        root = torch.linalg.cholesky(covariance)
        white = torch.linalg.solve_triangular(
            root, (own - model.mean(phi)[..., 0])[:, None], upper=False
        )

        def function(at: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
            there = model.features(torch.tensor(at))
            across = torch.linalg.solve_triangular(root, model.covariance(phi, there), upper=False)
            mean = model.mean(there)[:, 0] + (across.T @ white)[:, 0]
            prior_variance = model.log[0].exp() + model.log[1].exp()
            return mean, (prior_variance - (across**2).sum(0)).clamp_min(1e-10)

        def observed(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mean, variance = function(at)
            std = (variance + model.noise).sqrt()
            return prior.level + prior.unit * mean.numpy(), prior.unit * std.numpy()

        mean, variance = function(pool.x)
        best = own.max() if len(y) else mean.max()
        scores = log_improvement(mean.numpy(), variance.sqrt().numpy(), float(best))
        return GaussianPredictions(observed), scores

    return think
