r"""Pairs of a learned process and a kernel for what is new, conditioned on new points.

    symbol      meaning                                                          shape
    K, Q        learned processes, and kernels for what is new                   leading axes
    o           the new points of the run
    T           prior covariance (see `_extended`)                               (K, Q, k, n)
    B           (T_oo + noise)^{-1} = B^T B                                      (K, Q, n, n)
    alpha       (T_oo + noise)^{-1} (y - m)                                      (K, Q, n)

$$ \mu(u) = m(u) + \sum_i \alpha_i\, T(u, o_i), \qquad v(u) = T(u, u) - \|B\, T(o, u)\|^2 $$

The members, in this order, are $(K, Q) = (0, 0), (0, 1), \dots$
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from metaprior.belief._kernels import AbstractStackedKernel
from metaprior.belief._linalg import cholesky, invert_factor
from metaprior.belief._members import (
    PATH_JITTER,
    VARIANCE_FLOOR,
    AbstractMembers,
    AbstractPath,
    Cross,
    Joint,
    MemberMoments,
    MemberSlopes,
)
from metaprior.belief._novelty import Known, Novelty
from metaprior.belief._processes import pick

# So many covariances are worked on at once.
BLOCK_SIZE = 2**20


class Sections(NamedTuple):
    """Covariances of values at points `x` with those at others, and what their slopes need.

    - `here`, `there`: what is known at both; `cross`, `own`: of the learned belief and of H.
    """

    values: Float[np.ndarray, "K Q k n"]
    here: Known
    there: Known
    cross: Cross
    own: Float[np.ndarray, "Q n k"]
    tape: Any


@dataclass(frozen=True)
class ExtendedPrior:
    """Processes over a study's cube, after the points that the learned belief knows.

    - `seen`: members of the learned belief as they look from the study; `rows` are those in use.
    - `noise_factor`: of the noise of a member, at new points.
    - `level`: far outside; `unit`: how much values differ.
    """

    seen: AbstractMembers
    rows: Int[np.ndarray, " K"]
    kernels: AbstractStackedKernel
    noise_factor: Float[np.ndarray, " Q"]
    novelty: Novelty
    level: float
    unit: float

    @cached_property
    def noise_variance(self) -> Float[np.ndarray, "K Q"]:
        nowhere = np.zeros((0, len(self.novelty.is_new)))
        return self.seen.moments(nowhere).noise_variance[self.rows, None] * self.noise_factor

    def mean(self, x: Float[np.ndarray, "k w"]) -> Float[np.ndarray, "K k"]:
        return self._mean(self.novelty(x), self.seen.moments(x).mean[self.rows])

    def moments(
        self, x: Float[np.ndarray, "k w"], known: Known
    ) -> tuple[Float[np.ndarray, "K k"], Float[np.ndarray, "K Q k"]]:
        """Mean and variance."""
        return self._moments(x, known, self.seen.moments(x))

    def slopes(
        self, x: Float[np.ndarray, "k w"], known: Known
    ) -> tuple[Any, Float[np.ndarray, "K k w"], Float[np.ndarray, "K Q k w"]]:
        """Mean and variance, and their derivatives by the points."""
        learned = self.seen.slopes(x)
        share = known.share[:, None]
        mean, variance = (part[self.rows] for part in learned.moments[:2])
        by_mean = share * learned.mean[self.rows]
        by_mean += (mean - self.level)[..., None] * known.share_slope
        by_variance = share**2 * learned.function_variance[self.rows]
        by_variance += 2.0 * variance[..., None] * (share * known.share_slope)
        # A stationary kernel has the same variance everywhere.
        own = self.kernels.diagonal(x[None])[..., None]
        own = 2.0 * own * (known.new[:, None] * known.new_slope)
        return self._moments(x, known, learned.moments), by_mean, by_variance[:, None] + own

    def sections(self, x: Float[np.ndarray, "k w"], other: Float[np.ndarray, "n w"]) -> Sections:
        """All covariances of values at `x` and `other`."""
        here, there = self.novelty(x), self.novelty(other)
        cross = self.seen.cross(x, other)
        own, tape = self.kernels.forward(self.for_each(other), self.for_each(x))
        learned = (here.share[:, None] * there.share) * cross.values[self.rows]
        new = (here.new[:, None] * there.new) * own.transpose(0, 2, 1)
        return Sections(learned[:, None] + new, here, there, cross, own, tape)

    def section_slopes(
        self, sections: Sections, weights: Float[np.ndarray, "K Q c k n"]
    ) -> Float[np.ndarray, "K Q c k w"]:
        r"""Derivatives of $\sum_i w_i T(x, o_i)$ by $x$."""
        here, there, cross = sections.here, sections.there, sections.cross
        num_members, num_kernels, num_functions, k, n = weights.shape
        shared, new = weights * there.share, weights * there.new
        # Members that are not in use have no weight.
        flat = (num_kernels * num_functions, k, n)
        every = np.zeros((len(cross.values), *flat))
        every[self.rows] = shared.reshape(num_members, *flat)
        width = here.share_slope.shape[1]
        learned = cross.pullback(every)[self.rows].reshape(*weights.shape[:4], width)
        total = np.einsum("KQckn,Kkn->KQck", shared, cross.values[self.rows])
        slopes = here.share[:, None] * learned + total[..., None] * here.share_slope
        flat = (num_kernels, num_members * num_functions, n, k)
        pulled = self.kernels.pullback(
            sections.tape, new.transpose(1, 0, 2, 4, 3).reshape(flat)
        ).reshape(num_kernels, num_members, num_functions, k, width)
        total = np.einsum("KQckn,Qnk->KQck", new, sections.own)
        slopes += here.new[:, None] * pulled.transpose(1, 0, 2, 3, 4)
        return slopes + total[..., None] * here.new_slope

    def for_each(self, x: Float[np.ndarray, "k w"]) -> Float[np.ndarray, "Q k w"]:
        """Points as they are, for every kernel."""
        return np.broadcast_to(x, (len(self.noise_factor), *x.shape))

    def only(self, k: int, q: int) -> "ExtendedPrior":
        """One process."""
        own = self.noise_factor[[q]]
        return replace(self, rows=self.rows[[k]], kernels=pick(self.kernels, [q]), noise_factor=own)

    def _mean(self, known: Known, learned: Float[np.ndarray, "K k"]) -> Float[np.ndarray, "K k"]:
        return known.share * learned + (1.0 - known.share) * self.level

    def _moments(
        self, x: Float[np.ndarray, "k w"], known: Known, learned: MemberMoments
    ) -> tuple[Float[np.ndarray, "K k"], Float[np.ndarray, "K Q k"]]:
        variance = known.share**2 * learned.function_variance[self.rows]
        own = known.new**2 * self.kernels.diagonal(x[None])
        return self._mean(known, learned.mean[self.rows]), variance[:, None] + own


@dataclass(frozen=True)
class ExtendedMembers(AbstractMembers):
    """Processes conditioned on the new points `x` of a run."""

    prior: ExtendedPrior
    x: Float[np.ndarray, "n w"]
    basis: Float[np.ndarray, "K Q n n"]
    coefficients: Float[np.ndarray, "K Q n"]

    @property
    def count(self):
        return int(np.prod(self.basis.shape[:2]))

    def moments(self, x):
        size = max(BLOCK_SIZE // (self.count * max(len(self.x), 8)), 1)
        starts = range(0, max(len(x), 1), size)
        blocks = [self._moments(x[start : start + size]) for start in starts]
        mean, variance = (np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True))
        return MemberMoments(mean, variance, self._noise)

    @property
    def _noise(self) -> Float[np.ndarray, " M"]:
        return self.prior.noise_variance.reshape(-1)

    def _moments(
        self, x: Float[np.ndarray, "k w"]
    ) -> tuple[Float[np.ndarray, "M k"], Float[np.ndarray, "M k"]]:
        sections = self.prior.sections(x, self.x)
        return self._posterior(sections, *self.prior.moments(x, sections.here))

    def _posterior(
        self,
        sections: Sections,
        mean: Float[np.ndarray, "K k"],
        variance: Float[np.ndarray, "K Q k"],
    ) -> tuple[Float[np.ndarray, "M k"], Float[np.ndarray, "M k"]]:
        """Mean and variance, from those before the new points."""
        mean = mean[:, None] + np.einsum("KQkn,KQn->KQk", sections.values, self.coefficients)
        projected = sections.values @ self.basis.transpose(0, 1, 3, 2)
        variance = variance - np.sum(projected**2, axis=3)
        variance = np.maximum(variance, VARIANCE_FLOOR * self.prior.unit**2)
        return mean.reshape(self.count, -1), variance.reshape(self.count, -1)

    def slopes(self, x):
        sections = self.prior.sections(x, self.x)
        solved = sections.values @ self.basis.transpose(0, 1, 3, 2) @ self.basis
        alpha = np.broadcast_to(self.coefficients[:, :, None], solved.shape)
        weights = np.stack([alpha, -2.0 * solved], axis=2)
        pulled = self.prior.section_slopes(sections, weights)
        before, by_mean, by_variance = self.prior.slopes(x, sections.here)
        shape = (self.count, *x.shape)
        return MemberSlopes(
            MemberMoments(*self._posterior(sections, *before), self._noise),
            (by_mean[:, None] + pulled[:, :, 0]).reshape(shape),
            (by_variance + pulled[:, :, 1]).reshape(shape),
        )

    def joint(self, index, x):
        k, q = divmod(index, self.basis.shape[1])
        prior = self.prior.only(k, q)
        known = prior.novelty(x)
        learned = prior.seen.joint(int(prior.rows[0]), x).covariance
        own = prior.kernels.values(prior.for_each(x), prior.for_each(x))
        covariance = np.outer(known.share, known.share) * learned
        covariance += np.outer(known.new, known.new) * own[0]
        section = prior.sections(x, self.x).values[0, 0]
        projected = section @ self.basis[k, q].T
        mean = prior.mean(x)[0] + section @ self.coefficients[k, q]
        return Joint(mean, covariance - projected @ projected.T)

    def path(self, index, anchors, rng):
        r"""$\mu(u)$ with the anchors as further centres: see `ConditionedProcesses.path`."""
        k, q = divmod(index, self.basis.shape[1])
        prior, basis = self.prior.only(k, q), self.basis[k, q]
        covariance = self.joint(index, anchors).covariance / prior.unit**2
        inverse_factor = invert_factor(cholesky(covariance, PATH_JITTER)) / prior.unit
        weights = rng.standard_normal(len(anchors)) @ inverse_factor
        on_run = basis.T @ (basis @ (prior.sections(self.x, anchors).values[0, 0] @ weights))
        centres = np.concatenate([self.x, anchors])
        coefficients = np.concatenate([self.coefficients[k, q] - on_run, weights])
        return ExtendedPath(prior, centres, coefficients)


@dataclass(frozen=True)
class ExtendedPath(AbstractPath):
    r"""$f(u) = m(u) + \sum_i c_i\, T(u, a_i)$ of one process."""

    prior: ExtendedPrior
    centres: Float[np.ndarray, "a w"]
    coefficients: Float[np.ndarray, " a"]

    def __call__(self, x):
        size = max(BLOCK_SIZE // max(len(self.centres), 8), 1)
        blocks = [self._values(x[start : start + size]) for start in range(0, len(x), size)]
        return np.concatenate([np.zeros(0), *blocks])

    def _values(self, x: Float[np.ndarray, "k w"]) -> Float[np.ndarray, " k"]:
        section = self.prior.sections(x, self.centres).values[0, 0]
        return self.prior.mean(x)[0] + section @ self.coefficients

    def slopes(self, x):
        sections = self.prior.sections(x, self.centres)
        weights = np.broadcast_to(self.coefficients, (1, 1, 1, len(x), len(self.centres)))
        pulled = self.prior.section_slopes(sections, weights)[0, 0, 0]
        (mean, _), by_mean, _ = self.prior.slopes(x, sections.here)
        return mean[0] + sections.values[0, 0] @ self.coefficients, by_mean[0] + pulled
