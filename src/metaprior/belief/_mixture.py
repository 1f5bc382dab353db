r"""What members believe together: $\sum_k w_k\, p_k$, in groups of members of one kind.

    symbol              meaning                                                     shape
    w_k                 weight of member k, all of them sum to 1                    (K,)
    mu_k, v_k, s_k      its mean, function variance and noise variance              (K, k)

$$ \mu = \sum_k w_k \mu_k, \qquad v = \sum_k w_k \big( v_k + (\mu_k - \mu)^2 \big), \qquad
   s = \sum_k w_k s_k : $$

disagreement between members is uncertainty about the function, not noise.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._members import (
    AbstractMembers,
    AbstractPath,
    Joint,
    MemberMoments,
    MemberSlopes,
    SmoothMoments,
)


class BeliefMoments(NamedTuple):
    """Mean and variance of the function, and the variance of an observation's noise."""

    mean: Float[np.ndarray, " k"]
    function_variance: Float[np.ndarray, " k"]
    noise_variance: Float[np.ndarray, " k"]

    @property
    def variance(self) -> Float[np.ndarray, " k"]:
        """Variance of an observation."""
        return self.function_variance + self.noise_variance


class BeliefSlopes(NamedTuple):
    """Moments, and their derivatives by the point; noise is the same everywhere."""

    moments: BeliefMoments
    mean: Float[np.ndarray, "k d"]
    function_variance: Float[np.ndarray, "k d"]


class SmoothBelief(NamedTuple):
    r"""Moments, and the way back from them to the points; noise is the same everywhere.

    - `pullback`: from $a$ and $b$ at each point to the derivatives of $a \mu + b v$ by the point.
    """

    moments: BeliefMoments
    pullback: Callable[[Float[np.ndarray, " k"], Float[np.ndarray, " k"]], Float[np.ndarray, "k d"]]


class Group(NamedTuple):
    """Members of one kind, and how much each of them counts."""

    members: AbstractMembers
    weights: Float[np.ndarray, " K"]


Groups = tuple[Group, ...]


def equal_group(members: AbstractMembers) -> Group:
    """Members each as likely as any other."""
    return Group(members, np.full(members.count, 1.0 / members.count))


def moments_of(groups: Groups, x: Float[np.ndarray, "k d"]) -> BeliefMoments:
    """First two moments of the mixture."""
    return mixed(*members_of(groups, x))


def smooth_of(groups: Groups, x: Float[np.ndarray, "k d"]) -> SmoothBelief:
    r"""Moments for derivatives:
    $\partial v = \sum_k w_k (\partial v_k + 2 (\mu_k - \mu)\, \partial \mu_k)$."""
    members, weights = smooth_members_of(groups, x), _weights(groups)[:, None]
    moments = mixed(members.moments, weights[:, 0])

    def pullback(by_mean, by_variance):  # not annotated: see `ConditionedProcesses`
        by_variances = weights * by_variance
        # What the slope of the mixture's own mean adds is zero, since the weighted differences are.
        apart = 2.0 * (members.moments.mean - moments.mean)
        return members.pullback(weights * by_mean + apart * by_variances, by_variances)

    return SmoothBelief(moments, pullback)


def smooth_members_of(groups: Groups, x: Float[np.ndarray, "k d"]) -> SmoothMoments:
    """Moments of all members, for derivatives of what is made of them."""
    each = [group.members.smooth_moments(x) for group in groups]

    def pullback(by_mean, by_variance):  # not annotated: see `ConditionedProcesses`
        total, start = np.zeros_like(x), 0
        for group, own in zip(groups, each, strict=True):
            stop = start + group.members.count
            total += own.pullback(by_mean[start:stop], by_variance[start:stop])
            start = stop
        return total

    return SmoothMoments(_stacked([one.moments for one in each]), pullback)


def members_of(
    groups: Groups, x: Float[np.ndarray, "k d"]
) -> tuple[MemberMoments, Float[np.ndarray, " K"]]:
    """Moments and weights of all members."""
    return _stacked([group.members.moments(x) for group in groups]), _weights(groups)


def member_slopes_of(groups: Groups, x: Float[np.ndarray, "k d"]) -> MemberSlopes:
    """Moments of all members with their derivatives."""
    slopes = [group.members.slopes(x) for group in groups]
    return MemberSlopes(
        _stacked([one.moments for one in slopes]),
        np.concatenate([one.mean for one in slopes]),
        np.concatenate([one.function_variance for one in slopes]),
    )


def log_density_of(
    groups: Groups, x: Float[np.ndarray, "k d"], y: Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    r"""$\ln \sum_k w_k\, p_k(y)$ of observations."""
    log_densities = np.concatenate([group.members.log_density(x, y) for group in groups])
    # Summed in logarithms: far from every member each density is 0 to rounding.
    with np.errstate(divide="ignore"):
        return logsumexp((log_densities + np.log(_weights(groups))[:, None]).T)


def cdf_of(
    groups: Groups, x: Float[np.ndarray, "k d"], y: Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    r"""$\sum_k w_k F_k(y)$ with $F_k$ the distribution function of member k."""
    each = np.concatenate([group.members.cdf(x, y) for group in groups])
    # Weights that sum to 1 up to rounding make a probability up to rounding.
    return np.minimum(_weights(groups) @ each, 1.0)


def joint_of(groups: Groups, x: Float[np.ndarray, "k d"]) -> Joint:
    """Mean and covariance of the function values at `x`, all members together."""
    parts = []
    for group in groups:
        in_use = np.flatnonzero(group.weights > 0.0)
        joints = group.members.joints(in_use.tolist(), x)
        parts += zip(group.weights[in_use], joints, strict=True)
    mean = np.sum([weight * joint.mean for weight, joint in parts], axis=0)
    covariance = np.zeros((len(x), len(x)))
    for weight, joint in parts:
        apart = joint.mean - mean
        covariance += weight * (joint.covariance + apart[:, None] * apart[None, :])
    return Joint(mean, covariance)


def sample_of(
    groups: Groups, x: Float[np.ndarray, "k d"], num: int, rng: np.random.Generator
) -> Float[np.ndarray, "num k"]:
    """Joint samples of the function at `x`, each from a member drawn by its weight."""
    drawn = _drawn_members(groups, num, rng)
    samples, start = np.zeros((num, len(x))), 0
    for group in groups:
        stop = start + group.members.count
        own = np.flatnonzero((start <= drawn) & (drawn < stop))
        indices, nums = np.unique(drawn[own] - start, return_counts=True)
        if len(own):
            found = group.members.samples(indices.tolist(), nums.tolist(), x, rng)
            samples[own[np.argsort(drawn[own], kind="stable")]] = np.concatenate(found)
        start = stop
    return samples


def path_of(
    groups: Groups, anchors: Float[np.ndarray, "a d"], rng: np.random.Generator
) -> AbstractPath:
    """One function, of a member drawn by its weight."""
    (drawn,) = _drawn_members(groups, 1, rng)
    members, index = _member(groups, int(drawn))
    return members.path(index, anchors, rng)


def logsumexp(values: Float[np.ndarray, "*shape n"]) -> Float[np.ndarray, "*shape"]:
    r"""$\ln \sum_i e^{v_i}$ over the last axis, one of them finite; without SciPy's many checks."""
    most = np.max(values, axis=-1)
    return np.asarray(most + np.log(np.sum(np.exp(values - most[..., None]), axis=-1)))


def scaled(groups: Groups, weight: float) -> Groups:
    """The groups with all of their weights multiplied."""
    return tuple(Group(group.members, weight * group.weights) for group in groups)


def _weights(groups: Groups) -> Float[np.ndarray, " K"]:
    return np.concatenate([group.weights for group in groups])


def joined(parts: list[BeliefMoments]) -> BeliefMoments:
    """Moments at one set of points after another."""
    if not parts:
        return BeliefMoments(*(np.zeros(0) for _ in BeliefMoments._fields))
    return BeliefMoments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _stacked(parts: list[MemberMoments]) -> MemberMoments:
    """Moments of one set of members after another."""
    if len(parts) == 1:
        return parts[0]
    return MemberMoments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def mixed(each: MemberMoments, weights: Float[np.ndarray, " K"]) -> BeliefMoments:
    """Moments of the mixture, from those of its members."""
    mean = weights @ each.mean
    apart = weights @ (each.mean - mean[None]) ** 2
    noise = np.full(len(mean), weights @ each.noise_variance)
    return BeliefMoments(mean, weights @ each.function_variance + apart, noise)


def _drawn_members(groups: Groups, num: int, rng: np.random.Generator) -> np.ndarray:
    weights = _weights(groups)
    return rng.choice(len(weights), size=num, p=weights / weights.sum())


def _member(groups: Groups, index: int) -> tuple[AbstractMembers, int]:
    """The group of a member, and its place there."""
    for group in groups:
        if index < group.members.count:
            return group.members, index
        index -= group.members.count
    raise IndexError(f"There is no member {index}; there are fewer.")
