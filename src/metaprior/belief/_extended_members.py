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

import numpy as np
from jaxtyping import Float, Int

from metaprior.belief._kernels import AbstractStackedKernel
from metaprior.belief._linalg import cholesky, invert_factor
from metaprior.belief._members import (
    PATH_JITTER,
    VARIANCE_FLOOR,
    AbstractMembers,
    AbstractPath,
    Joint,
    MemberMoments,
    MemberSlopes,
)
from metaprior.belief._novelty import Novelty
from metaprior.belief._processes import pick

# So many covariances are worked on at once.
BLOCK_SIZE = 2**20


@dataclass(frozen=True)
class ExtendedPrior:
    """Processes over a study's cube, after the points that the learned belief knows.

    - `seen`: members of the learned belief as they look from the study; `rows` are those in use.
    - `level`: of the run; `unit`: how much values differ.
    """

    seen: AbstractMembers
    rows: Int[np.ndarray, " K"]
    kernels: AbstractStackedKernel
    novelty: Novelty
    level: float
    unit: float

    @property
    def num_kernels(self) -> int:
        return len(self.kernels.diagonal(np.zeros((1, 0, len(self.novelty.is_new)))))

    @cached_property
    def noise_variance(self) -> Float[np.ndarray, " K"]:
        nowhere = np.zeros((0, len(self.novelty.is_new)))
        return self.seen.moments(nowhere).noise_variance[self.rows]

    def mean(self, x: Float[np.ndarray, "k w"]) -> Float[np.ndarray, "K k"]:
        return self._mean(x, self.seen.moments(x).mean[self.rows])

    def moments(
        self, x: Float[np.ndarray, "k w"]
    ) -> tuple[Float[np.ndarray, "K k"], Float[np.ndarray, "K Q k"]]:
        """Mean and variance."""
        known, learned = self.novelty(x), self.seen.moments(x)
        variance = known.share**2 * learned.function_variance[self.rows]
        own = known.new**2 * self.kernels.diagonal(x[None])
        return self._mean(x, learned.mean[self.rows]), variance[:, None] + own

    def between(
        self, x: Float[np.ndarray, "k w"], other: Float[np.ndarray, "n w"]
    ) -> Float[np.ndarray, "K Q k n"]:
        """All covariances of values at `x` and `other`."""
        here, there = self.novelty(x), self.novelty(other)
        learned = self.seen.cross(x, other).values[self.rows]
        own, _ = self.kernels.forward(x[None], other[None])
        learned = (here.share[:, None] * there.share) * learned
        return learned[:, None] + (here.new[:, None] * there.new) * own

    def moment_slopes(
        self, x: Float[np.ndarray, "k w"]
    ) -> tuple[Float[np.ndarray, "K k w"], Float[np.ndarray, "K Q k w"]]:
        """Derivatives of mean and variance by the points."""
        known, learned = self.novelty(x), self.seen.slopes(x)
        share = known.share[:, None]
        mean, variance = (part[self.rows] for part in learned.moments[:2])
        by_mean = share * learned.mean[self.rows]
        by_mean += (mean - self.level)[..., None] * known.share_slope
        by_variance = share**2 * learned.function_variance[self.rows]
        by_variance += 2.0 * variance[..., None] * (share * known.share_slope)
        # A stationary kernel has the same variance everywhere.
        own = self.kernels.diagonal(x[None])[..., None]
        own = 2.0 * own * (known.new[:, None] * known.new_slope)
        return by_mean, by_variance[:, None] + own

    def section_slopes(
        self,
        x: Float[np.ndarray, "k w"],
        other: Float[np.ndarray, "n w"],
        weights: Float[np.ndarray, "K Q c k n"],
    ) -> Float[np.ndarray, "K Q c k w"]:
        r"""Derivatives of $\sum_i w_i T(x, o_i)$ by $x$."""
        here, there = self.novelty(x), self.novelty(other)
        shape = (*weights.shape[:4], x.shape[1])
        num_members, num_kernels, num_functions = shape[:3]
        shared, new = weights * there.share, weights * there.new
        cross = self.seen.cross(x, other)
        # Members that are not in use have no weight.
        flat = (num_kernels * num_functions, len(x), len(other))
        every = np.zeros((len(cross.values), *flat))
        every[self.rows] = shared.reshape(num_members, *flat)
        learned = cross.pullback(every)[self.rows].reshape(shape)
        total = np.einsum("KQckn,Kkn->KQck", shared, cross.values[self.rows])
        slopes = here.share[:, None] * learned + total[..., None] * here.share_slope
        own, tape = self.kernels.forward(other[None], x[None])
        flat = (num_kernels, num_members * num_functions, len(other), len(x))
        pulled = self.kernels.pullback(tape, new.transpose(1, 0, 2, 4, 3).reshape(flat))
        pulled = pulled.reshape(num_kernels, num_members, *shape[2:])
        total = np.einsum("KQckn,Qnk->KQck", new, own)
        slopes += here.new[:, None] * pulled.transpose(1, 0, 2, 3, 4)
        return slopes + total[..., None] * here.new_slope

    def only(self, k: int, q: int) -> "ExtendedPrior":
        """One process."""
        return replace(self, rows=self.rows[[k]], kernels=pick(self.kernels, [q]))

    def _mean(
        self, x: Float[np.ndarray, "k w"], learned: Float[np.ndarray, "K k"]
    ) -> Float[np.ndarray, "K k"]:
        share = self.novelty(x).share
        return share * learned + (1.0 - share) * self.level


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
        return np.repeat(self.prior.noise_variance, self.basis.shape[1])

    def _moments(
        self, x: Float[np.ndarray, "k w"]
    ) -> tuple[Float[np.ndarray, "M k"], Float[np.ndarray, "M k"]]:
        mean, variance = self.prior.moments(x)
        covariance = self.prior.between(x, self.x)
        mean = mean[:, None] + np.einsum("KQkn,KQn->KQk", covariance, self.coefficients)
        projected = covariance @ self.basis.transpose(0, 1, 3, 2)
        variance = variance - np.sum(projected**2, axis=3)
        variance = np.maximum(variance, VARIANCE_FLOOR * self.prior.unit**2)
        return mean.reshape(self.count, -1), variance.reshape(self.count, -1)

    def slopes(self, x):
        covariance = self.prior.between(x, self.x)
        solved = covariance @ self.basis.transpose(0, 1, 3, 2) @ self.basis
        alpha = np.broadcast_to(self.coefficients[:, :, None], solved.shape)
        weights = np.stack([alpha, -2.0 * solved], axis=2)
        pulled = self.prior.section_slopes(x, self.x, weights)
        by_mean, by_variance = self.prior.moment_slopes(x)
        shape = (self.count, *x.shape)
        return MemberSlopes(
            MemberMoments(*self._moments(x), self._noise),
            (by_mean[:, None] + pulled[:, :, 0]).reshape(shape),
            (by_variance + pulled[:, :, 1]).reshape(shape),
        )

    def joint(self, index, x):
        k, q = divmod(index, self.basis.shape[1])
        prior = self.prior.only(k, q)
        known = prior.novelty(x)
        learned = prior.seen.joint(int(prior.rows[0]), x).covariance
        own, _ = prior.kernels.forward(x[None], x[None])
        covariance = np.outer(known.share, known.share) * learned
        covariance += np.outer(known.new, known.new) * own[0]
        section = prior.between(x, self.x)[0, 0]
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
        on_run = basis.T @ (basis @ (prior.between(self.x, anchors)[0, 0] @ weights))
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
        section = self.prior.between(x, self.centres)[0, 0]
        return self.prior.mean(x)[0] + section @ self.coefficients

    def slopes(self, x):
        weights = np.broadcast_to(self.coefficients, (1, 1, 1, len(x), len(self.centres)))
        pulled = self.prior.section_slopes(x, self.centres, weights)[0, 0, 0]
        return self._values(x), self.prior.moment_slopes(x)[0][0] + pulled
