"""Members as seen through a view: the points of a window, brought to where they were learned."""

from dataclasses import dataclass, replace

from metaprior.belief._members import (
    AbstractMembers,
    AbstractPath,
    Cross,
    MemberSlopes,
    SmoothMoments,
)
from metaprior.belief._mixture import Group, Groups
from metaprior.belief._view import AbstractView


def seen_groups(groups: Groups, view: AbstractView) -> Groups:
    """The groups, their members seen through `view`."""
    return tuple(Group(SeenMembers(g.members, view), g.weights) for g in groups)


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

    def smooth_moments(self, x):
        seen = self.members.smooth_moments(self.view(x))
        return SmoothMoments(
            seen.moments, lambda *by_moments: self.view.pullback(x, seen.pullback(*by_moments))
        )

    def cross(self, x, anchors):
        seen = self.members.cross(self.view(x), self.view(anchors))
        return Cross(seen.values, lambda c: self.view.pullback(x, seen.pullback(c)))

    def joint(self, index, x):
        return self.members.joint(index, self.view(x))

    def joints(self, indices, x):
        return self.members.joints(indices, self.view(x))

    def samples(self, indices, nums, x, rng):
        return self.members.samples(indices, nums, self.view(x), rng)

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
