r"""Gaussian processes conditioned on a run of zero, one or many points.

For each kernel there may be several levels of noise and scale, which share one factorisation:

    symbol      meaning                                                        shape
    j           a level: noise variance and scale s of the kernel              second axis of (g, j)
    B, D        (s K + noise + jitter)^{-1} = B^T diag(D) B                    (g, n, n), (g, j, n)
    alpha       s B^T diag(D) B (y - m): coefficients of the posterior mean    (g, j, n)

With eigenvectors $U$ and eigenvalues $\lambda$ of $K$, $B = U^\top$ and
$D = 1 / (s \lambda + \text{noise} + \text{jitter})$ for all levels; a single level is cheaper by a
Cholesky factor, $B = L^{-1}$ and $D = 1$.

$$ \mu(x) = m(x) + \sum_i \alpha_i k(x_i, x), \qquad
   v(x) = s\, k(x, x) - s^2 \sum_i D_i p_i^2, \qquad p = B\, k(X, x) $$

The members, in this order, are $(g, j) = (0, 0), (0, 1), \dots$
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._frozen import FrozenProcesses
from metaprior.belief._linalg import JITTER, cholesky, invert_factor, root
from metaprior.belief._members import (
    PATH_JITTER,
    VARIANCE_FLOOR,
    AbstractMembers,
    Cross,
    Joint,
    MemberMoments,
    MemberSlopes,
    SmoothMoments,
)
from metaprior.belief._process_path import ProcessPath
from metaprior.belief._processes import EmbeddedPoints, GaussianProcesses, pick

# At most this many covariances per block: memory is bounded, and small blocks stay in the cache of
# the processor.
BLOCK_SIZE = 2**18


@dataclass(frozen=True)
class ConditionedProcesses(AbstractMembers):
    """Processes conditioned on one run.

    - `jitter`: what the matrices that were factored have on their diagonal, beside the noise.
    - `level`, `unit`: a value in the units of the run is `level + unit * standardised value`.
    """

    processes: GaussianProcesses
    seen: EmbeddedPoints
    basis: Float[np.ndarray, "g n n"]
    precision: Float[np.ndarray, "g j n"]
    coefficients: Float[np.ndarray, "g j n"]
    scale: Float[np.ndarray, "g j"]
    noise_variance: Float[np.ndarray, "g j"]
    jitter: Float[np.ndarray, "g j"]
    level: Float[np.ndarray, " g"]
    unit: Float[np.ndarray, " g"]

    @property
    def count(self):
        return self.scale.size

    def moments(self, x):
        size = max(BLOCK_SIZE // (len(self.basis) * max(self.basis.shape[1], 16)), 1)
        starts = range(0, len(x), size)
        blocks = [self._moments(x[start : start + size]) for start in starts]
        if not blocks:
            empty = np.zeros((self.count, 0))
            return MemberMoments(empty, empty, self.noise_in_units)
        mean, variance = (np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True))
        return MemberMoments(mean, variance, self.noise_in_units)

    @cached_property
    def noise_in_units(self) -> Float[np.ndarray, " K"]:
        """Noise variance of each member, in the units of the run."""
        return (self.unit[:, None] ** 2 * self.noise_variance).reshape(-1)

    def _moments(
        self, x: Float[np.ndarray, "k d"]
    ) -> tuple[Float[np.ndarray, "K k"], Float[np.ndarray, "K k"]]:
        at = self.processes.embed(x)
        return self.moments_at(at, self._at_run.between(self.seen, at))

    @cached_property
    def _at_run(self) -> GaussianProcesses:
        """The processes, for covariances of the run with other points."""
        kernel = self.processes.kernel.pinned(self.seen.features)
        return replace(self.processes, kernel=kernel)

    def moments_at(
        self, at: EmbeddedPoints, covariance: Float[np.ndarray, "g n k"]
    ) -> tuple[Float[np.ndarray, "K k"], Float[np.ndarray, "K k"]]:
        """Means and function variances at points whose covariances with the run are known."""
        squares = self.basis @ covariance
        squares *= squares
        return self._moments_from(at, covariance, squares)

    def _moments_from(
        self,
        at: EmbeddedPoints,
        covariance: Float[np.ndarray, "g n k"],
        squares: Float[np.ndarray, "g n k"],
    ) -> tuple[Float[np.ndarray, "K k"], Float[np.ndarray, "K k"]]:
        """The same, with the squares of $p$ known as well."""
        known = self.scale[:, :, None] ** 2 * (self.precision @ squares)
        variance = self.scale[:, :, None] * self.processes.prior_variance(at)[:, None] - known
        mean = at.mean[:, None] + self.coefficients @ covariance
        return self._in_units(mean, variance)

    def _in_units(
        self, mean: Float[np.ndarray, "g j k"], variance: Float[np.ndarray, "g j k"]
    ) -> tuple[Float[np.ndarray, "K k"], Float[np.ndarray, "K k"]]:
        """Moments in the units of the run, with the members along one axis, in place."""
        level, unit, squared_unit = self._units
        mean *= unit
        mean += level
        np.maximum(variance, VARIANCE_FLOOR, out=variance)
        variance *= squared_unit
        return mean.reshape(self.count, -1), variance.reshape(self.count, -1)

    @cached_property
    def _units(self) -> tuple[Float[np.ndarray, "g 1 1"], ...]:
        """Level, unit and squared unit."""
        unit = self.unit[:, None, None]
        return self.level[:, None, None], unit, unit**2

    def slopes(self, x):
        r"""$\partial \mu = \partial m + \sum_i \alpha_i\, \partial k(x_i, x)$ and
        $\partial v = s\, \partial k(x, x) - 2 s^2 \sum_i (B^\top D p)_i\, \partial k(x_i, x)$."""
        processes, scale = self.processes, self.scale[:, :, None]
        at, tape = processes.embed_with_tape(x)
        covariance, kernel_tape = processes.between_with_tape(self.seen, at)
        projected = self.basis @ covariance
        mean, variance = self._moments_from(at, covariance, projected * projected)
        # Two linear functions of the kernel's sections for each level: mean and variance.
        levels = scale.shape[1]
        coefficients = np.empty((len(scale), 2 * levels, *covariance.shape[1:]))
        coefficients[:, :levels] = self.coefficients[..., None]
        weights = -2.0 * scale**2 * self.precision
        np.matmul(
            self.basis.transpose(0, 2, 1)[:, None],
            weights[..., None] * projected[:, None],
            out=coefficients[:, levels:],
        )
        by_mean, by_features = processes.section_slopes(self.seen, kernel_tape, coefficients)
        by_mean[:, :levels] += 1.0
        if processes.has_effects:
            amplitude = processes.amplitude_variance[:, None, None]
            by_mean[:, levels:] += 2.0 * scale * amplitude * at.mean[:, None]
        else:
            by_mean = by_mean[:, :levels]
        own = processes.kernel.diagonal_slopes(at.features)[:, None]
        by_features[:, levels:] += scale[..., None] * own
        by_x = self.unit[:, None, None, None] * processes.pullback(tape, by_mean, by_features)
        variance_slope = self.unit[:, None, None, None] * by_x[:, levels:]
        return MemberSlopes(
            MemberMoments(mean, variance, self.noise_in_units),
            by_x[:, :levels].reshape(self.count, *x.shape),
            variance_slope.reshape(self.count, *x.shape),
        )

    def smooth_moments(self, x):
        processes, scale = self._at_run, self.scale[:, :, None]
        at, tape = processes.embed_with_tape(x)
        covariance, kernel_tape = processes.between_with_tape(self.seen, at)
        projected = self.basis @ covariance
        mean, variance = self._moments_from(at, covariance, projected * projected)

        def pullback(by_mean, by_variance):  # annotated, it would take longer to define than to run
            # One linear function of the kernel's sections for each process, all levels together.
            shape, (_, unit, squared_unit) = (*self.scale.shape, len(x)), self._units
            by_mean = unit * by_mean.reshape(shape)
            by_variance = squared_unit * scale * by_variance.reshape(shape)
            on_run = self.precision.transpose(0, 2, 1) @ (-2.0 * scale * by_variance) * projected
            coefficients = self.basis.transpose(0, 2, 1) @ on_run
            coefficients += self.coefficients.transpose(0, 2, 1) @ by_mean
            by_mean, by_own = by_mean.sum(axis=1), by_variance.sum(axis=1)
            by_features = processes.kernel.pooled(kernel_tape, coefficients)
            if not processes.kernel.is_stationary:
                by_features += by_own[..., None] * processes.kernel.diagonal_slopes(at.features)
            if processes.has_effects:
                through = (self.seen.mean[:, None] @ coefficients)[:, 0] + 2.0 * by_own * at.mean
                by_mean += processes.amplitude_variance[:, None] * through
            return processes.pooled(tape, by_mean, by_features)

        return SmoothMoments(MemberMoments(mean, variance, self.noise_in_units), pullback)

    def cross(self, x, anchors):
        r"""$s\, k(x, a) - s^2 \sum_i p_i(x)\, D_i\, p_i(a)$: linear in the sections of the kernel
        at the run and at the anchors."""
        processes, (g, j) = self.processes, self.scale.shape
        at, tape = processes.embed_with_tape(x)
        ends = processes.embed(anchors)
        n, length = self.basis.shape[1], len(anchors)
        centres = EmbeddedPoints(
            np.concatenate([self.seen.mean, ends.mean], axis=1),
            np.concatenate([self.seen.features, ends.features], axis=1),
        )
        sections, kernel_tape = processes.between_with_tape(centres, at)
        scale = self.scale[:, :, None, None]
        projected = (self.basis @ processes.between(self.seen, ends))[:, None]
        on_run = -(scale**2) * (
            self.basis.transpose(0, 2, 1)[:, None] @ (self.precision[..., None] * projected)
        )
        values = (
            scale * sections[:, None, n:] + on_run.transpose(0, 1, 3, 2) @ sections[:, None, :n]
        )
        squared_unit = self.unit[:, None, None, None] ** 2

        def pullback(coefficients: Float[np.ndarray, "K c k a"]) -> Float[np.ndarray, "K c k d"]:
            functions = coefficients.shape[1]
            own = coefficients.reshape(g, j, functions, len(x), length).transpose(0, 1, 2, 4, 3)
            weights = np.concatenate([on_run[:, :, None] @ own, scale[..., None] * own], axis=3)
            flat = weights.reshape(g, j * functions, n + length, len(x))
            by_mean, by_features = processes.section_slopes(centres, kernel_tape, flat)
            by_x = squared_unit * processes.pullback(tape, by_mean, by_features)
            return by_x.reshape(*coefficients.shape[:3], x.shape[1])

        values = (squared_unit * values).transpose(0, 1, 3, 2)
        return Cross(values.reshape(self.count, len(x), length), pullback)

    def joint(self, index, x):
        (joint,) = self.joints([index], x)
        return joint

    def joints(self, indices, x):
        found = []
        for own in self._blocks(indices, len(x)):
            mean, covariance = own._standardised_joints(own.processes.embed(x))
            level, unit = own.level[:, None], own.unit[:, None]
            mean, covariance = level + unit * mean, unit[..., None] ** 2 * covariance
            found += [Joint(*parts) for parts in zip(mean, covariance, strict=True)]
        return found

    def samples(self, indices, nums, x, rng):
        found, left = [], iter(nums)
        for own in self._blocks(indices, len(x)):
            mean, covariance = own._standardised_joints(own.processes.embed(x))
            mean, roots = own.level[:, None] + own.unit[:, None] * mean, root(covariance)
            for centre, scaled in zip(mean, own.unit[:, None, None] * roots, strict=True):
                found.append(centre + rng.standard_normal((next(left), len(x))) @ scaled.T)
        return found

    def path(self, index, anchors, rng):
        r"""With $f_A = \mu_A + L_A \varepsilon$ the values drawn at the anchors, the function is
        the conditional mean $\mu(x) + k(x, A)\, w$, $w = L_A^{-\top} \varepsilon$, all under the
        posterior: a mean with the anchors as further centres."""
        return self._only([index])._own_path(anchors, rng)

    def frozen(self):
        levels = self.scale.shape[1]
        rows = np.repeat(np.arange(len(self.scale)), levels)
        return FrozenProcesses(
            (),
            pick(self.processes, rows.tolist()),
            self.scale.reshape(-1),
            self.noise_variance.reshape(-1),
            self.jitter.reshape(-1),
            self.level[rows],
            self.unit[rows],
        )

    def _blocks(self, indices: Sequence[int], length: int) -> Iterator["ConditionedProcesses"]:
        """Some members, as many at a time as joint distributions of so many points allow."""
        size = max(BLOCK_SIZE // max(length, 1) ** 2, 1)
        for start in range(0, len(indices), size):
            yield self._only(indices[start : start + size])

    def _only(self, indices: Sequence[int]) -> "ConditionedProcesses":
        """Some members as a stack with one level."""
        g, j = np.divmod(np.asarray(indices, int), self.scale.shape[1])
        own, rows, j = pick(self, g.tolist()), np.arange(len(g))[:, None], j[:, None]
        return ConditionedProcesses(
            own.processes,
            own.seen,
            own.basis,
            own.precision[rows, j],
            own.coefficients[rows, j],
            own.scale[rows, j],
            own.noise_variance[rows, j],
            own.jitter[rows, j],
            own.level,
            own.unit,
        )

    def _standardised_joints(
        self, at: EmbeddedPoints
    ) -> tuple[Float[np.ndarray, "g k"], Float[np.ndarray, "g k k"]]:
        """Mean and covariance at points, of members with one level, in standardised units."""
        covariance, scale = self.processes.between(self.seen, at), self.scale[:, :, None]
        projected = self.basis @ covariance
        weighted = self.precision.transpose(0, 2, 1) * projected
        prior = scale * self.processes.between(at, at)
        mean = at.mean + (self.coefficients @ covariance)[:, 0]
        return mean, prior - scale**2 * (projected.transpose(0, 2, 1) @ weighted)

    def _own_path(
        self, anchors: Float[np.ndarray, "a d"], rng: np.random.Generator
    ) -> "ProcessPath":
        (s,), (d,) = self.scale[0], self.precision[0]
        at = self.processes.embed(anchors)
        _, (covariance,) = self._standardised_joints(at)
        inverse_factor = invert_factor(cholesky(covariance, PATH_JITTER))
        weights = rng.standard_normal(len(anchors)) @ inverse_factor
        projected = self.basis[0] @ self.processes.between(self.seen, at)[0]
        seen_weights = self.basis[0].T @ (d * (projected @ weights))
        coefficients = [self.coefficients[0, 0] - s**2 * seen_weights, s * weights]
        centres = EmbeddedPoints(
            np.concatenate([self.seen.mean, at.mean], axis=1),
            np.concatenate([self.seen.features, at.features], axis=1),
        )
        return ProcessPath(
            self.processes, centres, np.concatenate(coefficients), self.level[0], self.unit[0]
        )


class Observed(NamedTuple):
    """A run as processes see it.

    - `covariance`: prior covariances of the function at the points.
    - `residual`: values less the prior mean, in standardised units.
    - `level`, `unit`: as in `ConditionedProcesses`.
    """

    seen: EmbeddedPoints
    covariance: Float[np.ndarray, "g n n"]
    residual: Float[np.ndarray, "g n"]
    level: Float[np.ndarray, " g"]
    unit: Float[np.ndarray, " g"]

    def first(self, num: int) -> "Observed":
        """The first points of the run."""
        return Observed(
            self.seen.rows(0, num),
            self.covariance[:, :num, :num],
            self.residual[:, :num],
            self.level,
            self.unit,
        )


def observed(
    processes: GaussianProcesses,
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    level: Float[np.ndarray, " g"],
    unit: Float[np.ndarray, " g"],
) -> Observed:
    """The run with values `y` at `x`."""
    seen = processes.embed(x)
    residual = (y[None] - level[:, None]) / unit[:, None] - seen.mean
    return Observed(seen, processes.between(seen, seen), residual, level, unit)


def condition_fixed(
    processes: GaussianProcesses, noise_variance: Float[np.ndarray, " g"], run: Observed
) -> ConditionedProcesses:
    """The posterior of each process as it is; with no points it is the prior."""
    num, length = run.residual.shape
    noise = noise_variance[:, None, None] * np.eye(length)
    basis = invert_factor(cholesky(run.covariance + noise))
    whitened = np.einsum("gmn,gn->gm", basis, run.residual)
    return ConditionedProcesses(
        processes,
        run.seen,
        basis,
        np.ones((num, 1, length)),
        np.einsum("gmn,gm->gn", basis, whitened)[:, None, :],
        np.ones((num, 1)),
        noise_variance[:, None],
        np.full((num, 1), JITTER),
        run.level,
        run.unit,
    )
