r"""A Gaussian process fitted to the run itself, by marginal likelihood times weak priors.

The same as `metaprior.methods.FittedGP`: inputs in the unit cube, outputs standardised by the run.

    parameter               prior
    ln lengthscale_j        N(sqrt 2 + 0.5 ln d, 3)
    ln noise variance       N(-4, 1)
    ln variance             N(0, 1)
    mean                    flat
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from metaprior.belief._ascent import AbstractSmoothFunction, ascend
from metaprior.belief._belief import AbstractBelief
from metaprior.belief._conditioned import ConditionedProcesses, condition_fixed, observed
from metaprior.belief._kernels import StackedSquaredExponential
from metaprior.belief._learned import mean_and_std
from metaprior.belief._linalg import JITTER, LOG_2_PI, cholesky, invert_factor
from metaprior.belief._maps import StackedConstant, Unchanged
from metaprior.belief._mixture import Groups, equal_group
from metaprior.belief._processes import GaussianProcesses

LOWEST_NOISE_VARIANCE = 1e-6
# At most this many entries of covariance matrices are held while many parameters are tried.
MOST_ENTRIES = 2**22


@dataclass(frozen=True)
class FittedBelief(AbstractBelief):
    """Fits a Gaussian process to whatever run it is conditioned on.

    - `num_steps`: quasi-Newton steps from each of a few starting points.
    """

    num_steps: int

    def groups(self, x, y) -> Groups:
        mean, std = mean_and_std(y)
        return (equal_group(fitted(x, y, mean, std, self.num_steps)),)


def fitted(
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    mean: float,
    std: float,
    num_steps: int,
) -> ConditionedProcesses:
    """The process with the largest posterior density of its hyper-parameters, conditioned.

    - `mean`, `std`: the units of the run.
    """
    (parameters,) = fit(x[None], (y[None] - mean) / std, num_steps)
    return _conditioned(parameters, x, y, mean, std)


def _conditioned(
    parameters: Float[np.ndarray, " p"],
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    mean: float,
    std: float,
) -> ConditionedProcesses:
    d = x.shape[1]
    processes = GaussianProcesses(
        x_mean=np.zeros((1, d)),
        x_std=np.ones((1, d)),
        warp=Unchanged(),
        mean=StackedConstant(parameters[:1]),
        features=Unchanged(),
        kernel=StackedSquaredExponential(np.exp(parameters[None, 3:]), np.exp(parameters[2:3])),
        offset_variance=np.zeros(1),
        amplitude_variance=np.zeros(1),
    )
    run = observed(processes, x, y, np.array([mean]), np.array([std]))
    return condition_fixed(processes, np.exp(parameters[1:2]), run)


def fit(
    x: Float[np.ndarray, "g n d"], y: Float[np.ndarray, "g n"], num_steps: int
) -> Float[np.ndarray, "g p"]:
    """The best mean, ln noise variance, ln variance and ln lengthscales found for each run."""
    num, _, d = x.shape
    lower = np.array([-3.0, np.log(LOWEST_NOISE_VARIANCE), -4.0, *[-4.0] * d])
    upper = np.array([3.0, 1.0, 4.0, *[6.0] * d])
    # Short and long waves without noise, and noise around something smooth: the usual modes.
    lengthscales, log_noise = np.array([0.2, 0.8, 0.8]), np.array([-6.0, -6.0, -1.0])
    starts = np.zeros((3, 3 + d))
    starts[:, 1] = log_noise
    starts[:, 3:] = (np.log(lengthscales) + 0.5 * np.log(d))[:, None]
    density = HyperParameterDensity(x, y)
    found = ascend(density, np.tile(starts, (num, 1)), lower, upper, num_steps=num_steps)
    best = np.argmax(found.value.reshape(num, -1), axis=1)
    return found.x.reshape(num, len(starts), -1)[np.arange(num), best]


class HyperParameterDensity(AbstractSmoothFunction):
    r"""$\ln p(y \mid \theta) + \ln p(\theta)$ up to a constant, for rows of parameters, with

    $$ \partial \ln p(y) = \tfrac12 \operatorname{tr}\big( (\alpha \alpha^\top - P)\, \partial K
       \big), \qquad P = (K + \sigma^2 I)^{-1}, \quad \alpha = P (y - m). $$

    There may be several runs of one length: of $g$ times $r$ rows, the first $r$ are for the first
    run, the next for the second, and so on.
    """

    def __init__(self, x: Float[np.ndarray, "g n d"], y: Float[np.ndarray, "g n"]):
        num, _, d = x.shape
        self.y = y
        # Squared differences by dimension: all that the kernel needs of the points.
        self.squares = ((x[:, :, None, :] - x[:, None, :, :]) ** 2).reshape(num, -1, d)
        self.prior_mean = np.array([-4.0, 0.0, *[np.sqrt(2.0) + 0.5 * np.log(d)] * d])
        self.prior_std = np.array([1.0, 1.0, *[np.sqrt(3.0)] * d])

    def values(self, parameters: Float[np.ndarray, "r p"]) -> Float[np.ndarray, " r"]:
        blocks = [self._values(block) for block in self._blocks(parameters)]
        return np.concatenate(blocks, axis=1).reshape(-1)

    def gradients(
        self, parameters: Float[np.ndarray, "r p"]
    ) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, "r p"]]:
        blocks = [self._gradients(block) for block in self._blocks(parameters)]
        values, gradients = (np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True))
        return values.reshape(-1), gradients.reshape(parameters.shape)

    def _blocks(self, parameters: Float[np.ndarray, "r p"]) -> Iterator[Float[np.ndarray, "g b p"]]:
        """The rows of all runs, a few at a time."""
        num, n = self.y.shape
        by_run = parameters.reshape(num, -1, parameters.shape[1])
        size = max(MOST_ENTRIES // (num * (n + 1) ** 2), 1)
        for start in range(0, by_run.shape[1], size):
            yield by_run[:, start : start + size]

    def _values(self, parameters: Float[np.ndarray, "g r p"]) -> Float[np.ndarray, "g r"]:
        n = self.y.shape[1]
        residual = self._residual(parameters)
        # The factor of a matrix that is bordered by the residual has, as its last row, the residual
        # multiplied by the inverse factor; any corner that keeps the matrix positive will do.
        bordered = np.empty((*parameters.shape[:2], n + 1, n + 1))
        bordered[..., :n, :n] = self._covariances(self._waves(parameters), parameters)
        bordered[..., n, :n] = bordered[..., :n, n] = residual
        bordered[..., n, n] = 1.0 + np.sum(residual**2, axis=2) / LOWEST_NOISE_VARIANCE
        factor = cholesky(bordered, 0.0)
        return self._total(parameters, factor[..., n, :n], factor[..., :n, :n])

    def _gradients(
        self, parameters: Float[np.ndarray, "g r p"]
    ) -> tuple[Float[np.ndarray, "g r"], Float[np.ndarray, "g r p"]]:
        waves = self._waves(parameters)
        factor = cholesky(self._covariances(waves, parameters), 0.0)
        inverse = invert_factor(factor)
        transposed = np.swapaxes(inverse, -1, -2)
        whitened = (inverse @ self._residual(parameters)[..., None])[..., 0]
        alpha = (transposed @ whitened[..., None])[..., 0]
        by_covariance = 0.5 * (alpha[..., :, None] * alpha[..., None, :] - transposed @ inverse)
        by_wave = by_covariance * waves
        gradient = np.empty(parameters.shape)
        gradient[..., 0] = np.sum(alpha, axis=2)
        noise_variance = np.exp(parameters[..., 1])
        gradient[..., 1] = noise_variance * np.trace(by_covariance, axis1=2, axis2=3)
        gradient[..., 2] = np.sum(by_wave, axis=(2, 3))
        # The derivative of a wave by ln l_j is the wave times its square_j / l_j^2.
        by_square = by_wave.reshape(*parameters.shape[:2], self.squares.shape[1]) @ self.squares
        gradient[..., 3:] = by_square * np.exp(-2.0 * parameters[..., 3:])
        gradient[..., 1:] -= (parameters[..., 1:] - self.prior_mean) / self.prior_std**2
        return self._total(parameters, whitened, factor), gradient

    def _residual(self, parameters: Float[np.ndarray, "g r p"]) -> Float[np.ndarray, "g r n"]:
        return self.y[:, None, :] - parameters[..., :1]

    def _covariances(
        self, waves: Float[np.ndarray, "g r n n"], parameters: Float[np.ndarray, "g r p"]
    ) -> Float[np.ndarray, "g r n n"]:
        noise = np.exp(parameters[..., 1]) + JITTER
        return waves + noise[..., None, None] * np.eye(waves.shape[-1])

    def _waves(self, parameters: Float[np.ndarray, "g r p"]) -> Float[np.ndarray, "g r n n"]:
        n = self.y.shape[1]
        scaled = np.exp(-2.0 * parameters[..., 3:]) @ self.squares.transpose(0, 2, 1)
        waves = np.exp(parameters[..., 2:3] - 0.5 * scaled)
        return waves.reshape(*parameters.shape[:2], n, n)

    def _total(
        self,
        parameters: Float[np.ndarray, "g r p"],
        whitened: Float[np.ndarray, "g r n"],
        factor: Float[np.ndarray, "g r n n"],
    ) -> Float[np.ndarray, "g r"]:
        log_determinant = 2.0 * np.sum(np.log(np.diagonal(factor, axis1=2, axis2=3)), axis=2)
        fit = np.sum(whitened**2, axis=2) + log_determinant + whitened.shape[2] * LOG_2_PI
        far = np.sum(((parameters[..., 1:] - self.prior_mean) / self.prior_std) ** 2, axis=2)
        return -0.5 * (fit + far)
