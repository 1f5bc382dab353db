r"""One belief weighted by evidence: learned priors, past tasks and a non-transfer GP.

$$ p(f \mid \text{run}) = \sum_k w_k\, p_k(f \mid \text{run}), \qquad
   w_k \propto \pi_k\, Z_k^{\tau} $$

with $\pi_k$ the weight of member $k$ before the run, $Z_k$ the marginal likelihood of the run under
it, and $\tau$ the temper.
"""

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._conditioned import ConditionedProcesses
from metaprior.belief._linalg import require_finite
from metaprior.belief._mixture import Group, Groups, logsumexp
from metaprior.belief._processes import pick
from metaprior.belief._seen import seen_groups
from metaprior.belief._view import AbstractView, ChainedView

# Processes that hold less of the weight are left out of predictions. Of more than so many, each may
# hold less without being negligible.
SMALLEST_WEIGHT, MANY = 3e-3, 100
# After so many points, processes that hold less of the weight are given up: most of the work is on
# those that stay.
STAGES = (4, 8, 16, 32, 64, 128)
LOST_WEIGHT = 1e-3

Found = TypeVar("Found")


class WeighedMembers(NamedTuple):
    """Members conditioned on a run: the log of each one's weight before it, and log evidence."""

    members: ConditionedProcesses
    log_prior: Float[np.ndarray, " K"]
    log_evidence: Float[np.ndarray, " K"]


class AbstractWeighable(abc.ABC):
    """Members of one kind whose evidence can be compared with that of others."""

    @abc.abstractmethod
    def weighed(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> WeighedMembers:
        """All members, conditioned, and weighted among themselves."""

    @abc.abstractmethod
    def only(self, rows: list[int]) -> "AbstractWeighable":
        """Some of the processes; their weights before a run stay what they are."""


class Part(NamedTuple):
    """Members of one kind and what they weigh together before a run.

    - `has_past`: whether they learned from past runs; `sees_features`: and from what is known of
      the tasks.
    - `view`: brings points to where the members learned; `None` if they are there.
    """

    members: AbstractWeighable
    weight: float
    has_past: bool
    sees_features: bool = False
    view: AbstractView | None = None

    def seen_through(self, view: AbstractView) -> "Part":
        """The part over other points, which `view` brings to its own."""
        return self._replace(view=view if self.view is None else ChainedView(view, self.view))

    def weighed(self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> WeighedMembers:
        """Its members after a run."""
        return self.members.weighed(x if self.view is None else self.view(x), y)

    def group(self, found: Group) -> Group:
        """Members that were conditioned by `weighed`, over the points that the part is asked at."""
        return found if self.view is None else seen_groups((found,), self.view)[0]


class Latest(Generic[Found]):
    """What was found for the latest run: the questions of an optimiser come one after another."""

    def __init__(self):
        self._latest: tuple[bytes, Found] | None = None

    def of(self, run: "FirstPoints", find: Callable[[], Found]) -> Found:
        """What `find` returns for this run; it is called if the latest run was another."""
        key, latest = run.x.tobytes() + run.y.tobytes(), self._latest
        if latest is None or latest[0] != key:
            latest = self._latest = key, find()
        return latest[1]


class FirstPoints(NamedTuple):
    """A run, or its first points."""

    x: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class WeighedBelief(AbstractBelief):
    """The mixture of all parts, weighted by evidence.

    - `temper`: how much of the evidence counts, 1 for all of it.
    - `guarded`: what was learned, behind a guard: for a task whose space is larger than that of the
      past, where there is nothing to be seen through.
    """

    parts: tuple[Part, ...]
    temper: float
    guarded: AbstractBelief
    _latest: Latest[list["WeighedPart"]] = field(
        default_factory=Latest, init=False, repr=False, compare=False
    )
    _stages: tuple[Latest[list[Part]], ...] = field(
        default_factory=lambda: tuple(Latest() for _ in STAGES),
        init=False,
        repr=False,
        compare=False,
    )

    def groups(self, x, y) -> Groups:
        found = self._weighed(x, y)
        return _groups(found, [own.members for own in found])

    def trust(self, x, y):
        """Weight of the members with a past."""
        with_past = [np.sum(w.weights) for w in self._weighed(x, y) if w.part.has_past]
        return min(float(np.sum(with_past)), 1.0)

    def fixed(self, x, y) -> "FixedMixture":
        return FixedMixture(tuple(self._weighed(x, y)))

    @property
    def unguarded(self) -> AbstractBelief:
        return self.guarded.unguarded

    def guarding(self, learned) -> AbstractBelief:
        return self.guarded.guarding(learned)

    def through(self, view) -> "WeighedBelief":
        parts = tuple(p.seen_through(view) if p.has_past else p for p in self.parts)
        return WeighedBelief(parts, self.temper, self.guarded.through(view))

    def with_features(self, view) -> "WeighedBelief":
        parts = tuple(p.seen_through(view) if p.sees_features else p for p in self.parts)
        return WeighedBelief(parts, self.temper, self.guarded.with_features(view))

    def _weighed(self, x, y) -> list["WeighedPart"]:
        run = FirstPoints(x, y)
        return self._latest.of(run, lambda: _compared(self._in_play(run), run, self.temper))

    def _in_play(self, run: FirstPoints) -> Sequence[Part]:
        """The parts without the processes that were given up on the way."""
        parts = self.parts
        for context, stage in zip(STAGES, self._stages, strict=False):
            if context >= len(run.y):
                break
            # While a run grows, its first points stay what they are.
            first = FirstPoints(run.x[:context], run.y[:context])
            parts = stage.of(first, lambda own=parts, first=first: self._left(own, first))
        return parts

    def _left(self, parts: Sequence[Part], run: FirstPoints) -> list[Part]:
        found = _compared(parts, run, self.temper)
        least = _least(LOST_WEIGHT, found)
        return [part for own in found for part in _in_play(own, least)]


class WeighedPart(NamedTuple):
    """Members of one kind after a run; the weights of all parts together sum to 1."""

    part: Part
    members: ConditionedProcesses
    weights: Float[np.ndarray, " K"]


@dataclass(frozen=True)
class FixedMixture(AbstractBelief):
    """The mixture with the weights that some run gave."""

    parts: tuple[WeighedPart, ...]

    def groups(self, x, y) -> Groups:
        return _groups(self.parts, [own.part.weighed(x, y).members for own in self.parts])


def _groups(parts: Sequence[WeighedPart], members: list[ConditionedProcesses]) -> Groups:
    least = _least(SMALLEST_WEIGHT, parts)
    kept = [
        own.part.group(_kept(m, own.weights, least)) for own, m in zip(parts, members, strict=True)
    ]
    total = sum(np.sum(group.weights) for group in kept)
    return tuple(Group(g.members, g.weights / total) for g in kept if len(g.weights))


def _compared(parts: Sequence[Part], run: FirstPoints, temper: float) -> list[WeighedPart]:
    """Every part on a run, weighted against the others."""
    found = [part.weighed(run.x, run.y) for part in parts]
    each = [
        np.log(part.weight) + own.log_prior + temper * own.log_evidence
        for part, own in zip(parts, found, strict=True)
    ]
    total = logsumexp(np.concatenate(each))
    require_finite(np.asarray(total), "The evidence of the run")
    return [
        WeighedPart(part, own.members, np.exp(log_weights - total))
        for part, own, log_weights in zip(parts, found, each, strict=True)
    ]


def _least(weight: float, parts: Sequence[WeighedPart]) -> float:
    """The weight below which a process is negligible: `weight` for up to `MANY` processes, and for
    more so much less that what is left out weighs less together, too."""
    num = sum(len(own.members.scale) for own in parts)
    return weight * min(1.0, MANY / max(num, 1)) ** 2


def _in_play(found: WeighedPart, least: float) -> list[Part]:
    """A part without the processes that the run so far speaks against; nothing if none is left.

    What has no past stays: a run may turn out to be like none before at any time.
    """
    if not found.part.has_past:
        return [found.part]
    by_process = np.sum(found.weights.reshape(found.members.scale.shape), axis=1)
    rows = np.flatnonzero(by_process >= least).tolist()
    part = found.part
    return [part._replace(members=part.members.only(rows))] if rows else []


def _kept(members: ConditionedProcesses, weights: Float[np.ndarray, " K"], least: float) -> Group:
    """The members without those that hardly weigh anything."""
    by_process = weights.reshape(members.scale.shape)
    rows = np.flatnonzero(np.sum(by_process, axis=1) >= least)
    if len(rows) == len(by_process):
        return Group(members, weights)
    return Group(pick(members, rows.tolist()), by_process[rows].reshape(-1))
