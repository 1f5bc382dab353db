"""Ask and tell: Bayesian optimisation for people, in their own units."""

import copy
import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from jaxtyping import Float

from metaprior.belief import HALF_WIDTH_95, AbstractBelief, Prior, left_in, method_name
from metaprior.bo._acquisition import AbstractAcquisition, RestlessConfidenceBound
from metaprior.bo._checks import (
    check_settings,
    finite_or_failed,
    positive,
    require_count,
    require_prior,
)
from metaprior.bo._moves import Moves
from metaprior.bo._outlook import Expectation, StoppingHint, expectation_of, hint_of
from metaprior.bo._places import Places, Point, matches
from metaprior.bo._propose import Goal, RunSoFar, propose, propose_among, propose_near
from metaprior.bo._record import OBSERVED, SavedRun, Told, damage_of_run
from metaprior.bo._search import Search
from metaprior.bo._settable import roundings
from metaprior.bo._window import Window
from metaprior.data import Features, Points, direction_sign
from metaprior.words import Summary, listed
from metaprior.words import value as shown

if TYPE_CHECKING:
    from metaprior.plots import Figure, TrustHistory
else:  # figures are an extra
    Figure = TrustHistory = Any

# A figure shows trust after at most so many numbers of observations.
MOST_TRUSTS = 40


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
    - `features`: features of the task, by name, for a prior that was learned with features of
      tasks; what is left out counts as the mean of the past ones.
    - `window`: the part of the prior's space that this task uses; all of it by default. Points are
      then those of `window.space`.
    - `seed`: the same seed and the same values give the same queries.
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
        require_prior(prior)
        seed = check_settings(seed, acquisition=acquisition, search=search, window=window)
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
        self._told: list[Told] = []
        # Follows from what was told: what was told last time, and the trust then.
        self._judged: tuple[int, float | None] | None = None
        self._pending = np.zeros((0, width))
        # Queries that failed or were stopped early, and what they are at most: see `RunSoFar`.
        self._lost = np.zeros((0, width))
        self._limit = np.zeros(0)
        self._places = Places.of(self.space, candidates)

    @overload
    def ask(self, *, fixed: Point | None = None, digits: int | None = None) -> Point: ...
    @overload
    def ask(
        self, n: int, *, fixed: Point | None = None, digits: int | None = None
    ) -> list[Point]: ...
    def ask(
        self, n: int | None = None, *, fixed: Point | None = None, digits: int | None = None
    ) -> Point | list[Point]:
        """The next query, or the next `n` queries to be made side by side.

        Queries that have not been told yet are respected: the next one is chosen as if each of
        them had returned what the model expects, so that each query is informative.

        - `fixed`: values that some dimensions must have, by name, wherever they exist; the others
          are chosen for them.
        - `digits`: round real values to so many significant digits, of themselves or of their
          range, whichever is finer; of the ways to round, the one that is worth most is taken.
        """
        count, moves = require_count(n), self._places.moves(fixed)
        require_count(digits, "digits")
        exactly = frozenset(fixed or ())
        points = []
        for _ in range(count):
            x = self._suggest(moves, digits, exactly)
            self._pending = np.vstack([self._pending, x])
            point = self._places.point(x)
            # The nearest rounding of a rounded value: without the last bits of the way back.
            if digits is not None:
                point = roundings(point, self.space, digits, exactly=exactly)[0]
            points.append(point)
        return points[0] if n is None else points

    def tell(self, x: Point, value: float | None, *, stopped: bool = False) -> None:
        """Report what was observed at `x`, asked for or not.

        `None` or NaN reports a failure: the point is not asked again and its surroundings count
        as no better than the worst observation; no value is recorded.

        - `stopped`: the query was stopped early, and its result would have been no better than
          `value`. The point is not asked again and counts as what is expected of it, but no better
          than `value`; with `None`, just as what is expected.
        """
        (encoded,) = self.space.encode([x])
        (point,) = self.space.as_dicts([x])
        number = finite_or_failed(point, value)
        self._pending = self._pending[~matches(self._pending, encoded, first=True)]
        self._told.append(Told.of(point, number, stopped))
        if stopped or math.isnan(number):
            limit = math.inf if stopped and math.isnan(number) else self._sign * number
            self._lost = np.vstack([self._lost, encoded])
            self._limit = np.append(self._limit, limit)
        else:
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
        seed = check_settings(seed, acquisition=acquisition)
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
        return Best(*self.observations[i])

    @property
    def trust(self) -> float | None:
        """Trust in the past runs after everything told so far, between 0 and 1.

        It is the weight of the members that learned from past runs, beside a Gaussian process that
        did not. It may fall in a long run although nothing misleads: by then that process knows
        the function as well. `None` for a method on its own, without `metaprior.methods.Weighed`
        or `metaprior.methods.Guarded` around it.
        """
        if self._judged is None or self._judged[0] != len(self._y):
            self._judged = len(self._y), self._belief.trust(self._x, self._y)
        return self._judged[1]

    def expectation(self, x: Point) -> Expectation:
        """What is expected of the query `x`, and the chance that it beats the best so far."""
        (encoded,) = self.space.encode([x])
        found = expectation_of(self._belief.condition(self._x, self._y), encoded, self._sign)
        (value,) = self.prior.within_bounds(np.array([found.value]))
        return found._replace(value=float(value))

    def stopping(self, tolerance: float | None = None) -> StoppingHint | None:
        """Whether it is worth going on: what is expected to be left, and how surely the best is
        near enough to the optimum; `None` before the first observation.

        The probability that functions drawn from the belief give is corrected by how often such
        statements held in held-out runs, if there were enough of them when the prior was learned
        (`StoppingHint.calibrated`).

        - `tolerance`: what is near enough, in the units of the value; by default a twentieth of the
          distance from the median of the function to its optimum.
        """
        tolerance = None if tolerance is None else positive("tolerance", tolerance)
        if len(self._y) == 0:
            return None
        rng = np.random.default_rng([self._seed, len(self._y)])
        points = self._places.candidates
        if points is None:
            points = self._search.candidates(self._places.moves(None), self._x, self._y, rng)
        left = left_in(self._belief.condition(self._x, self._y), points, rng)
        hint, found = hint_of(left, tolerance), self.prior.findings
        if found is None or found.stopping is None:
            return hint
        return hint._replace(probability=found.stopping(hint.probability), calibrated=True)

    @property
    def observations(self) -> list[tuple[Point, float]]:
        """Everything observed so far, without what failed or was stopped early, in order."""
        seen = [each for each in self._told if each.state == OBSERVED]
        return [(dict(each.point), float(each.value or 0.0)) for each in seen]

    @property
    def history(self) -> list[dict[str, Any]]:
        """Everything told so far, failures included, in order: one record for each answer, with the
        dimensions, the value and a state. `pandas.DataFrame(optimizer.history)` is a table.
        """
        name = self.prior.quantity.name
        return [{**each.point, name: each.value, "state": each.state} for each in self._told]

    def plot(self) -> Figure:
        """A matplotlib figure of the run: every value with the best so far, trust over time, and
        mean and 95 % band of an observation along each dimension through the best point, or the
        middle before there is one. Needs the extra `plots`."""
        from metaprior.plots import (
            MOST_SLICES,
            RunHistory,
            middle_of,
            require_matplotlib,
            run_figure,
            slices_through,
        )

        require_matplotlib("A figure")
        best, space = self.best, self.space
        values = [np.nan if each.state != OBSERVED else each.value for each in self._told]
        through = middle_of(space) | ({} if best is None else best.x)
        slices = slices_through(self._mean_and_band, space, through, space.names)
        slices = sorted(slices, key=lambda along: -along.influence)[:MOST_SLICES]
        return run_figure(
            RunHistory(np.array(values, float), self._sign),
            self._trust_history(),
            slices,
            best,
            self.prior.quantity.label,
        )

    def save(self, path: str | Path) -> Path:
        """Write the run to a file, for `Optimizer.load`: what was told and what is under way."""
        return SavedRun(
            self.space.to_json(),
            self.prior.direction,
            self._told,
            self._pending.tolist(),
            self._seed,
            self._num_asked,
            dict(self.prior.task),
        ).write(path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        prior: Prior,
        *,
        candidates: Points | None = None,
        acquisition: AbstractAcquisition | None = None,
        search: Search | None = None,
        window: Window | None = None,
    ) -> "Optimizer":
        """The optimiser whose run is in the file; its next queries are those of the saved one.

        - `prior` and the others: as they were given to that one; the file has the run only.
        """
        require_prior(prior)
        saved = SavedRun.read(path)
        if saved.features:
            try:
                prior = prior.for_task(saved.features)
            except (TypeError, ValueError):
                names = listed(list(map(repr, saved.features)), 8)
                raise ValueError(
                    f"The run in {path} is of a task with features that the prior does not take "
                    f"({names}); give the prior that it began with."
                ) from None
        optimizer = cls(
            prior,
            candidates=candidates,
            acquisition=acquisition,
            search=search,
            window=window,
            seed=saved.seed,
        )
        if (saved.space, saved.direction) != (optimizer.space.to_json(), prior.direction):
            raise ValueError(
                f"The run in {path} is to {saved.direction} over another space than that of the "
                "prior; give the prior, and the window, that it began with."
            )
        with damage_of_run(path):
            for point, value, stopped in saved.told:
                optimizer.tell(point, value, stopped=stopped)
            width = optimizer.space.num_columns
            if any(len(row) != width for row in saved.pending):
                raise ValueError(f"a pending query has not {width} columns")
            optimizer._pending = np.array(saved.pending, float).reshape(-1, width)
        optimizer._num_asked = saved.num_asked
        return optimizer

    @property
    def pending(self) -> list[Point]:
        """Queries asked for and not yet told."""
        return [self._places.point(x) for x in self._pending]

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_html()

    def _summary(self) -> Summary:
        best, count = self.best, self._places.candidates
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

    def _suggest(
        self, moves: Moves, digits: int | None, exactly: Collection[str]
    ) -> Float[np.ndarray, " d"]:
        rng = np.random.default_rng([self._seed, self._num_asked])
        self._num_asked += 1
        run = RunSoFar(self._x, self._y, self._pending, self._lost, self._limit)
        believed, acquisition = run.believed(self._settled_belief()), self._acquisition
        goal = Goal(believed.x, believed.y, lambda at: acquisition.score(believed, at, rng))
        candidates = self._places.candidates
        if candidates is None:
            x = propose(goal, moves, run, self._search, rng)
            if digits is None:
                return x
            point = self._places.point(x)
            settable = roundings(point, self.space, digits, exactly=exactly)
            return propose_near(goal, moves.placed(self.space.encode(settable)), run)
        used = np.vstack([self._x, self._pending, self._lost])
        return candidates[
            propose_among(goal, candidates, self._places.allowed(candidates, used, moves))
        ]

    def _mean_and_band(self, points: Points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and 95 % band of an observation, given what was told, in the user's units."""
        moments = self._belief.condition(self._x, self._y).moments(self.space.encode(points))
        mean, half = self._sign * moments.mean, HALF_WIDTH_95 * np.sqrt(moments.variance)
        bound = self.prior.within_bounds
        return bound(mean), bound(mean - half), bound(mean + half)

    def _trust_history(self) -> TrustHistory | None:
        """Trust after each observation, or after some of them evenly spread if there are many."""
        from metaprior.plots import TrustHistory

        count = len(self._y)
        after = np.unique(np.linspace(0, count, min(count + 1, MOST_TRUSTS)).round().astype(int))
        found = [self._belief.trust(self._x[:k], self._y[:k]) for k in after]
        known = [each for each in found if each is not None]
        return TrustHistory(after.tolist(), known) if len(known) == len(found) else None

    def _settled_belief(self) -> AbstractBelief:
        """The belief at the trust that the observations alone give to a prior with a guard; the
        weights of a mixture follow from the run."""
        trust = self.trust
        return self._belief if trust is None else self._belief.settled(trust)
