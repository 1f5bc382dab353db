r"""Past tasks as members: the new task may be like one of them.

A Gaussian process is fitted to each past run. Its posterior mean $m_i$, in units of that run, is
the prior mean of a member, with the member's own level, amplitude and residual:

$$ f = c + (1 + a)\, m_i + g, \qquad c \sim N(0, v_c), \quad a \sim N(0, v_a), \quad
   g \sim GP(0, r^2 h_{5/2}) $$
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from metaprior.belief._evidence import scattered
from metaprior.belief._fitted import fitted
from metaprior.belief._kernels import (
    AbstractStackedKernel,
    StackedMatern,
    StackedSquaredExponential,
)
from metaprior.belief._learned import ProcessBelief, mean_and_std
from metaprior.belief._maps import AbstractMap, Unchanged
from metaprior.belief._processes import GaussianProcesses
from metaprior.belief._refine import LogSpread
from metaprior.belief._residual import Residuals, WeighedProcesses
from metaprior.belief._shared import SharedKernel, SharedMap, SharedRows

# Bounds what a prior's files hold and what an answer costs.
MOST_RUNS = 24
MOST_POINTS = 50
FITTING_STEPS = 25
# A run that hardly varies has a unit all the same: this fraction of all past values' own.
LEAST_UNIT = 0.02
# Stated as a prior: levels (beside those of the past runs) and amplitudes differ by a third,
# residuals are a third of the function or all of it, and noise is within a factor of e^3 of a
# thousandth.
AMPLITUDE_VARIANCE = 0.3**2
PAST_RESIDUALS = Residuals(np.array([0.3, 1.0]), np.array([0.3, 0.3]), np.full(2, 0.5))
NOISE_VARIANCE = 1e-3
NOISE_LOG_SPREAD, SCALE_LOG_SPREAD = 3.0, 1.0


class PastMeans(NamedTuple):
    r"""$m_i(x) = b_i + \sum_j \alpha_{ij}\, k_i(x_{ij}, x)$, with $k_i$ a squared exponential.

    - `x`: rows that are padding have `alpha` 0.
    - `level`, `unit`: mean and standard deviation of the values of each run.
    """

    x: Float[np.ndarray, "t n d"]
    alpha: Float[np.ndarray, "t n"]
    constant: Float[np.ndarray, " t"]
    lengthscale: Float[np.ndarray, "t d"]
    variance: Float[np.ndarray, " t"]
    level: Float[np.ndarray, " t"]
    unit: Float[np.ndarray, " t"]

    @classmethod
    def among(cls, arrays: Mapping[str, np.ndarray]) -> "PastMeans | None":
        """Those that a prior holds, by the names of its arrays; `None` if it holds none."""
        found = [arrays.get(f".past.{name}") for name in cls._fields]
        known = [np.asarray(array) for array in found if array is not None]
        return cls(*known) if len(known) == len(found) else None

    def values(self, x: Float[np.ndarray, "t k d"]) -> Float[np.ndarray, "t k"]:
        """The mean of each run at points of its own, in units of the run."""
        return MeanMap.of(self).values(x)[..., 0]


def runs_held(arrays: Mapping[str, np.ndarray]) -> int:
    """Of how many past runs the arrays of a prior hold the points."""
    if ".past.mask" in arrays:  # of rank-weighted processes; the others are padding
        return int(np.any(arrays[".past.mask"], axis=1).sum())
    return len(arrays.get(".past.x", ()))


def chosen_runs(num: int) -> Int[np.ndarray, " t"]:
    """Which of `num` past runs are kept: at most `MOST_RUNS` of them, evenly chosen."""
    return np.unique(np.linspace(0, num - 1, min(num, MOST_RUNS)).round().astype(int))


def past_means(
    x: Float[np.ndarray, "n m d"],
    y: Float[np.ndarray, "n m"],
    mask: Bool[np.ndarray, "n m"],
) -> PastMeans:
    """What the past runs say, or some of them: `chosen_runs`."""
    chosen = chosen_runs(len(y))
    spread = float(LEAST_UNIT * np.std(y[mask]))
    runs = [_thinned(x[i][mask[i]], y[i][mask[i]]) for i in chosen]
    longest = max(len(values) for _, values in runs)
    return PastMeans(*map(np.stack, zip(*(_fit(*r, spread, longest) for r in runs), strict=True)))


def _thinned(
    x: Float[np.ndarray, "m d"], y: Float[np.ndarray, " m"]
) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, " k"]]:
    """A long run's best points, and others far from each other."""
    if len(y) <= MOST_POINTS:
        return x, y
    best = np.argsort(-y, kind="stable")[: MOST_POINTS // 2]
    rest = np.setdiff1d(np.arange(len(y)), best)
    spread = scattered(x[rest], y[rest], outwards=True)
    most = MOST_POINTS - len(best)
    return np.vstack([x[best], spread.x[:most]]), np.append(y[best], spread.y[:most])


def _fit(
    x: Float[np.ndarray, "m d"], y: Float[np.ndarray, " m"], least_unit: float, length: int
) -> PastMeans:
    """One run's process, its arrays padded to that length."""
    level, unit = mean_and_std(y)
    unit = max(unit, least_unit) if len(y) > 1 else 1.0
    found = fitted(x, y, level, unit, FITTING_STEPS)
    kernel, spare = found.processes.kernel, length - len(y)
    assert isinstance(kernel, StackedSquaredExponential)
    (constant,) = found.processes.mean.values(np.zeros((1, 1, 1)))
    return PastMeans(
        np.pad(x, [(0, spare), (0, 0)]),
        np.pad(found.coefficients[0, 0], (0, spare)),
        constant[0, 0],
        np.broadcast_to(kernel.lengthscale[0], x.shape[1:]),
        kernel.variance[0],
        np.asarray(level),
        np.asarray(unit),
    )


def past_members(past: PastMeans, residuals: Residuals = PAST_RESIDUALS) -> WeighedProcesses:
    """Every past task with every residual; the tasks are equally likely."""
    (num, _, d), each = past.x.shape, len(residuals.std)
    rows = np.repeat(np.arange(num), each)
    ones = np.ones(len(rows))
    lengthscale, which = np.unique(residuals.lengthscale, return_inverse=True)
    processes = GaussianProcesses(
        x_mean=np.zeros((len(rows), d)),
        x_std=np.ones((len(rows), d)),
        warp=Unchanged(),
        mean=SharedMap(MeanMap.of(past), SharedRows(rows)),
        features=Unchanged(),
        kernel=SharedKernel(
            StackedMatern(np.sqrt(d) * lengthscale[:, None], np.ones(len(lengthscale)), 2.5),
            SharedRows(np.tile(which, num)),
            np.tile(residuals.std**2, num),
        ),
        offset_variance=np.var(past.level) / past.unit[rows] ** 2 + AMPLITUDE_VARIANCE,
        amplitude_variance=AMPLITUDE_VARIANCE * ones,
    )
    belief = ProcessBelief(
        processes,
        NOISE_VARIANCE * ones,
        LogSpread(NOISE_LOG_SPREAD * ones, SCALE_LOG_SPREAD * ones),
        past.level[rows],
        past.unit[rows],
    )
    return WeighedProcesses(belief, np.log(np.tile(residuals.weight, num) / num))


@dataclass(frozen=True)
class MeanMap(AbstractMap):
    """The means of past tasks as maps of points, stacked."""

    kernel: StackedSquaredExponential
    x: Float[np.ndarray, "t n d"]
    alpha: Float[np.ndarray, "t n"]
    constant: Float[np.ndarray, " t"]

    @classmethod
    def of(cls, past: PastMeans) -> "MeanMap":
        """The means in units of each past run."""
        kernel = StackedSquaredExponential(past.lengthscale, past.variance)
        return cls(kernel, past.x, past.alpha, past.constant)

    @cached_property
    def _at_runs(self) -> AbstractStackedKernel:
        return self.kernel.pinned(self.x)

    def values(self, z):
        covariance = self._at_runs.values(self.x, z)
        return (self.constant[:, None] + (self.alpha[:, None] @ covariance)[:, 0])[..., None]

    def forward(self, z):
        covariance, tape = self._at_runs.forward(self.x, z)
        mean = self.constant[:, None] + (self.alpha[:, None] @ covariance)[:, 0]
        return mean[..., None], (tape, covariance.shape)

    def pullback(self, tape, cotangent):
        inner, shape = tape
        coefficients = np.broadcast_to(self.alpha[..., None], shape)[:, None]
        return cotangent * self.kernel.pullback(inner, coefficients)

    def pooled(self, tape, cotangent, factor):
        inner, _ = tape
        by_mean = self.alpha[..., None] * cotangent.transpose(0, 2, 1)
        return (factor * self.kernel.pooled(inner, by_mean)).sum(axis=0)
