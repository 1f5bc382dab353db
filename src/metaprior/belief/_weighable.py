"""The members of a weighed belief: learned priors with residuals, and past tasks."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._conditioned import ConditionedProcesses, observed
from metaprior.belief._learned import ProcessBelief
from metaprior.belief._maps import AbstractMap, StackedConstant, Unchanged
from metaprior.belief._processes import EmbeddedPoints, GaussianProcesses, pick
from metaprior.belief._refine import LogSpread, condition_refined, condition_weighed
from metaprior.belief._kernels import StackedMatern, StackedSquaredExponential
from metaprior.belief._fitted import fitted
from metaprior.belief._shared import Rows, SharedMap, with_residuals
from metaprior.belief._weighed import AbstractWeighable, Weighed


class Residuals(NamedTuple):
    """Residual terms: standard deviations, lengthscales in units of sqrt(d), weights."""

    std: Float[np.ndarray, " r"]
    lengthscale: Float[np.ndarray, " r"]
    weight: Float[np.ndarray, " r"]


def grid(stds, lengthscales, none=0.0) -> Residuals:
    s, l = (a.ravel() for a in np.meshgrid(stds, lengthscales))
    w = np.full(len(s), (1.0 - none) / len(s))
    if none > 0.0:
        s, l, w = np.append(s, 0.0), np.append(l, 1.0), np.append(w, none)
    return Residuals(s, l, w)


@dataclass(frozen=True)
class Processes(AbstractWeighable):
    """Processes, refined on each run."""

    belief: ProcessBelief
    log_prior: Float[np.ndarray, " g"]

    def weighed(self, x, y) -> Weighed:
        b = self.belief
        run = observed(b.processes, x, y, b.y_mean, b.y_std)
        members, evidence = condition_weighed(b.processes, b.noise_variance, b.spread, run)
        return Weighed(members, self.log_prior, evidence)

    def only(self, rows) -> "Processes":
        return Processes(pick(self.belief, rows), self.log_prior[rows])


def learned_with_residuals(learned: ProcessBelief, residuals: Residuals) -> Processes:
    """Every learned process with every residual."""
    num, each = len(learned.y_std), len(residuals.std)
    rows = np.repeat(np.arange(num), each)
    # Relative to what the learned kernel says a function varies by.
    probe = learned.processes.embed(np.full((1, learned.processes.x_mean.shape[1]), 0.5))
    variance = learned.processes.kernel.diagonal(probe.features)[:, 0]
    processes = with_residuals(
        learned.processes,
        rows,
        np.tile(residuals.std**2, num) * variance[rows],
        np.tile(residuals.lengthscale, num),
    )
    belief = ProcessBelief(
        processes,
        learned.noise_variance[rows],
        LogSpread(learned.spread.noise[rows], learned.spread.scale[rows]),
        learned.y_mean[rows],
        learned.y_std[rows],
    )
    return Processes(belief, np.log(np.tile(residuals.weight, num) / num))


@dataclass(frozen=True)
class PastMeans(AbstractMap):
    """Posterior means of past runs, in units of their own."""

    past: ConditionedProcesses

    def forward(self, z):
        p = self.past
        at, tape = p.processes.embed_with_tape(z[0])
        cov, kernel_tape = p.processes.between_with_tape(p.seen, at)
        mean = at.mean[:, None] + p.coefficients @ cov
        mean = p.level[:, None, None] + p.unit[:, None, None] * mean
        return mean[:, 0, :, None], (tape, kernel_tape, cov.shape[2])

    def pullback(self, tape, cotangent):
        p, (tape, kernel_tape, k) = self.past, tape
        c = np.broadcast_to(p.coefficients[..., None], (*p.coefficients.shape, k))
        by_mean, by_features = p.processes.section_slopes(p.seen, kernel_tape, c)
        by_x = p.processes.pullback(tape, 1.0 + by_mean, by_features)
        return cotangent * p.unit[:, None, None, None] * by_x


def past_tasks(
    means: ConditionedProcesses,
    units: Float[np.ndarray, " t"],
    levels: Float[np.ndarray, " t"],
    level_std: float,
    residuals: Residuals,
    *,
    amplitude: float = 0.3,
    noise: float = 1e-3,
    spread: tuple[float, float] = (3.0, 1.0),
) -> Processes:
    """Past tasks as priors of the new one.

    - `units`, `levels`: of each past task's values; `means` are in those units.
    - `level_std`: by how much levels of tasks differ.
    """
    t, d = len(units), means.processes.x_mean.shape[1]
    each = len(residuals.std)
    rows = np.repeat(np.arange(t), each)
    g = len(rows)
    processes = GaussianProcesses(
        x_mean=np.zeros((g, d)),
        x_std=np.ones((g, d)),
        warp=Unchanged(),
        mean=SharedMap(PastMeans(means), Rows(rows)),
        features=Unchanged(),
        kernel=StackedMatern(
            np.tile(residuals.lengthscale, t)[:, None] * np.sqrt(d),
            np.tile(residuals.std**2, t),
            2.5,
        ),
        offset_variance=(level_std / units[rows]) ** 2,
        amplitude_variance=np.full(g, amplitude**2),
    )
    belief = ProcessBelief(
        processes,
        np.full(g, noise),
        LogSpread(np.full(g, spread[0]), np.full(g, spread[1])),
        levels[rows],
        units[rows],
    )
    return Processes(belief, np.log(np.tile(residuals.weight, t) / t))


def means_by_learned(learned: ProcessBelief, runs, units, levels) -> ConditionedProcesses:
    """The posterior of each past run under a learned prior, seen in units of the run."""
    num = len(learned.y_std)
    found = []
    for i, (x, y) in enumerate(runs):
        one = pick(learned, [i % num])
        run = observed(one.processes, x, y, one.y_mean, one.y_std)
        found.append(condition_refined(one.processes, one.noise_variance, one.spread, run))
    rows = np.arange(len(runs)) % num
    shared = with_residuals(learned.processes, rows, np.zeros(len(runs)), np.ones(len(runs)))
    kernel, features = shared.kernel.left.base, shared.features.base
    shared = replace(shared, kernel=kernel, features=features)
    return stacked_means(shared, found, units, levels)


def means_by_fitted(runs, units, levels) -> ConditionedProcesses:
    found = [fitted(x, y, level, unit, 25) for (x, y), unit, level in zip(runs, units, levels)]
    p = [f.processes for f in found]
    t = len(runs)
    d = p[0].x_mean.shape[1]
    processes = GaussianProcesses(
        np.zeros((t, d)), np.ones((t, d)), Unchanged(),
        StackedConstant(np.concatenate([q.mean.value for q in p])), Unchanged(),
        StackedSquaredExponential(
            np.concatenate([q.kernel.lengthscale for q in p]),
            np.concatenate([q.kernel.variance for q in p]),
        ),
        np.zeros(t), np.zeros(t),
    )
    return stacked_means(processes, found, units, levels)


def stacked_means(processes, found, units, levels) -> ConditionedProcesses:
    longest = max(f.coefficients.shape[2] for f in found)

    def padded(a, axis):
        width = [(0, 0)] * a.ndim
        width[axis] = (0, longest - a.shape[axis])
        return np.pad(a, width)

    t = len(found)
    return ConditionedProcesses(
        processes,
        EmbeddedPoints(
            np.concatenate([padded(f.seen.mean, 1) for f in found]),
            np.concatenate([padded(f.seen.features, 1) for f in found]),
        ),
        np.zeros((t, 0, longest)),
        np.zeros((t, 1, 0)),
        np.concatenate([padded(f.coefficients, 2) for f in found]),
        np.ones((t, 1)),
        np.ones((t, 1)),
        (np.array([f.level[0] for f in found]) - levels) / units,
        np.array([f.unit[0] for f in found]) / units,
    )
