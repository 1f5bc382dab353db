r"""A Gaussian process fitted to the run itself, by marginal likelihood times weak priors.

The same as `metaprior.methods.FittedGP`: inputs in the unit cube, outputs standardised by the run.

    parameter               prior
    ln lengthscale_j        N(sqrt 2 + 0.5 ln d, 3)
    ln noise variance       N(-4, 1)
    ln variance             N(0, 1)
    mean                    flat
"""

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
    parameters = fit(x, (y - mean) / std, num_steps)
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
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], num_steps: int
) -> Float[np.ndarray, " p"]:
    """The best mean, ln noise variance, ln variance and ln lengthscales found."""
    d = x.shape[1]
    lower = np.array([-3.0, np.log(LOWEST_NOISE_VARIANCE), -4.0, *[-4.0] * d])
    upper = np.array([3.0, 1.0, 4.0, *[6.0] * d])
    # Short and long waves without noise, and noise around something smooth: the usual modes.
    lengthscales, log_noise = np.array([0.2, 0.8, 0.8]), np.array([-6.0, -6.0, -1.0])
    starts = np.zeros((3, 3 + d))
    starts[:, 1] = log_noise
    starts[:, 3:] = (np.log(lengthscales) + 0.5 * np.log(d))[:, None]
    density = HyperParameterDensity(x, y)
    found = ascend(density, starts, lower, upper, num_steps=num_steps)
    return found.x[np.argmax(found.value)]


class HyperParameterDensity(AbstractSmoothFunction):
    r"""$\ln p(y \mid \theta) + \ln p(\theta)$ up to a constant, for rows of parameters, with

    $$ \partial \ln p(y) = \tfrac12 \operatorname{tr}\big( (\alpha \alpha^\top - P)\, \partial K
       \big), \qquad P = (K + \sigma^2 I)^{-1}, \quad \alpha = P (y - m). $$
    """

    def __init__(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]):
        d = x.shape[1]
        self.y = y
        # Squared differences by dimension: all that the kernel needs of the points.
        self.squares = ((x[:, None, :] - x[None, :, :]) ** 2).reshape(-1, d)
        self.prior_mean = np.array([-4.0, 0.0, *[np.sqrt(2.0) + 0.5 * np.log(d)] * d])
        self.prior_std = np.array([1.0, 1.0, *[np.sqrt(3.0)] * d])

    def values(self, parameters: Float[np.ndarray, "r p"]) -> Float[np.ndarray, " r"]:
        rows = max(MOST_ENTRIES // (len(self.y) + 1) ** 2, 1)
        starts = range(0, len(parameters), rows)
        return np.concatenate([self._values(parameters[s : s + rows]) for s in starts])

    def _values(self, parameters: Float[np.ndarray, "r p"]) -> Float[np.ndarray, " r"]:
        n = len(self.y)
        residual = self.y[None] - parameters[:, :1]
        # The factor of a matrix that is bordered by the residual has, as its last row, the residual
        # multiplied by the inverse factor; any corner that keeps the matrix positive will do.
        bordered = np.empty((len(parameters), n + 1, n + 1))
        bordered[:, :n, :n] = self._covariances(self._waves(parameters), parameters)
        bordered[:, n, :n] = bordered[:, :n, n] = residual
        bordered[:, n, n] = 1.0 + np.sum(residual**2, axis=1) / LOWEST_NOISE_VARIANCE
        factor = cholesky(bordered, 0.0)
        return self._total(parameters, factor[:, n, :n], factor[:, :n, :n])

    def gradients(
        self, parameters: Float[np.ndarray, "r p"]
    ) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, "r p"]]:
        values, gradients = zip(*map(self._gradient, parameters), strict=True)
        return np.array(values), np.stack(gradients)

    def _gradient(
        self, parameters: Float[np.ndarray, " p"]
    ) -> tuple[float, Float[np.ndarray, " p"]]:
        rows = parameters[None]
        waves = self._waves(rows)
        factor = cholesky(self._covariances(waves, rows), 0.0)
        inverse = invert_factor(factor)[0]
        whitened = inverse @ (self.y - parameters[0])
        alpha = whitened @ inverse
        by_covariance = 0.5 * (alpha[:, None] * alpha[None, :] - inverse.T @ inverse)
        by_wave = by_covariance * waves[0]
        noise_variance = np.exp(parameters[1])
        scales = [np.sum(alpha), noise_variance * np.trace(by_covariance), np.sum(by_wave)]
        # The derivative of a wave by ln l_j is the wave times its square_j / l_j^2.
        by_lengthscale = by_wave.reshape(-1) @ self.squares * np.exp(-2.0 * parameters[3:])
        gradient = np.concatenate([scales, by_lengthscale])
        gradient[1:] -= (parameters[1:] - self.prior_mean) / self.prior_std**2
        return float(self._total(rows, whitened[None], factor)[0]), gradient

    def _covariances(
        self, waves: Float[np.ndarray, "r n n"], parameters: Float[np.ndarray, "r p"]
    ) -> Float[np.ndarray, "r n n"]:
        noise = np.exp(parameters[:, 1]) + JITTER
        return waves + noise[:, None, None] * np.eye(len(self.y))

    def _waves(self, parameters: Float[np.ndarray, "r p"]) -> Float[np.ndarray, "r n n"]:
        n = len(self.y)
        scaled = np.exp(-2.0 * parameters[:, 3:]) @ self.squares.T
        return np.exp(parameters[:, 2:3] - 0.5 * scaled).reshape(len(parameters), n, n)

    def _total(
        self,
        parameters: Float[np.ndarray, "r p"],
        whitened: Float[np.ndarray, "r n"],
        factor: Float[np.ndarray, "r n n"],
    ) -> Float[np.ndarray, " r"]:
        log_determinant = 2.0 * np.sum(np.log(np.diagonal(factor, axis1=1, axis2=2)), axis=1)
        fit = np.sum(whitened**2, axis=1) + log_determinant + len(self.y) * LOG_2_PI
        far = np.sum(((parameters[:, 1:] - self.prior_mean) / self.prior_std) ** 2, axis=1)
        return -0.5 * (fit + far)
