"""A belief as seen through a window on its space.

A task may allow less than a prior knows: other bounds, another scale, fewer choices, or it may lack
a dimension. Its points live in a unit cube of their own, and a view brings them to the cube that
the prior was learned on.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._members import AbstractMembers, AbstractPath, Cross, MemberSlopes
from metaprior.belief._mixture import BeliefMoments, Group, Groups
from metaprior.belief._view import IDENTITY, AbstractView, UnitView


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

    def frozen(self):
        inner = self.members.frozen()
        return None if inner is None else replace(inner, views=(self.view, *inner.views))


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
