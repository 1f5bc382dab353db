r"""A non-transfer Gaussian process, averaged over its hyper-parameters by exact evidence.

The same as the averaged GP of `metaprior.methods`:

    what                    how
    lengthscale, noise      a grid, weighted by evidence
    level of the run        values are centred, which costs one of them; some doubt stays
    scale s^2 of the run    inverse-gamma for each of several rates, weighted by evidence

With $y \mid s^2 \sim N(0, s^2 R)$ for the $c$ centred values, of which $c - 1$ are free,
$s^2 \sim \mathrm{IG}(\alpha, \beta)$ and $q = y^\top R^{-1} y$, the evidence is proportional to

$$ |R|^{-1/2} \, \beta^\alpha \, (\beta + q/2)^{-\alpha - (c-1)/2}, $$

and the mean of $s^2$ given the run is $(\beta + q/2) / (\alpha + (c-1)/2 - 1)$.

One eigendecomposition per lengthscale serves all noises.
"""

import math
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._conditioned import ConditionedProcesses, Observed, observed
from metaprior.belief._in_turn import WeightedProcesses, moments_in_turn
from metaprior.belief._kernels import StackedSquaredExponential
from metaprior.belief._linalg import JITTER, LOG_2_PI, eigen
from metaprior.belief._maps import StackedConstant, Unchanged
from metaprior.belief._mixture import BeliefMoments, Group, Groups, logsumexp
from metaprior.belief._processes import GaussianProcesses
from metaprior.belief._weighed import AbstractWeighable, WeighedMembers

# Lengthscales in the unit cube in units of sqrt(d); variances of noise and of what is left of the
# level after centring, relative to that of the function.
LENGTHSCALES = np.array([0.1, 0.2, 0.4, 0.8])
NOISES = np.array([1e-6, 1e-4, 1e-2])
LEVEL_VARIANCE = 1.0
# Shape, and rates in units of past runs: a run may vary far less than past ones did. A scale that
# is far larger needs no rate of its own: there the data outweigh any of these. Small rates are less
# likely, so that two values that happen to be equal do not prove a flat function.
SHAPE = 2.0
RATES = 10.0 ** np.array([0.0, -1.0, -2.0, -3.0, -4.0, -6.0])
RATE_WEIGHTS = np.sqrt(RATES) / np.sum(np.sqrt(RATES))
LOG_RATE_WEIGHTS = np.log(np.sqrt(RATES) / np.sum(np.sqrt(RATES)) * RATES**SHAPE)


@dataclass(frozen=True)
class AveragedBelief(AbstractBelief, AbstractWeighable):
    """The averaged GP: of the past it uses only the mean and the spread of the values.

    - `y_mean`, `y_std`: of all past values together.
    """

    y_mean: float
    y_std: float

    def groups(self, x, y) -> Groups:
        processes = _grid(x.shape[1])
        return (Group(*self._conditioned(processes, self._observed(processes, x, y))),)

    def in_turn(self, x, y) -> BeliefMoments:
        processes = _grid(x.shape[1])
        run = self._observed(processes, x, y)
        return moments_in_turn(partial(self._conditioned, processes), processes, run)

    def weighed(self, x, y) -> WeighedMembers:
        """Members with the evidence of the values as they are, their level uncertain."""
        processes = _grid(x.shape[1])
        run = self._observed(processes, x, y)
        eigenvalues, eigenvectors = factors = eigen(run.covariance)
        found = self._conditioned(processes, run, factors)
        projected = (eigenvectors.transpose(0, 2, 1) @ run.residual[..., None])[..., 0]
        variances = eigenvalues[:, None, :] + (NOISES + JITTER)[:, None]
        half_square = 0.5 * np.sum(projected[:, None, :] ** 2 / variances, axis=2)
        n = len(y)
        shape = SHAPE + 0.5 * n
        log_rate = np.log(RATE_WEIGHTS) + SHAPE * np.log(RATES)
        by_rate = log_rate - shape * np.log(RATES + half_square[..., None])
        constant = (
            math.lgamma(shape) - math.lgamma(SHAPE) - n * (0.5 * LOG_2_PI + np.log(self.y_std))
        )
        log_evidence = logsumexp(by_rate) - 0.5 * np.sum(np.log(variances), axis=2) + constant
        num = found.members.count
        return WeighedMembers(found.members, np.full(num, -np.log(num)), log_evidence.reshape(-1))

    def only(self, rows) -> "AveragedBelief":
        """All of them: there are few, and they answer for runs that are like none before."""
        return self

    def _observed(self, processes: GaussianProcesses, x, y) -> Observed:
        num = len(LENGTHSCALES)
        return observed(processes, x, y, np.full(num, self.y_mean), np.full(num, self.y_std))

    def _conditioned(
        self,
        processes: GaussianProcesses,
        run: Observed,
        factors: tuple[Float[np.ndarray, "g n"], Float[np.ndarray, "g n n"]] | None = None,
    ) -> WeightedProcesses:
        """Members and weights; `factors` are those of the covariance, if they are known."""
        length = run.residual.shape[1]
        # The values are the same for all lengthscales, and the prior mean is 0.
        centre = np.sum(run.residual[0]) / max(length, 1)
        eigenvalues, eigenvectors = eigen(run.covariance) if factors is None else factors
        basis = eigenvectors.transpose(0, 2, 1)
        projected = basis @ (run.residual[0] - centre)
        variances = eigenvalues[:, None, :] + (NOISES + JITTER)[:, None]
        # The mean of the posterior: function and noise have the same scale, which cancels.
        whitened = projected[:, None, :] / variances
        half_square = 0.5 * np.sum(projected[:, None, :] * whitened, axis=2)
        shape = SHAPE + 0.5 * max(length - 1, 0)
        rates = RATES + half_square[..., None]
        by_rate = LOG_RATE_WEIGHTS - shape * np.log(rates)
        log_total = logsumexp(by_rate)
        scale = np.sum(np.exp(by_rate - log_total[..., None]) * rates, axis=2) / (shape - 1.0)
        log_evidence = (log_total - 0.5 * np.sum(np.log(variances), axis=2)).reshape(-1)
        members = ConditionedProcesses(
            processes,
            run.seen,
            basis,
            1.0 / (scale[..., None] * variances),
            whitened @ basis,
            scale,
            scale * NOISES,
            scale * JITTER,
            run.level + run.unit * centre,
            run.unit,
        )
        # Members are ordered by lengthscale, then by noise, as the evidence is.
        return WeightedProcesses(members, np.exp(log_evidence - logsumexp(log_evidence)))


@cache
def _grid(d: int) -> GaussianProcesses:
    """One process per lengthscale, over the unit cube as it is."""
    num = len(LENGTHSCALES)
    zeros, ones = np.zeros(num), np.ones(num)
    return GaussianProcesses(
        x_mean=np.zeros((num, d)),
        x_std=np.ones((num, d)),
        warp=Unchanged(),
        mean=StackedConstant(zeros),
        features=Unchanged(),
        kernel=StackedSquaredExponential((LENGTHSCALES * np.sqrt(d))[:, None], ones),
        offset_variance=LEVEL_VARIANCE * ones,
        amplitude_variance=zeros,
    )
