r"""Refining the noise and the output scale of processes on the run at hand.

The same as `metaprior.gp.refine`: the noise variance and the kernel's scale that maximise evidence
times prior, on a grid of steps in their logarithms. Both change the eigenvalues of the covariance
and nothing else, so one factorisation serves all steps and the posterior after them.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._conditioned import ConditionedProcesses, Observed
from metaprior.belief._linalg import JITTER, LOG_2_PI, eigen
from metaprior.belief._mixture import logsumexp
from metaprior.belief._processes import GaussianProcesses

# Steps in the logarithm of the noise variance, fine near the learned value and coarse below; and
# in that of the kernel's variance.
NOISE_STEPS = np.array([-14.0, -12.0, -10.0, -8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0])
SCALE_STEPS = np.array([0.0, 0.7, 1.4, 2.1, 2.8])
# All pairs of a step in noise and one in scale.
STEPS = np.stack([steps.ravel() for steps in np.meshgrid(NOISE_STEPS, SCALE_STEPS)])
STEP_FACTORS = np.exp(STEPS)


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
    run: Observed,
) -> ConditionedProcesses:
    """The posterior of each process, with the noise and scale that suit the run best."""
    return condition_weighed(processes, noise_variance, spread, run).members


class RefinedProcesses(NamedTuple):
    """Conditioned processes, and the log evidence of each, its steps averaged by their prior."""

    members: ConditionedProcesses
    log_evidence: Float[np.ndarray, " g"]


def condition_weighed(
    processes: GaussianProcesses,
    noise_variance: Float[np.ndarray, " g"],
    spread: LogSpread,
    run: Observed,
) -> RefinedProcesses:
    """The posterior of each process, and how well it explains the values of the run."""
    eigenvalues, eigenvectors = eigen(run.covariance)
    basis = eigenvectors.transpose(0, 2, 1)
    projected = (basis @ run.residual[..., None])[..., 0]
    evidence, surprise = _scored_steps(eigenvalues, projected**2, noise_variance, spread)
    best = np.argmax(evidence - surprise, axis=1)
    noise_step, scale_step = STEPS[:, best]
    total = logsumexp(evidence - surprise) - logsumexp(-surprise)
    in_units = run.residual.shape[1] * (np.log(run.unit) + 0.5 * LOG_2_PI)
    scale, noise = np.exp(scale_step), noise_variance * np.exp(noise_step)
    precision = 1.0 / (scale[:, None] * eigenvalues + noise[:, None] + JITTER)
    weights = scale[:, None] * precision * projected
    members = ConditionedProcesses(
        processes,
        run.seen,
        basis,
        precision[:, None],
        weights[:, None] @ basis,
        scale[:, None],
        noise[:, None],
        np.full((len(noise), 1), JITTER),
        run.level,
        run.unit,
    )
    return RefinedProcesses(members, total - in_units)


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
    evidence, surprise = _scored_steps(eigenvalues, squares, noise_variance, spread, num_zero)
    noise_step, scale_step = STEPS[:, np.argmax(evidence - surprise, axis=1)]
    return noise_step, scale_step


def _scored_steps(
    eigenvalues: Float[np.ndarray, "g n"],
    squares: Float[np.ndarray, "g n"],
    noise_variance: Float[np.ndarray, " g"],
    spread: LogSpread,
    num_zero: int = 0,
) -> tuple[Float[np.ndarray, "g s"], Float[np.ndarray, "g s"]]:
    """Evidence of every step, up to a constant, and minus the log of its prior likewise."""
    noise_step, scale_step = STEPS
    noise = noise_variance[:, None] * STEP_FACTORS[0] + JITTER
    variances = STEP_FACTORS[1][:, None] * eigenvalues[:, None, :] + noise[..., None]
    terms = np.sum(squares[:, None, :] / variances + np.log(variances), axis=2)
    evidence = -0.5 * (terms + num_zero * np.log(noise))
    return evidence, _surprise(noise_step, spread.noise) + _surprise(scale_step, spread.scale)


def _surprise(
    steps: Float[np.ndarray, " s"], spread: Float[np.ndarray, " g"]
) -> Float[np.ndarray, "g s"]:
    """Half the squared distance from the learned value, in units of the spread."""
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = 0.5 * (steps / spread[:, None]) ** 2
    return np.where(steps == 0.0, 0.0, surprise)
