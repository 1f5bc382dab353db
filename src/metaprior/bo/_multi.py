"""Ask and tell for several values per query: objectives that compete, and constraints."""

import copy
import math
from collections.abc import Mapping
from typing import NamedTuple, overload

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief import AbstractBelief, ConditionedBelief, FittedBelief, Priors
from metaprior.bo._acquisition import ScoredAnchors
from metaprior.bo._checks import finite_or_failed, require_count
from metaprior.bo._feasibility import FeasibilityScore
from metaprior.bo._front import MOST_POINTS, on_front, thinned, undominated
from metaprior.bo._hypervolume import HypervolumeScore
from metaprior.bo._moves import Moves
from metaprior.bo._places import Places, Point, matches
from metaprior.bo._propose import Goal, RunSoFar, propose, propose_among
from metaprior.bo._search import Search
from metaprior.bo._window import Window
from metaprior.data import Features, Points, direction_sign
from metaprior.words import Summary

# Of the GP that models a constraint without past runs.
FITTING_STEPS = 25
# The reference lies this share of the front's width below its worst values.
BELOW_WORST = 0.1


class Outcome(NamedTuple):
    """What was observed at a point, by name."""

    x: Point
    values: dict[str, float]


class MultiOptimizer:
    """Optimises several values of one new task with learned priors, one query or batch at a time.

    The next query is the one with the largest expected hypervolume improvement, times the
    probability that all constraints hold; with one objective, expected improvement. Objectives and
    constraints are taken to be independent of each other.

    - `priors`: what `metaprior.learn_outputs` or `metaprior.load_priors` returned, or
      `Priors({"accuracy": prior, "cost": other})`.
    - `reference`: by name, the worst value of each objective that is of any interest; the volume
      counts from there. By default, a little below what the observed front and the predicted one
      have at worst.
    - `candidates`, `search`, `features`, `window`, `seed`: see `Optimizer`.
    """

    def __init__(
        self,
        priors: Priors,
        *,
        reference: Mapping[str, float] | None = None,
        candidates: Points | None = None,
        search: Search | None = None,
        features: Features | None = None,
        window: Window | None = None,
        seed: int = 0,
    ):
        if not isinstance(priors, Priors):
            raise TypeError(
                f"`priors` is a {type(priors).__name__}; give "
                "`Priors({name: prior, ...}, constraints={...})`."
            )
        if len(priors.objectives) > max(MOST_POINTS):
            raise ValueError(
                f"Received {len(priors.objectives)} objectives; give at most {max(MOST_POINTS)}, "
                "and the others as constraints, or use BoTorch's qLogNEHVI with "
                "`metaprior.adapters.botorch.model` of each prior."
            )
        priors = priors if features is None else priors.for_task(features)
        self.priors = priors
        self.space = priors.space if window is None else window.space
        self._names = (*priors.objectives, *priors.constraints)
        self._num_objectives = len(priors.objectives)
        directions = [prior.direction for prior in priors.objectives.values()]
        # A constraint is the better the lower it is.
        directions += ["minimize"] * len(priors.constraints)
        self._signs = np.array([direction_sign(direction) for direction in directions])
        learned = [*priors.objectives.values(), *priors.constraints.values()]
        self._beliefs: list[AbstractBelief] = [
            FittedBelief(FITTING_STEPS)
            if prior is None
            else (prior.belief if window is None else window.through(prior.belief))
            for prior in learned
        ]
        self._reference = None if reference is None else self._checked_reference(reference)
        self._search = Search() if search is None else search
        self._seed = seed
        self._num_asked = 0
        width, count = self.space.num_columns, len(self._names)
        self._x = np.zeros((0, width))
        # Larger is better; a constraint that was not reported is NaN.
        self._values = np.zeros((0, count))
        self._told: list[Point] = []
        # Follows from what was told: how much that was last time, and the beliefs then.
        self._settled: tuple[int, list[AbstractBelief]] = -1, []
        self._pending = np.zeros((0, width))
        # Queries that failed or were stopped early, and what they are at most: see `RunSoFar`.
        self._lost = np.zeros((0, width))
        self._limits = np.zeros((0, count))
        self._places = Places.of(self.space, candidates)

    @overload
    def ask(self, *, fixed: Point | None = None) -> Point: ...
    @overload
    def ask(self, n: int, *, fixed: Point | None = None) -> list[Point]: ...
    def ask(self, n: int | None = None, *, fixed: Point | None = None) -> Point | list[Point]:
        """The next query, or the next `n` queries to be made side by side: see `Optimizer.ask`."""
        count, moves = require_count(n), self._places.moves(fixed)
        points = []
        for _ in range(count):
            x = self._suggest(moves)
            self._pending = np.vstack([self._pending, x])
            points.append(self._places.point(x))
        return points[0] if n is None else points

    def tell(
        self, x: Point, values: Mapping[str, float | None] | None, *, stopped: bool = False
    ) -> None:
        """Report what was observed at `x`, asked for or not: one value per objective and
        constraint, by name.

        A constraint that is left out or `None` is not known there. `None` instead of the values,
        or for an objective, reports a failure: the point is not asked again, and its surroundings
        count as no better than the worst observation of each objective.

        - `stopped`: the query was stopped early, and its results would have been no better than
          the values of the objectives; with `None`, nothing is known of them.
        """
        (encoded,) = self.space.encode([x])
        row = self._row(x, values)
        self._pending = self._pending[~matches(self._pending, encoded, first=True)]
        objectives = row[: self._num_objectives]
        if stopped or np.isnan(objectives).any():
            unknown = math.inf if stopped else math.nan
            limits = np.full(len(row), math.inf)
            limits[: self._num_objectives] = np.where(np.isnan(objectives), unknown, objectives)
            self._lost = np.vstack([self._lost, encoded])
            self._limits = np.vstack([self._limits, limits])
        else:
            self._told.append(dict(x))
            self._x = np.vstack([self._x, encoded])
            self._values = np.vstack([self._values, row])

    def expect(self, points: Points) -> None:
        """Take queries that other workers have under way into account: see `Optimizer.expect`."""
        self._pending = np.vstack([self._pending, self.space.encode(points)])

    def fork(self, *, seed: int) -> "MultiOptimizer":
        """A copy; what either is told from now on does not reach the other."""
        other = copy.copy(self)
        other._told = list(self._told)
        other._seed, other._num_asked = seed, 0
        return other

    @property
    def front(self) -> list[Outcome]:
        """Those of the feasible observations that no other one beats, in the order of the run."""
        rows = np.flatnonzero(self._is_feasible())
        best = on_front(self._values[rows][:, : self._num_objectives])
        return [self._outcome(int(i)) for i in rows[best]]

    @property
    def observations(self) -> list[Outcome]:
        """Everything observed so far, without what failed or was stopped early, in order."""
        return [self._outcome(i) for i in range(len(self._told))]

    @property
    def pending(self) -> list[Point]:
        """Queries asked for and not yet told."""
        return [self._places.point(x) for x in self._pending]

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_html()

    def _summary(self) -> Summary:
        told = f"{len(self._told)} observed, {len(self._lost)} lost, {len(self._pending)} pending"
        count, goals = self._places.candidates, self.priors.objectives.items()
        return Summary(
            "Optimizer to " + ", ".join(f"{prior.direction} {name}" for name, prior in goals),
            [
                ("constraints", ", ".join(self.priors.constraints) or "none"),
                ("front", f"{len(self.front)} of the points observed"),
                ("queries", told),
                ("candidates", "whole space" if count is None else f"{len(count):,} given points"),
            ],
        )

    def _row(self, x: Point, values: Mapping[str, float | None] | None) -> Float[np.ndarray, " o"]:
        if values is None:
            return np.full(len(self._names), math.nan)
        if not isinstance(values, Mapping):
            raise TypeError(
                f"The values told for {x} are {values!r}; tell them by name, as in "
                f"{{{self._names[0]!r}: 0.5}}, or None for a failure."
            )
        unknown = [name for name in values if name not in self._names]
        missing = [name for name in self.priors.objectives if name not in values]
        if unknown or missing:
            wrong = f"unknown {unknown[0]!r}" if unknown else f"no {missing[0]!r}"
            raise ValueError(
                f"The values told for {x} have {wrong}; tell the objectives "
                f"{list(self.priors.objectives)} and the constraints "
                f"{list(self.priors.constraints)}, or None for a failure."
            )
        told = [finite_or_failed(x, values.get(name)) for name in self._names]
        return self._signs * np.array(told)

    def _outcome(self, i: int) -> Outcome:
        row = self._signs * self._values[i]
        known = {name: float(v) for name, v in zip(self._names, row, strict=True)}
        return Outcome(dict(self._told[i]), {n: v for n, v in known.items() if not math.isnan(v)})

    def _is_feasible(self) -> Bool[np.ndarray, " n"]:
        """What was not reported says neither that a constraint holds nor that it does not."""
        return ~np.any(self._values[:, self._num_objectives :] < 0.0, axis=1)

    def _checked_reference(self, reference: Mapping[str, float]) -> Float[np.ndarray, " m"]:
        names = list(self.priors.objectives)
        if sorted(reference) != sorted(names):
            raise ValueError(
                f"`reference` has values for {list(reference)}; give one for each objective of "
                f"{names}, or leave it out."
            )
        worst = np.array([float(reference[name]) for name in names])
        if not np.isfinite(worst).all():
            raise ValueError(f"`reference` is {dict(reference)}; give finite numbers.")
        return self._signs[: len(names)] * worst

    def _suggest(self, moves: Moves) -> Float[np.ndarray, " d"]:
        rng = np.random.default_rng([self._seed, self._num_asked])
        self._num_asked += 1
        goal = self._goal(rng)
        candidates = self._places.candidates
        if candidates is None:
            return propose(goal, moves, self._run(0), self._search, rng)
        used = np.vstack([self._x, self._pending, self._lost])
        allowed = self._places.allowed(candidates, used, moves)
        return candidates[propose_among(goal, candidates, allowed)]

    def _run(self, i: int) -> RunSoFar:
        """The run as it looks to one value."""
        known = ~np.isnan(self._values[:, i])
        return RunSoFar(
            self._x[known], self._values[known, i], self._pending, self._lost, self._limits[:, i]
        )

    def _settled_beliefs(self) -> list[AbstractBelief]:
        """The beliefs at the trust that the observations alone give to priors with a guard; the
        weights of mixtures follow from the run."""
        if self._settled[0] != len(self._told):
            settled = []
            for i, belief in enumerate(self._beliefs):
                run = self._run(i)
                trust = belief.trust(run.x, run.y)
                settled.append(belief if trust is None else belief.settled(trust))
            self._settled = len(self._told), settled
        return self._settled[1]

    def _goal(self, rng: np.random.Generator) -> Goal:
        m, beliefs = self._num_objectives, self._settled_beliefs()
        objectives = tuple(self._run(i).believed(beliefs[i]) for i in range(m))
        constraints = tuple(self._run(i).believed(beliefs[i]) for i in self._known_constraints())
        # Pending and lost queries come last, as if they had returned what is expected of them.
        values = np.column_stack([belief.y for belief in objectives])
        ghosts = len(values) - len(self._values)
        feasible = np.append(self._is_feasible(), np.ones(ghosts, bool))
        for belief in constraints:
            feasible[len(feasible) - ghosts :] &= belief.y[len(belief.y) - ghosts :] >= 0.0

        def score(anchors: Float[np.ndarray, "m d"]) -> ScoredAnchors:
            if len(values) == 0:
                chosen = HypervolumeScore.first(objectives, constraints, anchors)
            elif len(constraints) and not feasible.any():
                chosen = FeasibilityScore(constraints)
            else:
                front = values[feasible][on_front(values[feasible])]
                reference = self._reference
                if reference is None:
                    reference = _inferred_reference(front, objectives, constraints, anchors)
                boxes = undominated(thinned(front, MOST_POINTS[m]), reference)
                chosen = HypervolumeScore.over(boxes, objectives, constraints)
            return ScoredAnchors(chosen, chosen.values(anchors))

        return Goal(objectives[0].x, _merit(values, feasible, rng), score)

    def _known_constraints(self) -> list[int]:
        """Those that are learned, or were reported at some point."""
        learned = [True] * self._num_objectives
        learned += [prior is not None for prior in self.priors.constraints.values()]
        reported = ~np.all(np.isnan(self._values), axis=0)
        found = np.flatnonzero(np.array(learned) | (len(self._values) > 0) & reported)
        return [int(i) for i in found if i >= self._num_objectives]


def _inferred_reference(
    front: Float[np.ndarray, "n m"],
    objectives: tuple[ConditionedBelief, ...],
    constraints: tuple[ConditionedBelief, ...],
    anchors: Float[np.ndarray, "a d"],
) -> Float[np.ndarray, " m"]:
    """A little below the worst values on the observed front and on the one that is expected."""
    likely = FeasibilityScore(constraints).values(anchors) >= np.log(0.5)
    means = np.column_stack([belief.moments(anchors).mean for belief in objectives])
    both = np.vstack([front, means[likely if likely.any() else np.ones(len(means), bool)]])
    extremes = both[on_front(both)]
    worst, width = np.min(extremes, axis=0), np.ptp(extremes, axis=0)
    # A front of one point has no width; then its own size decides.
    width = np.where(width > 0.0, width, np.maximum(np.ptp(both, axis=0), np.abs(worst)))
    return worst - BELOW_WORST * np.where(width > 0.0, width, 1.0)


def _merit(
    values: Float[np.ndarray, "n m"], feasible: Bool[np.ndarray, " n"], rng: np.random.Generator
) -> Float[np.ndarray, " n"]:
    """How good each point is: feasible ones first, by how many others beat it; at random among
    equals."""
    beaten = [int(np.sum(np.all(values > row, axis=1))) for row in values]
    return -np.array(beaten, float) - len(values) * ~feasible + 0.5 * rng.uniform(size=len(values))
