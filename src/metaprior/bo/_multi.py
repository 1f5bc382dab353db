"""Ask and tell for several values per query: objectives that compete, and constraints."""

import copy
import math
from collections.abc import Mapping
from typing import NamedTuple, overload

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief import AbstractBelief, ConditionedBelief, FittedBelief, Priors
from metaprior.bo._acquisition import ScoredAnchors
from metaprior.bo._checks import check_settings, finite_or_failed, require_count
from metaprior.bo._feasibility import FeasibilityScore
from metaprior.bo._front import (
    FEWEST_SAMPLED,
    MOST_OBJECTIVES,
    MOST_POINTS,
    MOST_SAMPLED,
    far_apart,
    on_front,
    thinned,
    undominated,
)
from metaprior.bo._hypervolume import HypervolumeScore, inferred_reference
from metaprior.bo._many import AbstractManyObjectives, FrontSoFar
from metaprior.bo._moves import Moves
from metaprior.bo._places import Places, Point, matches
from metaprior.bo._propose import (
    Goal,
    RunSoFar,
    best_allowed,
    best_new,
    propose,
    propose_among,
)
from metaprior.bo._search import Search
from metaprior.bo._window import Window
from metaprior.data import Features, Points, direction_sign
from metaprior.words import Summary

# Of the GP that models a constraint without past runs.
FITTING_STEPS = 25


class Outcome(NamedTuple):
    """What was observed at a point, by name."""

    x: Point
    values: dict[str, float]


class _Known(NamedTuple):
    """What is believed of each value after a run, and the values themselves; those that are made
    up, of pending and lost queries, come last."""

    objectives: tuple[ConditionedBelief, ...]
    constraints: tuple[ConditionedBelief, ...]
    values: Float[np.ndarray, "n m"]
    feasible: Bool[np.ndarray, " n"]


class MultiOptimizer:
    """Optimises several values of one new task with learned priors, one query or batch at a time.

    The next query is the one with the largest expected hypervolume improvement, times the
    probability that all constraints hold; with one objective, expected improvement. Objectives and
    constraints are taken to be independent of each other.

    - `priors`: what `metaprior.learn_outputs` or `metaprior.load_priors` returned, or
      `Priors({"accuracy": prior, "cost": other})`.
    - `reference`: by name, the worst value of each objective that is of any interest; the volume
      counts from there. By default, a little below what the front has at worst: the observed one,
      the predicted one, and that of values two standard deviations better than predicted.
    - `many`: for five objectives and more, `metaprior.adapters.botorch.ManyObjectives()`: the
      improvement is then sampled and not computed in closed form.
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
        many: AbstractManyObjectives | None = None,
        seed: int = 0,
    ):
        if not isinstance(priors, Priors):
            raise TypeError(
                f"`priors` is a {type(priors).__name__}; give "
                "`Priors({name: prior, ...}, constraints={...})`."
            )
        seed = check_settings(seed, search=search, window=window)
        is_closed = len(priors.objectives) <= MOST_OBJECTIVES
        if not is_closed and many is None:
            raise ValueError(
                f"Received {len(priors.objectives)} objectives; give at most {MOST_OBJECTIVES} and "
                "the others as constraints, or install BoTorch with `pip install "
                "'metaprior[botorch]'` and give "
                "`many=metaprior.adapters.botorch.ManyObjectives()` for its qLogNEHVI."
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
        self._many = None if is_closed else many
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
            self._told += self.space.as_dicts([x])
            self._x = np.vstack([self._x, encoded])
            self._values = np.vstack([self._values, row])

    def expect(self, points: Points) -> None:
        """Take queries that other workers have under way into account: see `Optimizer.expect`."""
        self._pending = np.vstack([self._pending, self.space.encode(points)])

    def fork(self, *, seed: int) -> "MultiOptimizer":
        """A copy; what either is told from now on does not reach the other."""
        seed = check_settings(seed)
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
        if self._many is not None and self._has_begun():
            return self._suggest_sampled(self._many, moves, rng)
        goal = self._goal(rng)
        candidates = self._places.candidates
        if candidates is None:
            return propose(goal, moves, self._run(0), self._search, rng)
        return candidates[propose_among(goal, candidates, self._allowed(candidates, moves))]

    def _suggest_sampled(
        self, many: AbstractManyObjectives, moves: Moves, rng: np.random.Generator
    ) -> Float[np.ndarray, " d"]:
        """The candidate that is worth most, of those given or of those that a search begins with:
        there is no slope to climb."""
        known, given = self._known(has_pending=False), self._places.candidates
        x, values = known.objectives[0].x, known.values
        merit = _merit(values, known.feasible, rng)
        candidates = self._search.candidates(moves, x, merit, rng) if given is None else given
        rows = np.flatnonzero(known.feasible)
        rows = rows[on_front(values[rows])]
        most = MOST_SAMPLED.get(self._num_objectives, FEWEST_SAMPLED)
        rows = rows[far_apart(values[rows], most)]
        reference = self._reference
        if reference is None:
            reference = inferred_reference(values[rows], *known[:2], candidates)
        front = FrontSoFar(*known[:2], x[rows], self._pending, reference)
        worth = many.values(front, candidates, rng)
        if given is None:
            return best_new(worth, candidates, self._run(0))
        return given[best_allowed(worth, self._allowed(given, moves))]

    def _has_begun(self) -> bool:
        """Whether anything but infeasible observations is known."""
        return bool(len(self._pending) or len(self._lost) or self._is_feasible().any())

    def _allowed(
        self, candidates: Float[np.ndarray, "m d"], moves: Moves
    ) -> Bool[np.ndarray, " m"]:
        used = np.vstack([self._x, self._pending, self._lost])
        return self._places.allowed(candidates, used, moves)

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

    def _known(self, *, has_pending: bool) -> _Known:
        """What the run has shown, lost queries included; pending ones count, with `has_pending`,
        as if they had returned what is expected of them."""
        m, beliefs = self._num_objectives, self._settled_beliefs()
        pending = self._pending if has_pending else self._pending[:0]
        objectives, constraints = (
            tuple(self._run(i)._replace(pending=pending).believed(beliefs[i]) for i in own)
            for own in (range(m), self._known_constraints())
        )
        values = np.column_stack([belief.y for belief in objectives])
        ghosts = len(values) - len(self._values)
        feasible = np.append(self._is_feasible(), np.ones(ghosts, bool))
        for belief in constraints:
            feasible[len(feasible) - ghosts :] &= belief.y[len(belief.y) - ghosts :] >= 0.0
        return _Known(objectives, constraints, values, feasible)

    def _goal(self, rng: np.random.Generator) -> Goal:
        objectives, constraints, values, feasible = self._known(has_pending=True)
        m = self._num_objectives

        def score(anchors: Float[np.ndarray, "m d"]) -> ScoredAnchors:
            if len(values) == 0:
                chosen = HypervolumeScore.first(objectives, constraints, anchors)
            elif len(constraints) and not feasible.any():
                chosen = FeasibilityScore(constraints)
            else:
                front = values[feasible][on_front(values[feasible])]
                reference = self._reference
                if reference is None:
                    reference = inferred_reference(front, objectives, constraints, anchors)
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


def _merit(
    values: Float[np.ndarray, "n m"], feasible: Bool[np.ndarray, " n"], rng: np.random.Generator
) -> Float[np.ndarray, " n"]:
    """How good each point is: feasible ones first, by how many others beat it; at random among
    equals."""
    beaten = [int(np.sum(np.all(values > row, axis=1))) for row in values]
    return -np.array(beaten, float) - len(values) * ~feasible + 0.5 * rng.uniform(size=len(values))
