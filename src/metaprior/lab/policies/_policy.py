"""Policies: from the run so far to the next query, in the whole space or among given choices."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from metaprior.data import Choices, Run, Space
from metaprior.lab.policies._acquisition import AbstractCompiledAcquisition
from metaprior.lab.policies._maximise import (
    CompiledSearch,
    low_discrepancy,
    maximise,
    maximise_over,
)
from metaprior.methods import AbstractSurrogate

# At most this many of the given candidates are anchors of an acquisition, such as the points at
# which a path for Thompson sampling is drawn.
_NUM_ANCHORS = 512


class AbstractPolicy(eqx.Module):
    """Chooses the next query."""

    space: eqx.AbstractVar[Space]

    @abc.abstractmethod
    def suggest(self, run: Run, *, key: PRNGKeyArray) -> Float[Array, " d"]:
        """The next point to evaluate, in the unit cube."""

    def choose(self, run: Run, choices: Choices, *, key: PRNGKeyArray) -> Float[Array, " d"]:
        """The next of `choices` to evaluate; no choice is made twice.

        A policy that knows nothing of choices takes the one nearest to its suggestion.
        """
        wish = self.suggest(run, key=key)
        return choices.points[choices.nearest(wish, choices.unasked(run))]


class SurrogatePolicy(AbstractPolicy):
    """The maximum of an acquisition under a surrogate's posterior."""

    surrogate: AbstractSurrogate
    acquisition: AbstractCompiledAcquisition
    space: Space = eqx.field(static=True)
    search: CompiledSearch = CompiledSearch()

    def __check_init__(self):
        if self.space.codes is not None:
            raise ValueError(
                f"A compiled policy sees a column for each choice, and {self.space} has more than "
                "32 in a dimension; declare it as Categorical(..., one_hot=True) there and for the "
                "past runs."
            )

    def suggest(self, run, *, key):
        key_candidates, key_score = jax.random.split(key)
        candidates = self.search.candidates(self.space, run, key=key_candidates)
        posterior = self.surrogate.condition(run)
        score = self.acquisition.score(posterior, run, candidates, key=key_score)
        return maximise(score, self.space, candidates, self.search)

    def choose(self, run, choices, *, key):
        return choices.points[self.best_of(choices.points, choices.unasked(run), run, key=key)]

    def best_of(
        self,
        candidates: Float[Array, "m d"],
        allowed: Bool[Array, " m"],
        run: Run,
        *,
        key: PRNGKeyArray,
    ) -> Int[Array, ""]:
        """Index of the allowed candidate where the acquisition is largest."""
        stride = -(-candidates.shape[0] // _NUM_ANCHORS)
        posterior = self.surrogate.condition(run)
        score = self.acquisition.score(posterior, run, candidates[::stride], key=key)
        return maximise_over(score, candidates, allowed)

    def predicted_best(
        self, run: Run, *, key: PRNGKeyArray, choices: Choices | None = None
    ) -> Float[Array, " d"]:
        """Where the posterior mean is largest: the answer if the run ended now.

        - `choices`: if given, the answer is one of them, asked before or not.
        """
        posterior = self.surrogate.condition(run)

        def mean(x):
            return posterior.moments(x).mean

        if choices is not None:
            return choices.points[maximise_over(mean, choices.points, choices.valid)]
        candidates = self.search.candidates(self.space, run, key=key)
        return maximise(mean, self.space, candidates, self.search)

    def suggest_and_predict(
        self, run: Run, *, key_suggest: PRNGKeyArray, key_predict: PRNGKeyArray
    ) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        """What `suggest` and `predicted_best` return, by one search that is compiled once."""
        key_candidates, key_score = jax.random.split(key_suggest)
        posterior = self.surrogate.condition(run)
        anchors = self.search.candidates(self.space, run, key=key_candidates)
        wanted = self.acquisition.score(posterior, run, anchors, key=key_score)

        def mean(x):
            return posterior.moments(x).mean

        def find(purpose):
            predict, key = purpose
            candidates = self.search.candidates(self.space, run, key=key)
            return maximise(
                lambda x: jax.lax.cond(predict, mean, wanted, x),
                self.space,
                candidates,
                self.search,
            )

        keys = jnp.stack([key_candidates, key_predict])
        suggested, predicted = jax.lax.map(find, (jnp.array([False, True]), keys))
        return suggested, predicted


class InitialDesign(AbstractPolicy):
    """Points that cover the space first, then another policy: for non-transfer surrogates."""

    policy: AbstractPolicy
    num_initial: int = eqx.field(static=True)
    space: Space = eqx.field(static=True)

    def suggest(self, run, *, key):
        initial = self.space.snap(self._design_point(run))
        return jnp.where(run.length < self.num_initial, initial, self.policy.suggest(run, key=key))

    def choose(self, run, choices, *, key):
        nearest = choices.nearest(self._design_point(run), choices.unasked(run))
        later = self.policy.choose(run, choices, key=key)
        return jnp.where(run.length < self.num_initial, choices.points[nearest], later)

    def _design_point(self, run: Run) -> Float[Array, " d"]:
        design = jnp.asarray(low_discrepancy(self.num_initial, self.space.num_columns))
        return design[jnp.minimum(run.length, self.num_initial - 1)]


class RandomSearch(AbstractPolicy):
    """Uniform over the space, or over the choices left: the baseline without a surrogate."""

    space: Space = eqx.field(static=True)

    def suggest(self, run, *, key):
        return self.space.snap(jax.random.uniform(key, (self.space.num_columns,)))

    def choose(self, run, choices, *, key):
        equal_chances = jnp.where(choices.unasked(run), 0.0, -jnp.inf)
        return choices.points[jax.random.categorical(key, equal_chances)]
