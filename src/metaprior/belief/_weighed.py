r"""One belief weighted by evidence: learned priors, past tasks and a GP without a past.

$$ p(f \mid \text{run}) = \sum_k w_k\, p_k(f \mid \text{run}), \qquad
   w_k \propto \pi_k\, Z_k^{\tau} $$

with $\pi_k$ the weight of member $k$ before the run, $Z_k$ the marginal likelihood of the run under
it, and $\tau$ the temper.
"""

import abc
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._conditioned import ConditionedProcesses
from metaprior.belief._mixture import Group, Groups, logsumexp
from metaprior.belief._processes import pick

# Processes that hold less of the weight are left out of predictions.
SMALLEST_WEIGHT = 1e-3


class Weighed(NamedTuple):
    """Members conditioned on a run: the log of each one's weight before it, and log evidence."""

    members: ConditionedProcesses
    log_prior: Float[np.ndarray, " K"]
    log_evidence: Float[np.ndarray, " K"]


class AbstractWeighable(abc.ABC):
    """Members of one kind whose evidence can be compared with that of others."""

    @abc.abstractmethod
    def weighed(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> Weighed:
        """All members, conditioned, and weighed among themselves."""


class Part(NamedTuple):
    """Members of one kind and what they weigh together before a run."""

    members: AbstractWeighable
    weight: float
    has_past: bool


@dataclass(frozen=True)
class WeighedBelief(AbstractBelief):
    """The mixture of all parts, weighted by evidence."""

    parts: tuple[Part, ...]
    temper: float = 1.0

    def groups(self, x, y) -> Groups:
        found, weights = self._weights(x, y)
        kept = [_kept(own.members, w) for own, w in zip(found, weights, strict=True)]
        total = sum(np.sum(group.weights) for group in kept)
        return tuple(Group(g.members, g.weights / total) for g in kept if len(g.weights))

    def trust(self, x, y):
        _, weights = self._weights(x, y)
        parts = zip(self.parts, weights, strict=True)
        return float(sum(np.sum(own) for part, own in parts if part.has_past))

    def _weights(self, x, y) -> tuple[list[Weighed], list[np.ndarray]]:
        found = [part.members.weighed(x, y) for part in self.parts]
        each = [
            np.log(part.weight) + own.log_prior + self.temper * own.log_evidence
            for part, own in zip(self.parts, found, strict=True)
        ]
        total = logsumexp(np.concatenate(each))
        return found, [np.exp(own - total) for own in each]


def _kept(members: ConditionedProcesses, weights: Float[np.ndarray, " K"]) -> Group:
    """The members without those that hardly weigh anything."""
    by_process = weights.reshape(members.scale.shape)
    rows = np.flatnonzero(np.sum(by_process, axis=1) >= SMALLEST_WEIGHT)
    return Group(pick(members, rows.tolist()), by_process[rows].reshape(-1))
