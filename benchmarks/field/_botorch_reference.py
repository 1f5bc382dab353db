"""BoTorch over the rows of a table: SingleTaskGP and RGPE; imported only where it is installed."""

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.analytic import _log_ei_helper
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from jaxtyping import Float

from benchmarks.field._pools import Pool
from benchmarks.field._runs import GaussianPredictions, Think
from metaprior.data import Tasks

# Functions drawn from each model, by which RGPE compares how well models rank the run.
NUM_DRAWS = 256
JITTER = 1e-8


def fitted(x: np.ndarray, y: np.ndarray) -> SingleTaskGP:
    """BoTorch's default model and fit: Matern 5/2 with ARD, outputs standardised."""
    model = SingleTaskGP(torch.tensor(x), torch.tensor(y)[:, None])
    try:
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    except ModelFittingError:
        model.eval()  # as it was initialised
    return model


def units(model: SingleTaskGP) -> tuple[float, float]:
    """Mean and standard deviation by which the model standardises."""
    transform = model.outcome_transform
    return float(transform.means), float(transform.stdvs)


def predictions_of(model: SingleTaskGP) -> GaussianPredictions:
    """Means and standard deviations of observations."""

    def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            posterior = model.posterior(torch.tensor(x), observation_noise=True)
            return posterior.mean[:, 0].numpy(), posterior.variance[:, 0].sqrt().numpy()

    return GaussianPredictions(moments)


def single_task_gp(x: np.ndarray, y: np.ndarray, pool: Pool):
    """What `SingleTaskGP` predicts after a fit to the run, and log expected improvement."""
    model = fitted(x, y)
    with torch.no_grad():
        acquisition = LogExpectedImprovement(model, torch.as_tensor(y.max()))
        scores = acquisition(torch.as_tensor(pool.x)[:, None]).numpy()
    return predictions_of(model), scores


def rank_weighted(tasks: Tasks) -> Think:
    """RGPE (Feurer, Letham and Bakshy 2018) with a `SingleTaskGP` for each past run and the new
    one, each in units of its own run, weighted by how well they rank the run.

    Before three observations all past models weigh the same, and the largest mean is asked.
    """
    past = [fitted(x[m], y[m]) for x, y, m in zip(tasks.x, tasks.y, tasks.mask, strict=True)]
    scales = [units(model) for model in past]
    # Past models at all rows of a pool, computed once for the pool.
    remembered: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def past_at(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances under each past model, in its units."""
        with torch.no_grad():
            found = [model.posterior(torch.tensor(x)) for model in past]
        means = [(p.mean[:, 0].numpy() - m) / s for p, (m, s) in zip(found, scales, strict=True)]
        spread = [p.variance[:, 0].numpy() / s**2 for p, (_, s) in zip(found, scales, strict=True)]
        return np.stack(means), np.stack(spread)

    def think(x: np.ndarray, y: np.ndarray, pool: Pool, rng: np.random.Generator):
        if pool.name not in remembered:
            remembered[pool.name] = past_at(pool.x)
        if len(y) < 3 or np.ptp(y) == 0.0:
            return None, remembered[pool.name][0].mean(axis=0)
        target = fitted(x, y)
        level, unit = units(target)
        losses = [_past_loss(model, x, y, rng) for model in past]
        weights = _weights(np.stack([*losses, _own_loss(target, x, y, rng)]), len(y), rng)

        def moments(at: np.ndarray, known: tuple[np.ndarray, np.ndarray]):
            with torch.no_grad():
                own = target.posterior(torch.as_tensor(at))
            mean = weights[:-1] @ known[0]
            mean = mean + weights[-1] * (own.mean[:, 0].numpy() - level) / unit
            variance = weights[:-1] ** 2 @ known[1]
            return mean, variance + weights[-1] ** 2 * own.variance[:, 0].numpy() / unit**2

        noise = float(target.likelihood.noise.detach()) * unit**2
        mean, variance = moments(pool.x, remembered[pool.name])
        std = torch.as_tensor(np.sqrt(np.maximum(variance, 1e-12)))
        best = (y.max() - level) / unit
        scores = _log_ei_helper((torch.as_tensor(mean) - best) / std) + std.log()

        def observed(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mean, variance = moments(at, past_at(at))
            return level + unit * mean, np.sqrt(unit**2 * variance + noise)

        return GaussianPredictions(observed), scores.numpy()

    return think


def _past_loss(model: SingleTaskGP, x, y, rng) -> Float[np.ndarray, " draws"]:
    """How many pairs of the run each draw from a past model ranks wrongly."""
    with torch.no_grad():
        posterior = model.posterior(torch.tensor(x))
        mean = posterior.mean[:, 0].numpy()
        covariance = posterior.distribution.covariance_matrix.numpy()
    scale = max(float(np.mean(np.diag(covariance))), 1e-12)
    root = np.linalg.cholesky(covariance + (1e-6 * scale + JITTER) * np.eye(len(y)))
    drawn = mean + (root @ rng.standard_normal((len(y), NUM_DRAWS))).T
    return _misranked(drawn[:, :, None] < drawn[:, None, :], y)


def _own_loss(model: SingleTaskGP, x, y, rng) -> Float[np.ndarray, " draws"]:
    """The same for the model of the run, each point predicted from all others, its
    hyper-parameters kept (equations 5.12 of Rasmussen and Williams for what is left out)."""
    with torch.no_grad():
        at = torch.tensor(x)
        own = model.train_targets.numpy()
        noise = float(model.likelihood.noise)
        covariance = model.covar_module(at).to_dense().numpy() + noise * np.eye(len(y))
        constant = float(model.mean_module.constant)
    inverse = np.linalg.inv(covariance)
    variance = 1.0 / np.diag(inverse)
    mean = own - (inverse @ (own - constant)) * variance
    noise = rng.standard_normal((NUM_DRAWS, len(y)))
    drawn = mean + noise * np.sqrt(variance)
    return _misranked(drawn[:, :, None] < own[None, None, :], own)


def _misranked(below: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " draws"]:
    return np.sum(below ^ (y[:, None] < y[None, :])[None], axis=(1, 2)).astype(float)


def _weights(losses: np.ndarray, num: int, rng) -> Float[np.ndarray, " models"]:
    """In how many draws each model ranks best; the new run's model wins ties. A past model whose
    median loss is above the 95 % quantile of the new run's own is left out."""
    allowed = np.median(losses, axis=1) <= np.quantile(losses[-1], 0.95)
    allowed[-1] = True
    losses = np.where(allowed[:, None], losses, np.inf)
    best = losses == losses.min(axis=0)
    winners = [len(losses) - 1 if tied[-1] else rng.choice(np.flatnonzero(tied)) for tied in best.T]
    return np.bincount(winners, minlength=len(losses)) / losses.shape[1]
