r"""A belief as seen through a window on its space.

A task may allow less than a prior knows: other bounds, another scale, fewer choices, or it may lack
a dimension. Its points live in a unit cube of their own, and a view brings them to the cube that
the prior was learned on:

    symbol      meaning                                              shape
    u           points of the window's cube                          (k, w)
    z           the same points in the cube of the whole space       (k, d)

$$ z = \frac{g(A u + b) - s}{r}, \qquad g(t) = t, \ e^t \text{ or } \ln t $$
"""

import abc
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._members import AbstractMembers, AbstractPath, Cross, MemberSlopes
from metaprior.belief._mixture import BeliefMoments, Group, Groups
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
class EmbeddingView(AbstractView):
    """From the unit cube of a space with conditions to what models see: `space.embed`."""

    space: Space

    def __call__(self, u):
        return self.space.embed(u)

    def pullback(self, u, by_z):
        assert self.space.conditions is not None
        return self.space.conditions.pullback(u, by_z)


@dataclass(frozen=True)
class SeenThrough(AbstractBelief):
    """A belief that sees the points of a window."""

    belief: AbstractBelief
    view: AbstractView

    def groups(self, x, y) -> Groups:
        seen = self.belief.groups(self.view(x), y)
        return tuple(Group(SeenMembers(g.members, self.view), g.weights) for g in seen)

    def in_turn(self, x, y) -> BeliefMoments:
        return self.belief.in_turn(self.view(x), y)

    def fixed(self, x, y) -> "SeenThrough":
        return SeenThrough(self.belief.fixed(self.view(x), y), self.view)

    def trust(self, x, y) -> float | None:
        return self.belief.trust(self.view(x), y)

    def settled(self, trust) -> AbstractBelief:
        return SeenThrough(self.belief.settled(trust), self.view)

    @property
    def unguarded(self) -> AbstractBelief:
        return SeenThrough(self.belief.unguarded, self.view)

    def guarding(self, learned) -> AbstractBelief:
        return self.belief.guarding(learned)


def seen_beside(
    belief: AbstractBelief, num_columns: int, held: Float[np.ndarray, " c"], num_after: int = 0
) -> AbstractBelief:
    """`belief`, which knows `num_columns` columns, after them those of `held`, and then `num_after`
    more, over all but those of `held`: they stay at their values.

    What a guard falls back to sees the other columns only.
    """
    is_held = np.repeat([False, True, False], [num_columns, len(held), num_after])
    matrix = np.eye(len(is_held))[:, ~is_held]
    offset = np.concatenate([np.zeros(num_columns), held, np.zeros(num_after)])
    straight = np.full(len(offset), IDENTITY)
    view = UnitView(matrix, offset, straight, np.zeros(len(offset)), np.ones(len(offset)))
    return belief.guarding(SeenThrough(belief.unguarded, view))


@dataclass(frozen=True)
class SeenMembers(AbstractMembers):
    """Members that see the points of a window."""

    members: AbstractMembers
    view: AbstractView

    @property
    def count(self):
        return self.members.count

    def moments(self, x):
        return self.members.moments(self.view(x))

    def slopes(self, x):
        moments, mean, variance = self.members.slopes(self.view(x))
        return MemberSlopes(moments, self.view.pullback(x, mean), self.view.pullback(x, variance))

    def cross(self, x, anchors):
        seen = self.members.cross(self.view(x), self.view(anchors))
        return Cross(seen.values, lambda c: self.view.pullback(x, seen.pullback(c)))

    def joint(self, index, x):
        return self.members.joint(index, self.view(x))

    def path(self, index, anchors, rng):
        return SeenPath(self.members.path(index, self.view(anchors), rng), self.view)


@dataclass(frozen=True)
class SeenPath(AbstractPath):
    """A drawn function that sees the points of a window."""

    path: AbstractPath
    view: AbstractView

    def __call__(self, x):
        return self.path(self.view(x))

    def slopes(self, x):
        values, by_z = self.path.slopes(self.view(x))
        return values, self.view.pullback(x, by_z)
