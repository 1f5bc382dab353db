"""Ask and tell: Bayesian optimisation for people, in their own units."""

import copy
import math
from typing import Any, NamedTuple, overload

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief import AbstractBelief, Prior, method_name
from metaprior.bo._acquisition import AbstractAcquisition, RestlessConfidenceBound
from metaprior.bo._moves import Moves, free_moves
from metaprior.bo._propose import SAME_POINT, RunSoFar, propose, propose_among, unused
from metaprior.bo._search import Search
from metaprior.bo._window import Window
from metaprior.data import Dimension, Features, Points, Space, complaint, direction_sign
from metaprior.words import Summary
from metaprior.words import value as shown

Point = dict[str, Any]


class Best(NamedTuple):
    """The best observation of a run."""

    x: Point
    value: float


class Optimizer:
    """Optimises one new task with a learned prior, one query or one batch at a time.

    - `prior`: what `metaprior.learn` or `metaprior.load` returned.
    - `candidates`: if given, only these points may be asked, each at most once.
    - `acquisition`: how much a query is worth; by default the upper confidence bound, with
      checks once the model claims that nothing better is left.
    - `search`: how hard to search for the best query.
    - `features`: what is known of the task, by name, for a prior that was learned with features of
      tasks; what is left out counts as the mean of the past ones.
    - `window`: the part of the prior's space that this task uses; all of it by default. Points are
      then those of `window.space`.
    - `seed`: the same seed and the same answers give the same questions.
    """

    def __init__(
        self,
        prior: Prior,
        *,
        candidates: Points | None = None,
        acquisition: AbstractAcquisition | None = None,
        search: Search | None = None,
        features: Features | None = None,
        window: Window | None = None,
        seed: int = 0,
    ):
        prior = prior if features is None else prior.for_task(features)
        self.prior = prior
        self.space = prior.space if window is None else window.space
        self._belief = prior.belief if window is None else window.through(prior.belief)
        self._acquisition = RestlessConfidenceBound() if acquisition is None else acquisition
        self._search = Search() if search is None else search
        self._sign = direction_sign(prior.direction)
        self._seed = seed
        self._num_asked = 0
        width = self.space.num_columns
        self._x = np.zeros((0, width))
        self._y = np.zeros(0)
        self._told: list[Point] = []
        # Follows from what was told: what was told last time, and the trust then.
        self._judged: tuple[int, float | None] | None = None
        self._pending = np.zeros((0, width))
        # Queries that failed or were stopped early, and what they are at most: see `RunSoFar`.
        self._lost = np.zeros((0, width))
        self._limit = np.zeros(0)
        self._rows, self._candidates = _checked(self.space, candidates)

    @overload
    def ask(self, *, fixed: Point | None = None) -> Point: ...
    @overload
    def ask(self, n: int, *, fixed: Point | None = None) -> list[Point]: ...
    def ask(self, n: int | None = None, *, fixed: Point | None = None) -> Point | list[Point]:
        """The next query, or the next `n` queries to be made side by side.

        Queries that have not been told yet are respected: the next one is chosen as if each of
        them had returned what the model expects, so that each query is informative.

        - `fixed`: values that some dimensions must have, by name, wherever they exist; the others
          are chosen for them.
        """
        if n is not None and (not isinstance(n, int) or n < 1):
            raise ValueError(f"Cannot ask for {n!r} points; give a whole number of at least 1.")
        moves = self._moves(fixed) if fixed else free_moves(self.space)
        points = []
        for _ in range(1 if n is None else n):
            x = self._suggest(moves)
            self._pending = np.vstack([self._pending, x])
            points.append(self._point(x))
        return points[0] if n is None else points

    def tell(self, x: Point, value: float | None, *, stopped: bool = False) -> None:
        """Report what was observed at `x`, asked for or not.

        `None` or NaN reports a failure: the point is not asked again and its surroundings count
        as no better than the worst observation, but nothing is made up for the record.

        - `stopped`: the query was stopped early, and its result would have been no better than
          `value`. The point is not asked again and counts as what is expected of it, but no better
          than `value`; with `None`, just as what is expected.
        """
        (encoded,) = self.space.encode([x])
        number = _number(x, value)
        self._pending = self._pending[~_matches(self._pending, encoded, first=True)]
        if stopped or math.isnan(number):
            limit = math.inf if stopped and math.isnan(number) else self._sign * number
            self._lost = np.vstack([self._lost, encoded])
            self._limit = np.append(self._limit, limit)
        else:
            self._told.append(dict(x))
            self._x = np.vstack([self._x, encoded])
            self._y = np.append(self._y, self._sign * number)

    def expect(self, points: Points) -> None:
        """Take queries that other workers have under way into account.

        They are respected like those that were asked for here, until they are told.
        """
        self._pending = np.vstack([self._pending, self.space.encode(points)])

    def fork(self, *, seed: int, acquisition: AbstractAcquisition | None = None) -> "Optimizer":
        """A copy; what either is told from now on does not reach the other.

        For callers that ask often, with different pending queries each time.

        - `acquisition`: how much a query is worth there; by default the same as here.
        """
        other = copy.copy(self)
        other._told = list(self._told)
        other._seed, other._num_asked = seed, 0
        if acquisition is not None:
            other._acquisition = acquisition
        return other

    @property
    def best(self) -> Best | None:
        """The best observation so far, or `None` before the first."""
        if len(self._y) == 0:
            return None
        i = int(np.argmax(self._y))
        return Best(dict(self._told[i]), float(self._sign * self._y[i]))

    @property
    def trust(self) -> float | None:
        """Trust in the learned prior after everything told so far, between 0 and 1.

        Near 1 the past helps and the learned prior alone is used; near 0 this task is unlike the
        past ones and a Gaussian process fitted to this run alone is. `None` for a prior without
        a guard (see `metaprior.methods.Guarded`).
        """
        if self._judged is None or self._judged[0] != len(self._y):
            self._judged = len(self._y), self._belief.trust(self._x, self._y)
        return self._judged[1]

    @property
    def observations(self) -> list[tuple[Point, float]]:
        """Everything observed so far, without what failed or was stopped early, in order."""
        return list(zip(map(dict, self._told), (self._sign * self._y).tolist(), strict=True))

    @property
    def pending(self) -> list[Point]:
        """Queries asked for and not yet told."""
        return [self._point(x) for x in self._pending]

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_html()

    def _summary(self) -> Summary:
        best, count = self.best, self._candidates
        failed = int(np.sum(np.isnan(self._limit)))
        told = f"{len(self._y)} observed, {failed} failed, {len(self._pending)} pending"
        if failed < len(self._limit):
            told += f", {len(self._limit) - failed} stopped early"
        point = "" if best is None else ", ".join(f"{k}={shown(v)}" for k, v in best.x.items())
        return Summary(
            f"Optimizer to {self.prior.direction}",
            [
                ("best", "nothing observed" if best is None else f"{best.value:g} at {point}"),
                ("queries", told),
                ("candidates", "whole space" if count is None else f"{len(count):,} given points"),
                ("method", method_name(self.prior.contents.settings)),
            ],
        )

    def _point(self, x: Float[np.ndarray, " d"]) -> Point:
        """A query in the user's units; a candidate exactly as it was given, to look it up by."""
        if self._candidates is None:
            (point,) = self.space.decode(x[None])
            return point
        return dict(self._rows[int(np.argmax(_matches(self._candidates, x)))])

    def _moves(self, fixed: Point) -> Moves:
        """What a search may do where the dimensions in `fixed` have their values."""
        unknown = [name for name in fixed if name not in self.space.names]
        if unknown:
            raise ValueError(
                f"`fixed` has {unknown[0]!r}, which is none of the dimensions "
                f"{list(self.space.names)}; leave it out."
            )
        named = list(zip(self.space.names, self.space.dimensions, strict=True))
        for name in fixed:
            _require_possible(name, name, fixed, dict(named))
        held = np.concatenate([np.full(d.num_columns, name in fixed) for name, d in named])
        # Each dimension by itself: it counts where it exists, and that may not be known yet.
        values = [
            d.encode([fixed[name]], complaint("fixed", f"dimension {name!r}"))[0]
            if name in fixed
            else np.full(d.num_columns, 0.5)
            for name, d in named
        ]
        return Moves(self.space, held, np.concatenate(values))

    def _suggest(self, moves: Moves) -> Float[np.ndarray, " d"]:
        rng = np.random.default_rng([self._seed, self._num_asked])
        self._num_asked += 1
        run = RunSoFar(self._x, self._y, self._pending, self._lost, self._limit)
        belief = self._settled_belief()
        if self._candidates is None:
            return propose(belief, self._acquisition, moves, run, self._search, rng)
        allowed = self._allowed(self._candidates, moves)
        index = propose_among(belief, self._acquisition, self._candidates, allowed, run, rng)
        return self._candidates[index]

    def _settled_belief(self) -> AbstractBelief:
        """The belief at the trust that the observations alone give to a guarded prior: beliefs
        about pending and lost queries are no evidence."""
        trust = self.trust
        return self._belief if trust is None else self._belief.settled(trust)

    def _allowed(
        self, candidates: Float[np.ndarray, "m d"], moves: Moves
    ) -> Bool[np.ndarray, " m"]:
        """Which candidates have not been asked and have the values that are fixed, one at least."""
        allowed = unused(candidates, np.vstack([self._x, self._pending, self._lost]))
        if not allowed.any():
            raise ValueError(
                f"All {len(candidates)} candidates have been asked; stop here, or start an "
                "Optimizer with more of them."
            )
        allowed &= np.all(np.abs(moves.placed(candidates) - candidates) <= SAME_POINT, axis=1)
        if not allowed.any():
            raise ValueError("No candidate that is left has the values in `fixed`; change them.")
        return allowed


def _checked(
    space: Space, candidates: Points | None
) -> tuple[list[Point], Float[np.ndarray, "m d"] | None]:
    """Candidates as they were given and encoded; nothing and `None` if there are none."""
    if candidates is None:
        return [], None
    rows = space.as_dicts(candidates, where="candidates")
    if not rows:
        raise ValueError("`candidates` is empty; give at least one point, or leave it out.")
    return rows, space.encode(rows, where="candidates")


def _require_possible(
    name: str, ancestor: str, fixed: Point, dimensions: dict[str, Dimension]
) -> None:
    """Raise an error if other fixed values keep `name`, or an ancestor of it, from existing."""
    for parent, values in dimensions[ancestor].when:
        if parent not in fixed:
            _require_possible(name, parent, fixed, dimensions)
        elif fixed[parent] not in values:
            raise ValueError(
                f"`fixed` has {name!r}, which needs {parent!r} to be "
                f"{' or '.join(map(repr, values))}, and fixes {parent!r} at {fixed[parent]!r}; "
                "leave out one of the two."
            )


def _number(x: Point, value: Any) -> float:
    """What was told, NaN for a failure."""
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise ValueError(
            f"The value told for {x} is {value!r}; tell a finite number, or None for a failure."
        )
    return number


def _matches(points: Float[np.ndarray, "m d"], x: Float[np.ndarray, " d"], *, first: bool = False):
    """Which of `points` are the query `x`; with `first`, only the first of them."""
    same = np.all(np.abs(points - x) <= SAME_POINT, axis=1)
    return same & (np.cumsum(same) == 1) if first else same
