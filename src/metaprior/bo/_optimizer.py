"""Ask and tell: Bayesian optimisation for people, in their own units."""

import copy
import dataclasses
import math
from typing import Any, NamedTuple, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from metaprior.belief import Prior
from metaprior.bo._acquisition import AbstractAcquisition, Held, RestlessConfidenceBound
from metaprior.bo._maximise import Search
from metaprior.bo._policy import SurrogatePolicy
from metaprior.data import Points, Run, direction_sign, run_of
from metaprior.gp import float64, require_finite
from metaprior.methods import AbstractSurrogate
from metaprior.words import Summary
from metaprior.words import value as shown

Point = dict[str, Any]

# Two points of the unit cube closer than this are the same query.
SAME_POINT = 1e-9


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
    - `seed`: the same seed and the same answers give the same questions.
    """

    def __init__(
        self,
        prior: Prior,
        *,
        candidates: Points | None = None,
        acquisition: AbstractAcquisition | None = None,
        search: Search | None = None,
        seed: int = 0,
    ):
        self.prior = prior
        self.space = prior.space
        self._policy = SurrogatePolicy(
            surrogate=prior.surrogate,
            acquisition=RestlessConfidenceBound() if acquisition is None else acquisition,
            space=prior.space,
            search=Search() if search is None else search,
        )
        self._sign = direction_sign(prior.direction)
        self._seed = seed
        self._num_asked = 0
        width = prior.space.num_columns
        self._x = np.zeros((0, width))
        self._y = np.zeros(0)
        self._told: list[Point] = []
        # Both follow from what was told, and are made when they are first needed.
        self._observed: Run | None = None
        self._trust: float | None = None
        self._pending = np.zeros((0, width))
        self._failed = np.zeros((0, width))
        self._rows, self._candidates = _checked(prior, candidates)

    @overload
    def ask(self, *, fixed: Point | None = None) -> Point: ...
    @overload
    def ask(self, n: int, *, fixed: Point | None = None) -> list[Point]: ...
    @float64
    def ask(self, n: int | None = None, *, fixed: Point | None = None) -> Point | list[Point]:
        """The next query, or the next `n` queries to be made side by side.

        Queries that have not been told yet are respected: the next one is chosen as if each of
        them had returned what the model expects, so that each query is informative.

        - `fixed`: values that some dimensions must have, by name; the others are chosen for them.
        """
        if n is not None and (not isinstance(n, int) or n < 1):
            raise ValueError(f"Cannot ask for {n!r} points; give a whole number of at least 1.")
        held = self._held(fixed) if fixed else None
        points = []
        for _ in range(1 if n is None else n):
            x = self._suggest(held)
            self._pending = np.vstack([self._pending, x])
            points.append(self._point(x))
        return points[0] if n is None else points

    def tell(self, x: Point, value: float | None) -> None:
        """Report what was observed at `x`, asked for or not.

        `None` or NaN reports a failure: the point is not asked again and its surroundings count
        as no better than the worst observation, but nothing is made up for the record.
        """
        (encoded,) = self.space.encode([x])
        number = _number(x, value)
        self._pending = self._pending[~_matches(self._pending, encoded, first=True)]
        if math.isnan(number):
            self._failed = np.vstack([self._failed, encoded])
        else:
            self._told.append(dict(x))
            self._x = np.vstack([self._x, encoded])
            self._y = np.append(self._y, self._sign * number)
            self._observed = self._trust = None

    def expect(self, points: Points) -> None:
        """Take queries that other workers have under way into account.

        They are respected like those that were asked for here, until they are told.
        """
        self._pending = np.vstack([self._pending, self.space.encode(points)])

    def fork(self, *, seed: int, acquisition: AbstractAcquisition | None = None) -> "Optimizer":
        """Another optimiser that knows the same; what it hears from now on is not known here.

        For callers that ask often, with different queries under way each time.

        - `acquisition`: how much a query is worth there; by default the same as here.
        """
        other = copy.copy(self)
        other._told = list(self._told)
        other._seed, other._num_asked = seed, 0
        if acquisition is not None:
            other._policy = dataclasses.replace(self._policy, acquisition=acquisition)
        return other

    @property
    def best(self) -> Best | None:
        """The best observation so far, or `None` before the first."""
        if len(self._y) == 0:
            return None
        i = int(np.argmax(self._y))
        return Best(dict(self._told[i]), float(self._sign * self._y[i]))

    @property
    @float64
    def trust(self) -> float | None:
        """Trust in the learned prior after everything told so far, between 0 and 1.

        Near 1 the past helps and the learned prior alone is used; near 0 this task is unlike the
        past ones and a Gaussian process fitted to this run alone is. `None` for a prior without
        a guard (see `metaprior.methods.Guarded`).
        """
        surrogate = self.prior.surrogate
        if surrogate.judges and self._trust is None:
            self._trust = float(_trust(surrogate, self._run()))
        return self._trust

    @property
    def observations(self) -> list[tuple[Point, float]]:
        """Everything told so far that did not fail, in order."""
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
        told = f"{len(self._y)} observed, {len(self._failed)} failed, {len(self._pending)} pending"
        point = "" if best is None else ", ".join(f"{k}={shown(v)}" for k, v in best.x.items())
        return Summary(
            f"Optimizer to {self.prior.direction}",
            [
                ("best", "nothing observed" if best is None else f"{best.value:g} at {point}"),
                ("queries", told),
                ("candidates", "whole space" if count is None else f"{len(count):,} given points"),
                ("method", repr(self.prior.method)),
            ],
        )

    def _point(self, x: Float[np.ndarray, " d"]) -> Point:
        """A query in the user's units; a candidate exactly as it was given, to look it up by."""
        if self._candidates is None:
            (point,) = self.space.decode(x[None])
            return point
        return dict(self._rows[int(np.argmax(_matches(self._candidates, x)))])

    def _held(self, fixed: Point) -> Held:
        """The acquisition where the dimensions in `fixed` have their values."""
        unknown = [name for name in fixed if name not in self.space.names]
        if unknown:
            raise ValueError(
                f"`fixed` has {unknown[0]!r}, which is none of the dimensions "
                f"{list(self.space.names)}; leave it out."
            )
        (anywhere,) = self.space.decode(np.full((1, self.space.num_columns), 0.5))
        (values,) = self.space.encode([{**anywhere, **fixed}], where="fixed")
        named = zip(self.space.names, self.space.dimensions, strict=True)
        mask = np.concatenate([np.full(d.num_columns, name in fixed) for name, d in named])
        return Held(self._policy.acquisition, jnp.asarray(mask), jnp.asarray(values))

    def _suggest(self, held: Held | None) -> Float[np.ndarray, " d"]:
        key = _key(self._seed, self._num_asked)
        self._num_asked += 1
        run, policy = self._believed(), self._policy_now()
        if held is not None:
            policy = dataclasses.replace(policy, acquisition=held)
        if self._candidates is None:
            x = _placed(np.asarray(_suggest(policy, run, key)), held)
            require_finite(x, "The suggested point")
            return self._instead_of(x, policy, held, run, key)
        allowed = _unused(self._candidates, [self._x, self._pending, self._failed])
        if not allowed.any():
            raise ValueError(
                f"All {len(self._candidates)} candidates have been asked; stop here, or start an "
                "Optimizer with more of them."
            )
        allowed &= np.all(
            np.abs(_placed(self._candidates, held) - self._candidates) <= SAME_POINT, 1
        )
        if not allowed.any():
            raise ValueError("No candidate that is left has the values in `fixed`; change them.")
        return _best_of(policy, self._candidates, allowed, run, key)

    def _policy_now(self) -> SurrogatePolicy:
        """The policy, at the trust that the observations alone give to a guarded prior: beliefs
        about pending and failed queries are no evidence."""
        trust = self.trust
        if trust is None:
            return self._policy
        settled = self.prior.surrogate.settled(trust)
        return dataclasses.replace(self._policy, surrogate=settled)

    def _instead_of(
        self, x, policy: SurrogatePolicy, held: Held | None, run: Run, key: PRNGKeyArray
    ) -> Float[np.ndarray, " d"]:
        """`x`, or the best candidate of the search where `x` is under way or has failed before.

        A prior that is sure of a corner, or a space of few values, can put the maximum on such a
        point again. Where nothing else is left, it is asked again.
        """
        avoided = [self._pending, self._failed]
        if _unused(x[None], avoided).all():
            return x
        candidates = _placed(np.asarray(_search_candidates(policy, run, key)), held)
        allowed = _unused(candidates, avoided)
        return _best_of(policy, candidates, allowed, run, key) if allowed.any() else x

    def _run(self) -> Run:
        """Everything told so far."""
        if self._observed is None:
            # One spare row, so that asking and telling in turns meets no other shapes than telling.
            self._observed = run_of(self._x, self._y, spare=1)
        return self._observed

    def _believed(self) -> Run:
        """The run, with pending and failed queries filled in with what they stand for."""
        ghosts = np.vstack([self._pending, self._failed])
        if len(ghosts) == 0:
            return self._run()
        x = np.vstack([self._x, ghosts])
        run = run_of(x, np.append(self._y, np.zeros(len(ghosts))), spare=1)
        is_failed = np.arange(len(run.y)) >= len(x) - len(self._failed)
        return _fill_in(
            self._policy_now().surrogate, run, jnp.asarray(len(self._y)), jnp.asarray(is_failed)
        )


def _checked(
    prior: Prior, candidates: Points | None
) -> tuple[list[Point], Float[np.ndarray, "m d"] | None]:
    """Candidates as they were given and encoded; nothing and `None` if there are none."""
    if candidates is None:
        return [], None
    rows = prior.space.as_dicts(candidates, where="candidates")
    if not rows:
        raise ValueError("`candidates` is empty; give at least one point, or leave it out.")
    return rows, prior.space.encode(rows, where="candidates")


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


def _placed(points: Float[np.ndarray, "*m d"], held: Held | None) -> Float[np.ndarray, "*m d"]:
    """Points with the columns that are held at their values."""
    return points if held is None else np.where(held.mask, held.values, points)


def _best_of(policy: SurrogatePolicy, candidates, allowed, run: Run, key: PRNGKeyArray):
    index = _choose(policy, run, jnp.asarray(candidates), jnp.asarray(allowed), key)
    return candidates[int(index)]


def _unused(points: Float[np.ndarray, "m d"], used: list[np.ndarray]) -> Bool[np.ndarray, " m"]:
    """Which of `points` are none of the queries in `used`."""
    unused = np.ones(len(points), bool)
    for x in np.vstack(used):
        unused &= ~_matches(points, x)
    return unused


def _matches(points: Float[np.ndarray, "m d"], x: Float[np.ndarray, " d"], *, first: bool = False):
    """Which of `points` are the query `x`; with `first`, only the first of them."""
    same = np.all(np.abs(points - x) <= SAME_POINT, axis=1)
    return same & (np.cumsum(same) == 1) if first else same


@jax.jit
def _key(seed: Int[Array, ""], index: Int[Array, ""]) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.key(seed), index)


@eqx.filter_jit
def _trust(surrogate: AbstractSurrogate, run: Run) -> Float[Array, ""]:
    return surrogate.trust(run)


@eqx.filter_jit
def _suggest(policy: SurrogatePolicy, run: Run, key: PRNGKeyArray) -> Float[Array, " d"]:
    return policy.suggest(run, key=key)


@eqx.filter_jit
def _search_candidates(policy: SurrogatePolicy, run: Run, key: PRNGKeyArray):
    return policy.search.candidates(policy.space, run, key=key)


@eqx.filter_jit
def _choose(
    policy: SurrogatePolicy,
    run: Run,
    candidates: Float[Array, "m d"],
    allowed: Bool[Array, " m"],
    key: PRNGKeyArray,
) -> Int[Array, ""]:
    return policy.best_of(candidates, allowed, run, key=key)


@eqx.filter_jit
def _fill_in(
    surrogate: AbstractSurrogate,
    run: Run,
    num_observed: Int[Array, ""],
    is_failed: Bool[Array, " capacity"],
) -> Run:
    """Pending queries at their posterior mean; failed ones no better than the worst observation."""
    observed = Run(run.x, run.y, num_observed)
    posterior = surrogate.condition(observed)
    expected = jax.vmap(lambda x: posterior.moments(x).mean)(run.x)
    worst = jnp.min(jnp.where(observed.mask, run.y, jnp.inf))
    believed = jnp.where(is_failed, jnp.minimum(expected, worst), expected)
    return Run(run.x, jnp.where(observed.mask, run.y, believed), run.length)
