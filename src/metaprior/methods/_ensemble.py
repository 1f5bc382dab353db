r"""An ensemble: the same method trained from several seeds, each as likely as any other.

Trainings that end in different priors disagree where past runs say little, and there a single one
is overconfident. The belief of the ensemble is the mixture $\frac1K \sum_k p_k$.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from metaprior.data import Run, Tasks
from metaprior.gp import float64
from metaprior.methods._fpacoh_map import FPacohMap
from metaprior.methods._gradient import AbstractGradientMethod, meta_train_many
from metaprior.methods._method import AbstractMethod, AbstractSurrogate, OnProgress
from metaprior.methods._mixture import MixturePosterior, equal_mixture


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

    @property
    def sees_features(self) -> bool:
        return self.base.sees_features

    @property
    def keeps_points(self) -> bool:
        return self.base.keeps_points

    @property
    def takes_steps(self) -> bool:
        return self.base.takes_steps

    @float64
    def blank_surrogate(self, num_columns: int) -> "EnsembleSurrogate":
        one, rest = eqx.partition(self.base.blank_surrogate(num_columns), eqx.is_array)
        same = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.members, *leaf.shape)), one)
        return EnsembleSurrogate(eqx.combine(same, rest))


class EnsembleSurrogate(AbstractSurrogate):
    """What each of the trainings learned, along a leading axis of every array."""

    members: AbstractSurrogate

    def condition(self, run: Run) -> "MixturePosterior":
        posteriors = eqx.filter_vmap(lambda member: member.condition(run))(self.members)
        return equal_mixture(posteriors)
