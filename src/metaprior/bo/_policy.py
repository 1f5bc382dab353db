"""Policies: from the run so far to the next query."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.bo._acquisition import AbstractAcquisition
from metaprior.bo._maximise import Search, low_discrepancy, maximise
from metaprior.data import Run, Space
from metaprior.methods import AbstractSurrogate


class AbstractPolicy(eqx.Module):
    """Chooses the next query."""

    space: eqx.AbstractVar[Space]

    @abc.abstractmethod
    def suggest(self, run: Run, *, key: PRNGKeyArray) -> Float[Array, " d"]:
        """The next point to evaluate, in the unit cube."""


class SurrogatePolicy(AbstractPolicy):
    """The maximum of an acquisition under a surrogate's posterior."""

    surrogate: AbstractSurrogate
    acquisition: AbstractAcquisition
    space: Space = eqx.field(static=True)
    search: Search = Search()

    def suggest(self, run, *, key):
        key_candidates, key_score = jax.random.split(key)
        candidates = self.search.candidates(self.space, run, key=key_candidates)
        posterior = self.surrogate.condition(run)
        score = self.acquisition.score(posterior, run, candidates, key=key_score)
        return maximise(score, self.space, candidates, self.search)

    def predicted_best(self, run: Run, *, key: PRNGKeyArray) -> Float[Array, " d"]:
        """Where the posterior mean is largest: the answer if the run ended now."""
        candidates = self.search.candidates(self.space, run, key=key)
        posterior = self.surrogate.condition(run)
        return maximise(lambda x: posterior.moments(x).mean, self.space, candidates, self.search)


class InitialDesign(AbstractPolicy):
    """Points that cover the space first, then another policy: for surrogates without a past."""

    policy: AbstractPolicy
    num_initial: int = eqx.field(static=True)
    space: Space = eqx.field(static=True)

    def suggest(self, run, *, key):
        design = jnp.asarray(low_discrepancy(self.num_initial, self.space.num_columns))
        initial = self.space.snap(design[jnp.minimum(run.length, self.num_initial - 1)])
        return jnp.where(run.length < self.num_initial, initial, self.policy.suggest(run, key=key))


class RandomSearch(AbstractPolicy):
    """Uniform over the space: the baseline without a surrogate."""

    space: Space = eqx.field(static=True)

    def suggest(self, run, *, key):
        return self.space.snap(jax.random.uniform(key, (self.space.num_columns,)))
