"""Beliefs whose members are learned Gaussian processes, each as likely as any other."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief, Foresight
from metaprior.belief._conditioned import (
    ConditionedProcesses,
    Observed,
    condition_fixed,
    observed,
)
from metaprior.belief._in_turn import WeightedProcesses, moments_in_turn
from metaprior.belief._members import MemberMoments
from metaprior.belief._mixture import BeliefMoments, Groups, equal_group
from metaprior.belief._processes import GaussianProcesses
from metaprior.belief._refine import LogSpread, condition_refined

# A constant run, up to rounding of its values, has no scale of its own.
RELATIVE_SPREAD = 1e-10


@dataclass(frozen=True)
class ProcessBelief(AbstractBelief):
    """Processes in the standardised units of the past runs, refined on each new run.

    - `y_mean`, `y_std`: of the past values, per member.
    """

    processes: GaussianProcesses
    noise_variance: Float[np.ndarray, " g"]
    spread: LogSpread
    y_mean: Float[np.ndarray, " g"]
    y_std: Float[np.ndarray, " g"]

    def groups(self, x, y) -> Groups:
        return (equal_group(self._conditioned(self._observed(x, y))),)

    def in_turn(self, x, y) -> BeliefMoments:
        num = len(self.y_std)
        equal = np.full(num, 1.0 / num)

        def conditioned(run: Observed) -> WeightedProcesses:
            return WeightedProcesses(self._conditioned(run), equal)

        return moments_in_turn(conditioned, self.processes, self._observed(x, y))

    def foresight(self, x, y) -> Foresight:
        # The processes see every point once, however often they are conditioned.
        run = self._observed(x, y)

        def after(num: int) -> MemberMoments:
            members = self._conditioned(run.first(num))
            mean, variance = members.moments_at(run.seen, run.covariance[:, :num])
            return MemberMoments(mean, variance, members.noise_in_units)

        return after

    def _observed(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> Observed:
        return observed(self.processes, x, y, self.y_mean, self.y_std)

    def _conditioned(self, run: Observed) -> ConditionedProcesses:
        if self.spread.is_zero:
            return condition_fixed(self.processes, self.noise_variance, run)
        return condition_refined(self.processes, self.noise_variance, self.spread, run)


@dataclass(frozen=True)
class SelfStandardisedBelief(AbstractBelief):
    """Fixed processes on a run that is standardised by itself."""

    processes: GaussianProcesses
    noise_variance: Float[np.ndarray, " g"]

    def groups(self, x, y) -> Groups:
        mean, std = mean_and_std(y)
        num = len(self.noise_variance)
        units = (np.full(num, mean), np.full(num, std))
        run = observed(self.processes, x, y, *units)
        return (equal_group(condition_fixed(self.processes, self.noise_variance, run)),)


def mean_and_std(y: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Mean and standard deviation of a run; (0, 1) or (y, 1) where the values say nothing."""
    if len(y) == 0:
        return 0.0, 1.0
    mean = np.sum(y) / len(y)
    variance = np.sum((y - mean) ** 2) / len(y)
    has_spread = variance > (RELATIVE_SPREAD * mean) ** 2
    return float(mean), float(np.sqrt(variance)) if has_spread else 1.0
