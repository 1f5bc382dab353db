r"""Processes that have parts in common: what they share is evaluated once for all of them.

Members of a mixture often differ in little: the same networks and kernel with other residuals, say.
A shared part is a stack of its own and `rows`, which says for every process of the larger stack
which of the smaller one it is.

    symbol      meaning                                             shape
    rows        index of each process's part                        (g,)
    slot        its place among those that have the same part       (g,)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from metaprior.belief._kernels import AbstractStackedKernel, StackedMatern, StackedSum
from metaprior.belief._maps import AbstractMap
from metaprior.belief._processes import GaussianProcesses, pick


@dataclass(frozen=True)
class SharedRows:
    """Which process of a small stack each of a larger one is; all of the small one are used."""

    index: Int[np.ndarray, " g"]

    @cached_property
    def first(self) -> Int[np.ndarray, " small"]:
        """For each process of the small stack, one of the larger stack."""
        return np.unique(self.index, return_index=True)[1]

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

    def chosen(self, processes: Sequence[int]) -> tuple[list[int], "SharedRows"]:
        """Which of the small stack some processes need, and their rows in what is left of it."""
        used, inverse = np.unique(self.index[list(processes)], return_inverse=True)
        return used.tolist(), SharedRows(inverse)

    @property
    def _num_slots(self) -> int:
        return int(np.max(self.slot)) + 1


@dataclass(frozen=True)
class SharedMap(AbstractMap):
    """Maps of which several processes have the same; these see the same points."""

    base: AbstractMap
    rows: SharedRows

    def values(self, z):
        return self.base.values(z[self.rows.first])[self.rows.index]

    def forward(self, z):
        values, tape = self.base.forward(z[self.rows.first])
        return values[self.rows.index], tape

    def pullback(self, tape, cotangent):
        pulled = self.base.pullback(tape, self.rows.gathered(cotangent))
        return self.rows.scattered(pulled, cotangent.shape[1])

    def picked(self, rows: Sequence[int]) -> "SharedMap":
        """The maps of some processes."""
        used, shared = self.rows.chosen(rows)
        return SharedMap(pick(self.base, used), shared)


@dataclass(frozen=True)
class SharedKernel(AbstractStackedKernel):
    """Kernels of which several processes have the same; these see the same features."""

    base: AbstractStackedKernel
    rows: SharedRows

    def forward(self, a, b):
        values, tape = self.base.forward(a[self.rows.first], b[self.rows.first])
        return values[self.rows.index], tape

    def pullback(self, tape, coefficients):
        pulled = self.base.pullback(tape, self.rows.gathered(coefficients))
        return self.rows.scattered(pulled, coefficients.shape[1])

    def diagonal(self, a):
        return self.base.diagonal(a[self.rows.first])[self.rows.index]

    def diagonal_slopes(self, a):
        return self.base.diagonal_slopes(a[self.rows.first])[self.rows.index]

    def picked(self, rows: Sequence[int]) -> "SharedKernel":
        """The kernels of some processes."""
        used, shared = self.rows.chosen(rows)
        return SharedKernel(pick(self.base, used), shared)


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


@dataclass(frozen=True)
class OnFeatures(AbstractStackedKernel):
    """A kernel that sees the features from `start` to `stop`; `None` is the end."""

    base: AbstractStackedKernel
    start: int
    stop: int | None

    def forward(self, a, b):
        values, tape = self.base.forward(self._seen(a), self._seen(b))
        return values, (tape, b.shape[2])

    def pullback(self, tape, coefficients):
        inner, width = tape
        return self._placed(self.base.pullback(inner, coefficients), width)

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
    x_std = used.x_std[index.index]
    probe = np.zeros((len(used.x_std), 1, x_std.shape[1]))
    width = used.features.values(used.warp.values(probe)).shape[2]
    scaled = np.sqrt(x_std.shape[1]) * lengthscale[:, None] / x_std
    repeated = pick(used, index.index.tolist())
    return replace(
        repeated,
        mean=SharedMap(used.mean, index),
        features=BesideInputs(SharedMap(used.features, index)),
        kernel=StackedSum(
            OnFeatures(SharedKernel(used.kernel, index), 0, width),
            OnFeatures(StackedMatern(scaled, variance, 2.5), width, None),
        ),
    )
