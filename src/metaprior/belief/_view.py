r"""How points of one unit cube lie in another.

    symbol      meaning                                              shape
    u           points of the window's cube                          (k, w)
    z           the same points in the cube of the whole space       (k, d)

$$ z = \frac{g(A u + b) - s}{r}, \qquad g(t) = t, \ e^t \text{ or } \ln t $$
"""

import abc
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from metaprior.data import Space

IDENTITY, EXPONENTIAL, LOGARITHM = 0, 1, 2


class AbstractView(abc.ABC):
    """A map of points, and its derivative."""

    @abc.abstractmethod
    def __call__(self, u: Float[np.ndarray, "k w"]) -> Float[np.ndarray, "k d"]:
        """Where the points lie in the other coordinates."""

    @abc.abstractmethod
    def pullback(
        self, u: Float[np.ndarray, "k w"], by_z: Float[np.ndarray, "*K k d"]
    ) -> Float[np.ndarray, "*K k w"]:
        """Derivatives by `u`, from those by the other coordinates."""


@dataclass(frozen=True)
class UnitView(AbstractView):
    """$z(u)$, column by column; `bend` says which $g$ each column has."""

    matrix: Float[np.ndarray, "d w"]
    offset: Float[np.ndarray, " d"]
    bend: Int[np.ndarray, " d"]
    start: Float[np.ndarray, " d"]
    width: Float[np.ndarray, " d"]

    def __call__(self, u: Float[np.ndarray, "k w"]) -> Float[np.ndarray, "k d"]:
        """Where the points lie in the whole space."""
        t = self._inner(u)
        bent = np.where(self.bend == EXPONENTIAL, np.exp(np.where(self._grows, t, 0.0)), t)
        bent = np.where(self.bend == LOGARITHM, np.log(self._positive(t)), bent)
        return (bent - self.start) / self.width

    def pullback(
        self, u: Float[np.ndarray, "k w"], by_z: Float[np.ndarray, "*K k d"]
    ) -> Float[np.ndarray, "*K k w"]:
        """Derivatives by the points of the window, from those by points of the whole space."""
        t = self._inner(u)
        slope = np.where(self._grows, np.exp(np.where(self._grows, t, 0.0)), 1.0)
        positive = self._positive(t)
        flattened = np.where(t >= positive, 1.0 / positive, 0.0)
        slope = np.where(self.bend == LOGARITHM, flattened, slope)
        return (by_z * (slope / self.width)) @ self.matrix

    @property
    def _grows(self) -> np.ndarray:
        return self.bend == EXPONENTIAL

    def _inner(self, u: Float[np.ndarray, "k w"]) -> Float[np.ndarray, "k d"]:
        return u @ self.matrix.T + self.offset

    def _positive(self, t: Float[np.ndarray, "k d"]) -> Float[np.ndarray, "k d"]:
        """What a logarithm is taken of. Half a step below the lowest number of a grid there may be
        none: it stops where the whole space starts."""
        is_log = self.bend == LOGARITHM
        lowest = np.exp(np.where(is_log, self.start, 0.0))
        return np.where(is_log, np.maximum(t, lowest), 1.0)


@dataclass(frozen=True)
class ChainedView(AbstractView):
    """One view after another: `then(first(u))`."""

    first: AbstractView
    then: AbstractView

    def __call__(self, u):
        return self.then(self.first(u))

    def pullback(self, u, by_z):
        return self.first.pullback(u, self.then.pullback(self.first(u), by_z))


@dataclass(frozen=True)
class EmbeddingView(AbstractView):
    """From the unit cube of a space to what models see: `space.embed`."""

    space: Space

    def __call__(self, u):
        return self.space.embed(u)

    def pullback(self, u, by_z):
        return self.space.embed_slopes(u, by_z)


@dataclass(frozen=True)
class PointsView(AbstractView):
    """From what models see of points of a space back to the points."""

    space: Space

    def __call__(self, u):
        return self.space.points_of(u)

    def pullback(self, u, by_z):
        codes = self.space.codes
        by_first = by_z if codes is None else codes.decode_slopes(by_z)
        return np.concatenate(
            [by_first, np.zeros((*by_z.shape[:-1], u.shape[-1] - by_first.shape[-1]))], axis=-1
        )


def embedding_view(space: Space) -> AbstractView:
    """The view of what models see of a space; without conditions, one that is linear."""
    if space.conditions is not None or space.codes is None:
        return EmbeddingView(space)
    width = space.codes.width
    zeros, straight = np.zeros(width), np.full(width, IDENTITY)
    return UnitView(space.codes.matrix.T, zeros, straight, zeros, np.ones(width))
