r"""Gaussian processes as learned, many of them side by side: mean, kernel, and their derivatives.

    symbol      meaning                                              shape
    x           points of the unit cube                              (n, d)
    m(x)        prior mean, in standardised units                    (g, n)
    e(x)        features: where the kernel k_0 sees a point          (g, n, e)
    v_c, v_a    variances of a task's level and amplitude            (g,)

$$ k(x, z) = k_0(e(x), e(z)) + v_c + v_a\, m(x)\, m(z) $$
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Int

from metaprior.belief._kernels import AbstractStackedKernel
from metaprior.belief._maps import AbstractMap, Tape

Stack = TypeVar("Stack")


class EmbeddedPoints(NamedTuple):
    """Points as the processes see them."""

    mean: Float[np.ndarray, "g n"]
    features: Float[np.ndarray, "g n e"]

    def rows(self, start: int, stop: int) -> "EmbeddedPoints":
        """Some of the points."""
        return EmbeddedPoints(self.mean[:, start:stop], self.features[:, start:stop])


class EmbeddingTape(NamedTuple):
    """What the derivative of an embedding needs to know of it."""

    warp: Tape
    mean: Tape
    features: Tape


@dataclass(frozen=True)
class GaussianProcesses:
    """Processes over one unit cube, stacked along a leading axis of every array.

    - `x_mean`, `x_std`: of the inputs; everything else is in standardised units.
    """

    x_mean: Float[np.ndarray, "g d"]
    x_std: Float[np.ndarray, "g d"]
    warp: AbstractMap
    mean: AbstractMap
    features: AbstractMap
    kernel: AbstractStackedKernel
    offset_variance: Float[np.ndarray, " g"]
    amplitude_variance: Float[np.ndarray, " g"]

    def embed(self, x: Float[np.ndarray, "n d"]) -> EmbeddedPoints:
        """The points `x` as every process sees them."""
        z = self.warp.values(self._standardised(x))
        return EmbeddedPoints(self.mean.values(z)[:, :, 0], self.features.values(z))

    def embed_with_tape(self, x: Float[np.ndarray, "n d"]) -> tuple[EmbeddedPoints, EmbeddingTape]:
        """The same, and what `pullback` needs to know of it."""
        z, warp_tape = self.warp.forward(self._standardised(x))
        mean, mean_tape = self.mean.forward(z)
        features, features_tape = self.features.forward(z)
        embedded = EmbeddedPoints(mean[:, :, 0], features)
        return embedded, EmbeddingTape(warp_tape, mean_tape, features_tape)

    def pullback(
        self,
        tape: EmbeddingTape,
        by_mean: Float[np.ndarray, "g b n"],
        by_features: Float[np.ndarray, "g c n e"],
    ) -> Float[np.ndarray, "g c n d"]:
        """Derivatives by the points, from derivatives by what the processes see of them.

        - `by_mean`: of the first `b` functions; the others do not depend on it.
        """
        by_z = self.features.pullback(tape.features, by_features)
        through_mean = self.mean.pullback(tape.mean, by_mean[..., None])
        by_z[:, : by_mean.shape[1]] += through_mean
        return self.warp.pullback(tape.warp, by_z) / self.x_std[:, None, None, :]

    def pooled(
        self,
        tape: EmbeddingTape,
        by_mean: Float[np.ndarray, "g n"],
        by_features: Float[np.ndarray, "g n e"],
    ) -> Float[np.ndarray, "n d"]:
        """The sum over all processes of the derivatives of one function each."""
        # A warp bends each input by itself: its derivatives are factors.
        factor = self.warp.pullback(tape.warp, self._input_rates)[:, 0]
        through_features = self.features.pooled(tape.features, by_features, factor)
        return through_features + self.mean.pooled(tape.mean, by_mean[..., None], factor)

    def _standardised(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "g n d"]:
        if not self._in_one_cube:
            return (x[None] - self.x_mean[:, None, :]) / self.x_std[:, None, :]
        z = (x - self.x_mean[0]) / self.x_std[0]
        return np.broadcast_to(z, (len(self.x_std), *z.shape))

    @cached_property
    def _input_rates(self) -> Float[np.ndarray, "g 1 1 d"]:
        return 1.0 / self.x_std[:, None, None, :]

    @cached_property
    def _in_one_cube(self) -> bool:
        """Whether the inputs of all processes have the same units."""
        same = (self.x_mean == self.x_mean[:1]).all() and (self.x_std == self.x_std[:1]).all()
        return bool(len(self.x_std) and same)

    def between(self, a: EmbeddedPoints, b: EmbeddedPoints) -> Float[np.ndarray, "g n k"]:
        """All prior covariances of values at `a` and `b`."""
        return self._with_effects(a, b, self.kernel.values(a.features, b.features))

    def between_with_tape(
        self, a: EmbeddedPoints, b: EmbeddedPoints
    ) -> tuple[Float[np.ndarray, "g n k"], Tape]:
        covariance, tape = self.kernel.forward(a.features, b.features)
        return self._with_effects(a, b, covariance), tape

    def _with_effects(
        self, a: EmbeddedPoints, b: EmbeddedPoints, covariance: Float[np.ndarray, "g n k"]
    ) -> Float[np.ndarray, "g n k"]:
        """The covariances of processes that differ in level and amplitude as well."""
        if not self.has_effects:
            return covariance
        left, right = np.empty((*a.mean.shape, 2)), np.empty((len(b.mean), 2, b.mean.shape[1]))
        left[:, :, 0] = self.amplitude_variance[:, None] * a.mean
        left[:, :, 1] = self.offset_variance[:, None]
        right[:, 0], right[:, 1] = b.mean, 1.0
        effects = left @ right
        effects += covariance
        return effects

    def section_slopes(
        self,
        centres: EmbeddedPoints,
        tape: Tape,
        coefficients: Float[np.ndarray, "g c n k"],
    ) -> tuple[Float[np.ndarray, "g c k"], Float[np.ndarray, "g c k e"]]:
        r"""Derivatives of $\sum_i c_i\, k(z_i, x)$ by the mean and by the features at $x$.

        - `tape`: of `between_with_tape`, from the centres $z_i$ to the points $x$.
        """
        by_features = self.kernel.pullback(tape, coefficients)
        if not self.has_effects:
            return np.zeros(by_features.shape[:3]), by_features
        by_mean = (centres.mean[:, None, None] @ coefficients)[:, :, 0]
        return self.amplitude_variance[:, None, None] * by_mean, by_features

    def prior_variance(self, a: EmbeddedPoints) -> Float[np.ndarray, "g _"]:
        r"""$k(x, x)$ at each point, or one number for all points."""
        if not self.has_effects:
            return self._plain_variance(a)
        own = self.amplitude_variance[:, None] * (a.mean * a.mean)
        return self._plain_variance(a) + self.offset_variance[:, None] + own

    def _plain_variance(self, a: EmbeddedPoints) -> Float[np.ndarray, "g _"]:
        """Without level and amplitude."""
        if self.kernel.is_stationary:
            return self._same_variance
        return self.kernel.diagonal(a.features)

    @cached_property
    def _same_variance(self) -> Float[np.ndarray, "g 1"]:
        """That of a kernel which is the same everywhere: no feature is looked at."""
        return self.kernel.diagonal(np.zeros((len(self.x_std), 1, 0)))

    @cached_property
    def has_effects(self) -> bool:
        """Whether tasks differ in level or amplitude."""
        return bool(np.any(self.offset_variance) or np.any(self.amplitude_variance))


def pick(stack: Stack, rows: Sequence[int]) -> Stack:
    """Some of stacked things, as a stack."""
    return _pick(stack, np.asarray(rows, int))


@cache
def _field_names(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _pick(part: Any, rows: Int[np.ndarray, " r"]) -> Any:
    if isinstance(part, np.ndarray):
        return part[rows]
    if hasattr(part, "picked"):  # what it holds is stacked in a way of its own
        return part.picked(rows)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        named = {name: _pick(getattr(part, name), rows) for name in _field_names(type(part))}
        return type(part)(**named)
    if isinstance(part, tuple):
        picked = [_pick(p, rows) for p in part]
        return type(part)(*picked) if hasattr(part, "_fields") else tuple(picked)
    return part
