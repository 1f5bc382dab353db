r"""RGPE: one Gaussian process per past task, weighted by how it ranks the new run.

The same as `metaprior.methods.RankWeightedGP`. With weights $w_i$ of past models and target,

$$ \mu(x) = \sum_i w_i \mu_i(x), \qquad v(x) = \sum_i w_i^2 v_i(x), $$

and the same for noise: a weighted sum of independent processes, with level and scale of the run.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._conditioned import ConditionedProcesses
from metaprior.belief._evidence import canonical_order
from metaprior.belief._fitted import fitted
from metaprior.belief._learned import mean_and_std
from metaprior.belief._members import (
    AbstractMembers,
    AbstractPath,
    Joint,
    MemberMoments,
    MemberSlopes,
)
from metaprior.belief._mixture import Group, Groups
from metaprior.belief._processes import pick
from metaprior.belief._random import Key, split
from metaprior.belief._rank_weights import past_losses, rank_weights, target_losses


@dataclass(frozen=True)
class RankWeightedBelief(AbstractBelief):
    """The processes of the past tasks, and what is needed to weigh them against a new run.

    - `past`: in units of their own; `usable` says which of them have observations.
    - `y_mean`, `y_std`: of all past values together, for a run that has no scale of its own yet.
    - `key`: of all random draws, so that a run always has the same posterior.
    """

    past: ConditionedProcesses
    usable: Bool[np.ndarray, " n"]
    y_mean: float
    y_std: float
    key: Key
    discard_quantile: float
    num_steps: int
    num_samples: int

    def groups(self, x, y) -> Groups:
        # One value has no scale and ranks nothing: until there are two, the past alone speaks.
        if len(y) < 2:
            equal = self.usable / np.sum(self.usable)
            return _sum_of([(self.past, equal)], self.y_mean, self.y_std)
        order = canonical_order(x, y)
        x, y = x[order], y[order]
        in_past_units = (y - self.y_mean) / self.y_std
        mean, std = mean_and_std(in_past_units)
        target = fitted(x, (in_past_units - mean) / std, 0.0, 1.0, self.num_steps)
        key_past, key_target = split(self.key)
        past_weights, target_weight = rank_weights(
            past_losses(self.past, x, y, self.num_samples, key_past),
            target_losses(target, x, y, self.num_samples, key_target),
            self.usable,
            self.discard_quantile,
        )
        members = [(self.past, past_weights), (target, np.array([target_weight]))]
        return _sum_of(members, self.y_mean + self.y_std * mean, self.y_std * std)


def _sum_of(
    members: list[tuple[ConditionedProcesses, Float[np.ndarray, " _"]]], level: float, unit: float
) -> Groups:
    """One model: the weighted sum, without the processes that have no weight."""
    parts, weights = [], []
    for processes, own in members:
        rows = np.flatnonzero(own)
        if len(rows):
            parts.append(pick(processes, rows.tolist()))
            weights.append(own[rows])
    return (Group(WeightedSum(tuple(parts), tuple(weights), level, unit), np.ones(1)),)


@dataclass(frozen=True)
class WeightedSum(AbstractMembers):
    r"""$f(x) = a + b \sum_i w_i f_i(x)$ with independent $f_i$, as one model.

    - `parts`, `weights`: the $f_i$ in groups, and their $w_i$.
    - `level`, `unit`: $a$ and $b$.
    """

    parts: tuple[AbstractMembers, ...]
    weights: tuple[Float[np.ndarray, " _"], ...]
    level: float
    unit: float

    @property
    def count(self):
        return 1

    def moments(self, x):
        return self._summed([part.moments(x) for part in self.parts])

    def _summed(self, each: list[MemberMoments]) -> MemberMoments:
        pairs = list(zip(self.weights, each, strict=True))
        mean = sum(w @ m.mean for w, m in pairs)
        variance = sum(w**2 @ m.function_variance for w, m in pairs)
        noise = sum(w**2 @ m.noise_variance for w, m in pairs)
        return MemberMoments(
            (self.level + self.unit * np.asarray(mean))[None],
            self.unit**2 * np.asarray(variance)[None],
            self.unit**2 * np.asarray(noise)[None],
        )

    def slopes(self, x):
        each = [part.slopes(x) for part in self.parts]
        pairs = list(zip(self.weights, each, strict=True))
        mean = sum(np.einsum("n,nkd->kd", w, s.mean) for w, s in pairs)
        variance = sum(np.einsum("n,nkd->kd", w**2, s.function_variance) for w, s in pairs)
        return MemberSlopes(
            self._summed([slopes.moments for slopes in each]),
            self.unit * np.asarray(mean)[None],
            self.unit**2 * np.asarray(variance)[None],
        )

    def joint(self, index, x):
        mean, covariance = np.zeros(len(x)), np.zeros((len(x), len(x)))
        for part, i, weight in self._each():
            own = part.joint(i, x)
            mean += weight * own.mean
            covariance += weight**2 * own.covariance
        return Joint(self.level + self.unit * mean, self.unit**2 * covariance)

    def path(self, index, anchors, rng):
        drawn = [(weight, part.path(i, anchors, rng)) for part, i, weight in self._each()]
        return PathSum(tuple(drawn), self.level, self.unit)

    def _each(self) -> list[tuple[AbstractMembers, int, float]]:
        """All processes: their group, their place there, and their weight."""
        return [
            (part, i, float(weight))
            for part, weights in zip(self.parts, self.weights, strict=True)
            for i, weight in enumerate(weights)
        ]


@dataclass(frozen=True)
class PathSum(AbstractPath):
    """A weighted sum of drawn functions, seen in the units of a run."""

    drawn: tuple[tuple[float, AbstractPath], ...]
    level: float
    unit: float

    def __call__(self, x):
        return self.level + self.unit * sum(weight * path(x) for weight, path in self.drawn)

    def slopes(self, x):
        each = [(weight, *path.slopes(x)) for weight, path in self.drawn]
        values = sum(weight * value for weight, value, _ in each)
        slopes = sum(weight * slope for weight, _, slope in each)
        return self.level + self.unit * values, self.unit * np.asarray(slopes)
