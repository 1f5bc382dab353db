r"""Refining the noise and the output scale of processes on the run at hand.

The same as `metaprior.gp.refine`: the noise variance and the kernel's scale that maximise evidence
times prior, on a grid of steps in their logarithms. Both change the eigenvalues of the covariance
and nothing else, so one factorisation serves all steps and the posterior after them.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._conditioned import ConditionedProcesses
from metaprior.belief._linalg import JITTER, eigen
from metaprior.belief._processes import GaussianProcesses

# Steps in the logarithm of the noise variance, fine near the learned value and coarse below; and
# in that of the kernel's variance.
NOISE_STEPS = np.array([-14.0, -12.0, -10.0, -8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0])
SCALE_STEPS = np.array([0.0, 0.7, 1.4, 2.1, 2.8])


class LogSpread(NamedTuple):
    """How far a run may be from what was learned, as standard deviations of logarithms."""

    noise: Float[np.ndarray, " g"]
    scale: Float[np.ndarray, " g"]

    @property
    def is_zero(self) -> bool:
        """Whether every run keeps what was learned."""
        return not (np.any(self.noise) or np.any(self.scale))


def condition_refined(
    processes: GaussianProcesses,
    noise_variance: Float[np.ndarray, " g"],
    spread: LogSpread,
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    level: Float[np.ndarray, " g"],
    unit: Float[np.ndarray, " g"],
) -> ConditionedProcesses:
    """The posterior of each process, with the noise and scale that suit the run best."""
    seen = processes.embed(x)
    eigenvalues, eigenvectors = eigen(processes.between(seen, seen))
    basis = eigenvectors.transpose(0, 2, 1)
    residual = (y[None] - level[:, None]) / unit[:, None] - seen.mean
    projected = np.einsum("gmn,gn->gm", basis, residual)
    noise_step, scale_step = best_steps(eigenvalues, projected**2, noise_variance, spread)
    scale, noise = np.exp(scale_step), noise_variance * np.exp(noise_step)
    precision = 1.0 / (scale[:, None] * eigenvalues + noise[:, None] + JITTER)
    weights = scale[:, None] * precision * projected
    return ConditionedProcesses(
        processes,
        seen,
        basis,
        precision[:, None],
        np.einsum("gmn,gm->gn", basis, weights)[:, None],
        scale[:, None],
        noise[:, None],
        level,
        unit,
    )


def best_steps(
    eigenvalues: Float[np.ndarray, "g n"],
    squares: Float[np.ndarray, "g n"],
    noise_variance: Float[np.ndarray, " g"],
    spread: LogSpread,
    num_zero: int = 0,
) -> tuple[Float[np.ndarray, " g"], Float[np.ndarray, " g"]]:
    r"""The steps in log noise variance and log scale with the most evidence times prior.

    With $v_i = s \lambda_i + \text{noise} + \text{jitter}$, the evidence is
    $-\tfrac12 \sum_i (q_i^2 / v_i + \ln v_i)$; the prior is Gaussian in the steps.

    - `eigenvalues`, `squares`: $\lambda_i$ of the covariance and $q_i^2$ of the residual.
    - `num_zero`: further eigenvalues, which are 0 and whose $q_i$ are 0 as well.
    """
    noise_step, scale_step = (steps.ravel() for steps in np.meshgrid(NOISE_STEPS, SCALE_STEPS))
    noise = noise_variance[:, None] * np.exp(noise_step) + JITTER
    variances = np.exp(scale_step)[:, None] * eigenvalues[:, None, :] + noise[..., None]
    terms = np.sum(squares[:, None, :] / variances + np.log(variances), axis=2)
    evidence = -0.5 * (terms + num_zero * np.log(noise))
    surprise = _surprise(noise_step, spread.noise) + _surprise(scale_step, spread.scale)
    best = np.argmax(evidence - surprise, axis=1)
    return noise_step[best], scale_step[best]


def _surprise(
    steps: Float[np.ndarray, " s"], spread: Float[np.ndarray, " g"]
) -> Float[np.ndarray, "g s"]:
    """Half the squared distance from the learned value, in units of the spread."""
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = 0.5 * (steps / spread[:, None]) ** 2
    return np.where(steps == 0.0, 0.0, surprise)
