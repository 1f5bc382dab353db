"""A prior as people ask it: conditioned on one run, in NumPy, and never compiled.

Points `x` lie in the unit cube; `y` is in the units of the runs and maximised. The same functions
for compiled code are `metaprior.methods.AbstractSurrogate` and what it is conditioned to.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from metaprior.belief._in_turn import stages
from metaprior.belief._members import (
    AbstractPath,
    MemberMoments,
    MemberSlopes,
    SmoothMoments,
)
from metaprior.belief._mixture import (
    BeliefMoments,
    BeliefSlopes,
    Groups,
    SmoothBelief,
    cdf_of,
    joined,
    joint_of,
    log_density_of,
    member_slopes_of,
    members_of,
    moments_of,
    path_of,
    sample_of,
    smooth_members_of,
    smooth_of,
)
from metaprior.belief._seen import seen_groups
from metaprior.belief._view import AbstractView, ChainedView

Foresight = Callable[[int], MemberMoments]


class AbstractBelief(abc.ABC):
    """What was learned, before a run."""

    @abc.abstractmethod
    def groups(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> Groups:
        """All members conditioned on a run that has been checked, and their weights."""

    def condition(self, x: ArrayLike, y: ArrayLike) -> "ConditionedBelief":
        """Belief about the task of a run; with no points, the learned prior itself.

        - `x`: points, of shape (n, d); `y`: their values, of shape (n,).
        """
        x, y = np.asarray(x, float), np.asarray(y, float)
        if x.ndim != 2 or y.shape != (len(x),):
            raise ValueError(
                f"A run has points of shape {x.shape} and values of shape {y.shape}; give points "
                "as rows of a matrix, and one value per point."
            )
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError(
                "A run has points or values that are not finite; drop these rows, or fix them."
            )
        return ConditionedBelief(self, x, y, self.groups(x, y))

    def in_turn(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> BeliefMoments:
        """What was expected of each point of a run, from points before it: see `stages`."""
        found = [
            moments_of(self.groups(x[:context], y[:context]), x[context:until])
            for context, until in stages(len(y))
        ]
        return joined(found)

    def foresight(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> Foresight:
        """What each member expects at all points of a run, from so many of its first points."""

        def after(num: int) -> MemberMoments:
            return members_of(self.groups(x[:num], y[:num]), x)[0]

        return after

    def trust(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> float | None:
        """The weight of what learned from past runs, after a run; `None` if nothing is weighted."""
        return None

    def settled(self, trust: float | None) -> "AbstractBelief":
        """The belief at a trust that no longer depends on the run it is conditioned on."""
        return self

    def fixed(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> "AbstractBelief":
        """The belief whose weights are those that this run gives, whatever it is conditioned on."""
        return self

    @property
    def unguarded(self) -> "AbstractBelief":
        """What was learned, without a guard around it."""
        return self

    def guarding(self, learned: "AbstractBelief") -> "AbstractBelief":
        """`learned` with the guard of this belief around it, if it has one."""
        return learned

    def through(self, view: AbstractView) -> "AbstractBelief":
        """The belief over points that `view` brings to the cube of the past runs; what has not
        learned from them sees the points as they are."""
        return self.guarding(SeenThrough(self.unguarded, view))

    def with_features(self, view: AbstractView) -> "AbstractBelief":
        """The belief over points without the features of a task, which `view` adds for what
        learned from them."""
        return self.through(view)


@dataclass(frozen=True)
class SeenThrough(AbstractBelief):
    """A belief that sees the points of a window."""

    belief: AbstractBelief
    view: AbstractView

    def groups(self, x, y) -> Groups:
        return seen_groups(self.belief.groups(self.view(x), y), self.view)

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

    def through(self, view) -> AbstractBelief:
        return self.belief.through(ChainedView(view, self.view))


@dataclass(frozen=True)
class ConditionedBelief:
    """A belief about one task after a run of zero or more points."""

    belief: AbstractBelief
    x: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    groups: Groups = field(repr=False)

    def moments(self, x: Float[np.ndarray, "k d"]) -> BeliefMoments:
        """First two moments of function and noise at each point."""
        return moments_of(self.groups, x)

    def slopes(self, x: Float[np.ndarray, "k d"]) -> BeliefSlopes:
        """Moments at a few points, with the derivatives of mean and function variance."""
        moments, pullback = self.smooth_moments(x)
        one, zero = np.ones(len(x)), np.zeros(len(x))
        return BeliefSlopes(moments, pullback(one, zero), pullback(zero, one))

    def smooth_moments(self, x: Float[np.ndarray, "k d"]) -> SmoothBelief:
        """Moments at a few points, for derivatives of what is made of mean and function
        variance."""
        return smooth_of(self.groups, x)

    def members(self, x: Float[np.ndarray, "k d"]) -> tuple[MemberMoments, Float[np.ndarray, " K"]]:
        """What each member says at each point, and how much it counts."""
        return members_of(self.groups, x)

    def smooth_members(self, x: Float[np.ndarray, "k d"]) -> SmoothMoments:
        """What each member says at a few points, for derivatives of what is made of it."""
        return smooth_members_of(self.groups, x)

    def member_slopes(self, x: Float[np.ndarray, "k d"]) -> MemberSlopes:
        """What each member says at a few points, with derivatives."""
        return member_slopes_of(self.groups, x)

    def log_density(
        self, x: Float[np.ndarray, "k d"], y: Float[np.ndarray, " k"]
    ) -> Float[np.ndarray, " k"]:
        """Log density of observing each value at its point."""
        return log_density_of(self.groups, x, y)

    def cdf(
        self, x: Float[np.ndarray, "k d"], y: Float[np.ndarray, " k"]
    ) -> Float[np.ndarray, " k"]:
        """Probability of observing at most each value at its point."""
        return cdf_of(self.groups, x, y)

    def covariance(self, x: Float[np.ndarray, "k d"]) -> Float[np.ndarray, "k k"]:
        """Joint covariance of the function values at the points."""
        return joint_of(self.groups, x).covariance

    def sample(
        self, x: Float[np.ndarray, "k d"], num: int, rng: np.random.Generator
    ) -> Float[np.ndarray, "num k"]:
        """Joint samples of the function values at the points."""
        return sample_of(self.groups, x, num, rng)

    def path(self, anchors: Float[np.ndarray, "a d"], rng: np.random.Generator) -> AbstractPath:
        """One function drawn from the belief, smooth, and drawn exactly at the `anchors`."""
        return path_of(self.groups, anchors, rng)

    def observe(self, x: Float[np.ndarray, " d"], y: float) -> "ConditionedBelief":
        """The belief after one more point.

        All members are conditioned again: the run moves their noise and scale, and with them the
        whole factor, so that there is nothing to update.
        """
        return self.belief.condition(np.vstack([self.x, x]), np.append(self.y, y))

    @property
    def weights(self) -> Float[np.ndarray, " K"]:
        """How much each member counts; they sum to 1."""
        return np.concatenate([group.weights for group in self.groups])
