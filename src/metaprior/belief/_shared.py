r"""Processes that have parts in common: what they share is evaluated once for all of them.

Members of a mixture often differ in little: the same networks and kernel with other residuals, say.
A shared part is a stack of its own and `rows`, which says for every process of the larger stack
which of the smaller one it is.

    symbol      meaning                                             shape
    rows        index of each process's part                        (g,)
    slot        its place among those that have the same part       (g,)
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from metaprior.belief._distances import is_repeated
from metaprior.belief._kernels import AbstractStackedKernel, StackedMatern, StackedSum
from metaprior.belief._maps import AbstractMap, Unchanged
from metaprior.belief._processes import GaussianProcesses, pick


@dataclass(frozen=True)
class SharedRows:
    """Which process of a small stack each of a larger one is; all of the small one are used."""

    index: Int[np.ndarray, " g"]

    @cached_property
    def first(self) -> Int[np.ndarray, " small"]:
        """For each process of the small stack, one of the larger stack."""
        return np.unique(self.index, return_index=True)[1]

    def narrowed(self, points: Float[np.ndarray, "g n e"]) -> Float[np.ndarray, "small n e"]:
        """Points of the larger stack for the small one."""
        # What is the same for all stays so: nothing is copied.
        return points[: len(self.first)] if is_repeated(points) else points[self.first]

    @cached_property
    def indicator(self) -> Float[np.ndarray, "small g"]:
        """1 where a process of the small stack is one of the larger stack."""
        return (np.arange(len(self.first))[:, None] == self.index).astype(float)

    def summed(self, each: Float[np.ndarray, "g ..."]) -> Float[np.ndarray, "small ..."]:
        """The sums over the processes of the larger stack that are the same one."""
        return combined(self.indicator, each)

    @cached_property
    def slot(self) -> Int[np.ndarray, " g"]:
        """How many of the larger stack with the same part come before each."""
        same = self.index[:, None] == self.index[None, :]
        return np.sum(np.tril(same, -1), axis=1)

    def gathered(self, each: Float[np.ndarray, "g c *rest"]) -> Float[np.ndarray, "small _ *rest"]:
        """Linear functions of the larger stack as those of the small one, zero where none is."""
        small = np.zeros((len(self.first), self._num_slots, *each.shape[1:]))
        small[self.index, self.slot] = each
        # Spelled out, since there may be no points and then nothing to infer a length from.
        count = self._num_slots * each.shape[1]
        return small.reshape(len(self.first), count, *each.shape[2:])

    def scattered(self, small: Float[np.ndarray, "small _ *rest"], count: int) -> np.ndarray:
        """What came of the functions, `count` per process, for the larger stack again."""
        by_slot = small.reshape(len(small), self._num_slots, count, *small.shape[2:])
        return by_slot[self.index, self.slot]

    def chosen(self, processes: Int[np.ndarray, " r"]) -> tuple[list[int], "SharedRows"]:
        """Which of the small stack some processes need, and their rows in what is left of it."""
        used, inverse = np.unique(self.index[processes], return_inverse=True)
        return used.tolist(), SharedRows(inverse)

    @property
    def _num_slots(self) -> int:
        return int(np.max(self.slot)) + 1


def combined(
    weights: Float[np.ndarray, "h g"], each: Float[np.ndarray, "g ..."]
) -> Float[np.ndarray, "h ..."]:
    """Weighted sums over a stack."""
    # The length is spelled out, since there may be no points and nothing to infer it from.
    flat = each.reshape(len(each), math.prod(each.shape[1:]))
    return (weights @ flat).reshape(len(weights), *each.shape[1:])


@dataclass(frozen=True)
class SharedMap(AbstractMap):
    """Maps of which several processes have the same; these see the same points."""

    base: AbstractMap
    rows: SharedRows

    def values(self, z):
        return self.base.values(self.rows.narrowed(z))[self.rows.index]

    def forward(self, z):
        values, tape = self.base.forward(self.rows.narrowed(z))
        return values[self.rows.index], tape

    def pullback(self, tape, cotangent):
        pulled = self.base.pullback(tape, self.rows.gathered(cotangent))
        return self.rows.scattered(pulled, cotangent.shape[1])

    def pooled(self, tape, cotangent, factor):
        return self.base.pooled(tape, self.rows.summed(cotangent), factor[self.rows.first])

    def picked(self, rows: Int[np.ndarray, " r"]) -> "SharedMap":
        """The maps of some processes."""
        used, shared = self.rows.chosen(rows)
        return SharedMap(pick(self.base, used), shared)


@dataclass(frozen=True)
class SharedKernel(AbstractStackedKernel):
    """Kernels of which several processes have the same, up to a factor; these see the same
    features, and through them the points."""

    base: AbstractStackedKernel
    rows: SharedRows
    factor: Float[np.ndarray, " g"]

    def pinned(self, a):
        return SharedKernel(self.base.pinned(self.rows.narrowed(a)), self.rows, self.factor)

    @property
    def is_stationary(self):
        return self.base.is_stationary

    def values(self, a, b):
        values = self.base.values(self.rows.narrowed(a), self.rows.narrowed(b))
        return combined(self._spread, values)

    def forward(self, a, b):
        values, tape = self.base.forward(self.rows.narrowed(a), self.rows.narrowed(b))
        return combined(self._spread, values), tape

    def pullback(self, tape, coefficients):
        scaled = self.factor[:, None, None, None] * coefficients
        pulled = self.base.pullback(tape, self.rows.gathered(scaled))
        return self.rows.scattered(pulled, coefficients.shape[1])

    def pooled(self, tape, coefficients):
        pulled = self.base.pooled(tape, combined(self._spread.T, coefficients))
        every = np.zeros((len(coefficients), *pulled.shape[1:]))
        every[self.rows.first] = pulled
        return every

    def diagonal(self, a):
        values = self.base.diagonal(a[self.rows.first])
        return self.factor[:, None] * values[self.rows.index]

    def diagonal_slopes(self, a):
        slopes = self.base.diagonal_slopes(a[self.rows.first])
        return self.factor[:, None, None] * slopes[self.rows.index]

    @cached_property
    def _spread(self) -> Float[np.ndarray, "g small"]:
        """From the kernels to those of all processes, the factor at the place of the one."""
        return self.factor[:, None] * self.rows.indicator.T

    def picked(self, rows: Int[np.ndarray, " r"]) -> "SharedKernel":
        """The kernels of some processes."""
        used, shared = self.rows.chosen(rows)
        return SharedKernel(pick(self.base, used), shared, self.factor[rows])


@dataclass(frozen=True)
class BesideInputs(AbstractMap):
    """The values of other maps, and after them the points themselves."""

    base: AbstractMap

    def values(self, z):
        return np.concatenate([self.base.values(z), z], axis=2)

    def forward(self, z):
        values, tape = self.base.forward(z)
        return np.concatenate([values, z], axis=2), (tape, values.shape[2])

    def pullback(self, tape, cotangent):
        inner, width = tape
        return self.base.pullback(inner, cotangent[..., :width]) + cotangent[..., width:]

    def pooled(self, tape, cotangent, factor):
        inner, width = tape
        through = self.base.pooled(inner, cotangent[..., :width], factor)
        return through + (factor * cotangent[..., width:]).sum(axis=0)


@dataclass(frozen=True)
class OnFeatures(AbstractStackedKernel):
    """A kernel that sees the features from `start` to `stop`; `None` is the end."""

    base: AbstractStackedKernel
    start: int
    stop: int | None

    def pinned(self, a):
        return OnFeatures(self.base.pinned(self._seen(a)), self.start, self.stop)

    @property
    def is_stationary(self):
        return self.base.is_stationary

    def values(self, a, b):
        return self.base.values(self._seen(a), self._seen(b))

    def forward(self, a, b):
        values, tape = self.base.forward(self._seen(a), self._seen(b))
        return values, (tape, b.shape[2])

    def pullback(self, tape, coefficients):
        inner, width = tape
        return self._placed(self.base.pullback(inner, coefficients), width)

    def pooled(self, tape, coefficients):
        inner, width = tape
        return self._placed(self.base.pooled(inner, coefficients), width)

    def diagonal(self, a):
        return self.base.diagonal(self._seen(a))

    def diagonal_slopes(self, a):
        return self._placed(self.base.diagonal_slopes(self._seen(a)), a.shape[2])

    def _seen(self, a: Float[np.ndarray, "g n e"]) -> Float[np.ndarray, "g n _"]:
        return a[..., self.start : self.stop]

    def _placed(self, slopes: Float[np.ndarray, "... _"], width: int) -> np.ndarray:
        every = np.zeros((*slopes.shape[:-1], width))
        every[..., self.start : self.stop] = slopes
        return every


def with_residuals(
    processes: GaussianProcesses,
    rows: Int[np.ndarray, " g"],
    variance: Float[np.ndarray, " g"],
    lengthscale: Float[np.ndarray, " g"],
) -> GaussianProcesses:
    r"""Processes whose kernel has a Matérn-5/2 term beside that of `processes[rows]`.

    - `lengthscale`: in the unit cube, in units of $\sqrt d$.
    """
    index = SharedRows(np.unique(rows, return_inverse=True)[1])
    used = pick(processes, np.unique(rows).tolist())
    x_mean, x_std = used.x_mean[index.index], used.x_std[index.index]
    probe = np.zeros((len(used.x_std), 1, x_std.shape[1]))
    width = used.features.values(used.warp.values(probe)).shape[2]
    # What has no variance may have any lengthscale: that of another.
    lengthscale = np.where(variance > 0.0, lengthscale, lengthscale[np.argmax(variance)])
    scaled = np.sqrt(x_std.shape[1]) * lengthscale[:, None] / x_std
    # Where inputs are bent, each learned process sees them in its own way.
    own = np.zeros(len(rows)) if isinstance(used.warp, Unchanged) else index.index
    alike = np.column_stack([x_mean, x_std, scaled, own])
    _, first, which = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    residual = StackedMatern(scaled[first], np.ones(len(first)), 2.5)
    repeated = pick(used, index.index.tolist())
    return replace(
        repeated,
        mean=SharedMap(used.mean, index),
        features=BesideInputs(SharedMap(used.features, index)),
        kernel=StackedSum(
            OnFeatures(SharedKernel(used.kernel, index, np.ones(len(rows))), 0, width),
            OnFeatures(
                SharedKernel(residual, SharedRows(which.reshape(-1)), variance), width, None
            ),
        ),
    )
