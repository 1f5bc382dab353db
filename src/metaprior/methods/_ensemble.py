r"""An ensemble: the same method trained from several seeds, each as likely as any other.

Trainings that end in different priors disagree where the past says little, and there a single one
is too sure of itself. The belief of the ensemble is the mixture $\frac1K \sum_k p_k$.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior._precision import float64
from metaprior.data import Run, Tasks
from metaprior.meta._batch import stack
from metaprior.methods._fpacoh_map import FPacohMap
from metaprior.methods._gradient import AbstractGradientMethod, meta_train_many
from metaprior.methods._method import (
    AbstractMethod,
    AbstractPosterior,
    AbstractSurrogate,
    Moments,
    OnProgress,
)


@dataclass(frozen=True)
class Ensemble(AbstractMethod):
    """Several trainings of one method, done at once; predictions are their mixture.

    - `base`: the method, one that is trained by gradients.
    - `members`: how many trainings; they differ in nothing but the seed.
    """

    base: AbstractGradientMethod = FPacohMap()
    members: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.base, AbstractGradientMethod):
            raise TypeError(
                f"`base` of Ensemble is {self.base!r}; give a method that is trained by "
                "gradients, such as FPacohMap()."
            )
        if not isinstance(self.members, int) or self.members < 1:
            raise ValueError(
                f"`members` of Ensemble is {self.members!r}; give a whole number of at least 1."
            )

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> "EnsembleSurrogate":
        keys = jax.random.split(key, self.members)
        return EnsembleSurrogate(
            meta_train_many([self.base] * self.members, tasks, keys=keys, on_progress=on_progress)
        )

    @float64
    def blank_surrogate(self, num_columns: int) -> "EnsembleSurrogate":
        return EnsembleSurrogate(stack([self.base.blank_surrogate(num_columns)] * self.members))


class EnsembleSurrogate(AbstractSurrogate):
    """What each of the trainings learned, along a leading axis of every array."""

    members: AbstractSurrogate

    def condition(self, run: Run) -> "MixturePosterior":
        posteriors = eqx.filter_vmap(lambda member: member.condition(run))(self.members)
        count = jax.tree.leaves(eqx.filter(self.members, eqx.is_array))[0].shape[0]
        return MixturePosterior(posteriors, jnp.full(count, 1.0 / count))


class MixturePosterior(AbstractPosterior):
    r"""$\sum_k w_k p_k$ of posteriors of any one kind, stacked along a leading axis."""

    members: AbstractPosterior
    weights: Float[Array, " members"]

    def moments(self, x):
        r"""Of the mixture: $\mu = \sum_k w_k \mu_k$, and
        $\sigma^2 = \sum_k w_k (\sigma_k^2 + (\mu_k - \mu)^2)$."""
        each = self._each(lambda member: member.moments(x))
        mean = self.weights @ each.mean
        # Disagreement between the members is uncertainty about the function, not noise.
        disagreement = self.weights @ (each.mean - mean) ** 2
        return Moments(
            mean,
            self.weights @ each.function_variance + disagreement,
            self.weights @ each.noise_variance,
        )

    def log_density(self, x, y):
        each = self._each(lambda member: member.log_density(x, y))
        return jax.nn.logsumexp(each + jnp.log(self.weights))

    def cdf(self, x, y):
        return self.weights @ self._each(lambda member: member.cdf(x, y))

    def sample(self, x, num, *, key):
        def one(key):
            key_member, key_function = jax.random.split(key)
            return self._drawn(key_member).sample(x, 1, key=key_function)[0]

        return jax.vmap(one)(jax.random.split(key, num))

    def path(self, anchors, *, key):
        key_member, key_function = jax.random.split(key)
        return self._drawn(key_member).path(anchors, key=key_function)

    def _each(self, function):
        return eqx.filter_vmap(function)(self.members)

    def _drawn(self, key: PRNGKeyArray) -> AbstractPosterior:
        index = jax.random.categorical(key, jnp.log(self.weights))
        arrays, static = eqx.partition(self.members, eqx.is_array)
        return eqx.combine(jax.tree.map(lambda leaf: leaf[index], arrays), static)
