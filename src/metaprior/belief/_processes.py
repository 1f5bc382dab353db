r"""Gaussian processes as learned, many of them side by side: mean, kernel, and their derivatives.

    symbol      meaning                                              shape
    x           points of the unit cube                              (n, d)
    m(x)        prior mean, in standardised units                    (g, n)
    e(x)        where the kernel sees a point, over lengthscales     (g, n, e)
    v_c, v_a    variances of a task's level and amplitude            (g,)

$$ k(x, z) = \nu\, e^{-\frac12 |e(x) - e(z)|^2} + v_c + v_a\, m(x)\, m(z) $$
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from metaprior.belief._maps import AbstractMap, Tape

Stack = TypeVar("Stack")


class Embedded(NamedTuple):
    """Points as the processes see them."""

    mean: Float[np.ndarray, "g n"]
    features: Float[np.ndarray, "g n e"]

    def rows(self, start: int, stop: int) -> "Embedded":
        """Some of the points."""
        return Embedded(self.mean[:, start:stop], self.features[:, start:stop])


class EmbeddingTape(NamedTuple):
    """What the derivative of an embedding needs to know of it."""

    warp: Tape
    mean: Tape
    features: Tape


@dataclass(frozen=True)
class GaussianProcesses:
    """Processes over one unit cube, stacked along a leading axis of every array.

    - `x_mean`, `x_std`: of the inputs; everything else is in standardised units.
    - `lengthscale`: of the features, one for all of them or one for each.
    """

    x_mean: Float[np.ndarray, "g d"]
    x_std: Float[np.ndarray, "g d"]
    warp: AbstractMap
    mean: AbstractMap
    features: AbstractMap
    lengthscale: Float[np.ndarray, "g _"]
    variance: Float[np.ndarray, " g"]
    offset_variance: Float[np.ndarray, " g"]
    amplitude_variance: Float[np.ndarray, " g"]

    def embed(self, x: Float[np.ndarray, "n d"]) -> Embedded:
        """The points `x` as every process sees them."""
        return self.embed_with_tape(x)[0]

    def embed_with_tape(self, x: Float[np.ndarray, "n d"]) -> tuple[Embedded, EmbeddingTape]:
        z = (x[None] - self.x_mean[:, None, :]) / self.x_std[:, None, :]
        z, warp_tape = self.warp.forward(z)
        mean, mean_tape = self.mean.forward(z)
        features, features_tape = self.features.forward(z)
        embedded = Embedded(mean[:, :, 0], features / self.lengthscale[:, None, :])
        return embedded, EmbeddingTape(warp_tape, mean_tape, features_tape)

    def pullback(
        self,
        tape: EmbeddingTape,
        by_mean: Float[np.ndarray, "g c n"],
        by_features: Float[np.ndarray, "g c n e"],
    ) -> Float[np.ndarray, "g c n d"]:
        """Derivatives by the points, from derivatives by what the processes see of them."""
        scaled = by_features / self.lengthscale[:, None, None, :]
        by_z = self.mean.pullback(tape.mean, by_mean[..., None])
        by_z = by_z + self.features.pullback(tape.features, scaled)
        return self.warp.pullback(tape.warp, by_z) / self.x_std[:, None, None, :]

    def between(self, a: Embedded, b: Embedded) -> Float[np.ndarray, "g n k"]:
        """All prior covariances of values at `a` and `b`."""
        return self.add_effects(self.wave(a, b), a, b)

    def wave(self, a: Embedded, b: Embedded) -> Float[np.ndarray, "g n k"]:
        r"""$\nu\, e^{-|e(a) - e(b)|^2 / 2}$, the part of the kernel that is not an effect."""
        values = np.empty((*a.mean.shape, b.mean.shape[1]))
        for own, u, v in zip(values, a.features, b.features, strict=True):
            # Differences, not products: exact for points that are close to each other.
            cdist(u, v, "sqeuclidean", out=own)
        values *= -0.5
        np.exp(values, out=values)
        values *= self.variance[:, None, None]
        return values

    def add_effects(
        self, wave: Float[np.ndarray, "g n k"], a: Embedded, b: Embedded
    ) -> Float[np.ndarray, "g n k"]:
        """The covariances of `between` from those of `wave`."""
        if not self.has_effects:
            return wave
        products = a.mean[:, :, None] * b.mean[:, None, :]
        products *= self.amplitude_variance[:, None, None]
        products += self.offset_variance[:, None, None]
        return wave + products

    def prior_variance(self, a: Embedded) -> Float[np.ndarray, "g n"]:
        r"""$k(x, x)$ at each point."""
        level = (self.variance + self.offset_variance)[:, None]
        return level + self.amplitude_variance[:, None] * a.mean**2

    @cached_property
    def has_effects(self) -> bool:
        """Whether tasks differ in level or amplitude."""
        return bool(np.any(self.offset_variance) or np.any(self.amplitude_variance))


def section_slopes(
    processes: GaussianProcesses,
    centres: Embedded,
    coefficients: Float[np.ndarray, "g c n k"],
    at: Embedded,
    wave: Float[np.ndarray, "g n k"],
) -> tuple[Float[np.ndarray, "g c k"], Float[np.ndarray, "g c k e"]]:
    r"""Derivatives of $\sum_i c_i\, k(z_i, x)$ by the mean and by the features at $x$.

    $$ \partial_m = v_a \sum_i c_i\, m(z_i), \qquad
       \partial_e = \sum_i c_i\, \nu\, e^{-\frac12 |e(z_i) - e(x)|^2} (e(z_i) - e(x)) $$

    - `wave`: `processes.wave(centres, at)`, which the caller has.
    """
    weighted = coefficients * wave[:, None]
    pulled = weighted.transpose(0, 1, 3, 2) @ centres.features[:, None]
    by_features = pulled - weighted.sum(axis=2)[..., None] * at.features[:, None]
    if not processes.has_effects:
        return np.zeros(by_features.shape[:3]), by_features
    by_mean = np.einsum("gcnk,gn->gck", coefficients, centres.mean)
    return processes.amplitude_variance[:, None, None] * by_mean, by_features


def pick(stack: Stack, rows: Sequence[int]) -> Stack:
    """Some of stacked things, as a stack."""
    return _pick(stack, list(rows))


def _pick(part: Any, rows: list[int]) -> Any:
    if isinstance(part, np.ndarray):
        return part[rows]
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        named = {f.name: _pick(getattr(part, f.name), rows) for f in dataclasses.fields(part)}
        return dataclasses.replace(part, **named)
    if isinstance(part, tuple):
        picked = [_pick(p, rows) for p in part]
        return type(part)(*picked) if hasattr(part, "_fields") else tuple(picked)
    return part
