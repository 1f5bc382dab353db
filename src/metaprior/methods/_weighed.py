r"""One belief weighted by evidence: learned priors with residuals, past tasks, and no past at all.

$$ p(f \mid \text{run}) = \sum_k w_k\, p_k(f \mid \text{run}), \qquad
   w_k \propto \pi_k\, Z_k^{\tau} $$

with $Z_k$ the marginal likelihood of the run under member $k$. The mixture is asked in NumPy
(`metaprior.belief`). Compiled code, which the studies use, sees the learned prior behind the guard;
so do users where a kernel of their own has no form in NumPy.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.belief import is_weighable, past_means
from metaprior.data import Run, Tasks, blank_standardiser, fit_standardiser
from metaprior.gp import float64
from metaprior.methods._ensemble import Ensemble
from metaprior.methods._fpacoh_map import FPacohMap
from metaprior.methods._guarded import Guarded, GuardedSurrogate
from metaprior.methods._method import AbstractMethod, AbstractSurrogate, OnProgress


class PastArrays(eqx.Module):
    """The posterior means of past runs: `metaprior.belief.PastMeans`."""

    x: Float[Array, "t n d"]
    alpha: Float[Array, "t n"]
    constant: Float[Array, " t"]
    lengthscale: Float[Array, "t d"]
    variance: Float[Array, " t"]
    level: Float[Array, " t"]
    unit: Float[Array, " t"]


@dataclass(frozen=True)
class Weighed(AbstractMethod):
    """What a method learned as part of a mixture, weighted by the evidence of each run.

    - `base`: the method that learns Gaussian processes from past runs, or an ensemble of it.
    - `past_weight`: weight before a run of the members that are single past tasks.
    - `averaged_weight`: weight before a run of the averaged GP, which does not transfer.
    - `temper`: how much of the evidence counts, 1 for all of it.
    """

    base: AbstractMethod = FPacohMap()
    past_weight: float = 0.5
    averaged_weight: float = 0.05
    temper: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.base, AbstractMethod) or not is_weighable(_named(self.base)):
            raise TypeError(
                f"`base` of Weighed is {self.base!r}; give a method that learns Gaussian "
                "processes, such as FPacohMap(), or an Ensemble of one; Guarded takes any method."
            )
        if not (self.past_weight >= 0.0 < self.averaged_weight and self.temper > 0.0):
            raise ValueError(
                "`past_weight`, `averaged_weight` and `temper` of Weighed are "
                f"{self.past_weight!r}, {self.averaged_weight!r} and {self.temper!r}; give "
                "positive numbers (`past_weight` may be 0)."
            )
        if not self.past_weight + self.averaged_weight < 1.0:
            raise ValueError(
                f"`past_weight` and `averaged_weight` of Weighed are {self.past_weight!r} and "
                f"{self.averaged_weight!r}; give less than 1 in all, to leave something for `base`."
            )

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> "WeighedSurrogate":
        return self.around(self.base.meta_train(tasks, key=key, on_progress=on_progress), tasks)

    @float64
    def around(self, learned: AbstractSurrogate, tasks: Tasks) -> "WeighedSurrogate":
        """What was learned from `tasks`, and the tasks themselves if they have any weight."""
        units = fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space)
        past = _no_past()
        if self.keeps_points:
            # A single task says nothing about its features, which never change in it.
            means = past_means(tasks.x[:, :, tasks.point_columns], tasks.y, tasks.mask)
            past = PastArrays(*map(jnp.asarray, means))
        return WeighedSurrogate(learned, past, units.y_mean, units.y_std)

    @property
    def sees_features(self) -> bool:
        return self.base.sees_features

    @property
    def keeps_points(self) -> bool:
        return self.past_weight > 0.0

    @property
    def takes_steps(self) -> bool:
        return self.base.takes_steps

    @float64
    def blank_surrogate(self, num_columns: int) -> "WeighedSurrogate":
        """Number, length and columns of the past runs are free: the axes that stand for them are
        empty."""
        units = blank_standardiser(num_columns)
        learned = self.base.blank_surrogate(num_columns)
        return WeighedSurrogate(learned, _no_past(), units.y_mean, units.y_std)


class WeighedSurrogate(AbstractSurrogate):
    """What was learned, the past tasks, and the units of their values.

    - `y_mean`, `y_std`: of all past values together.
    """

    learned: AbstractSurrogate
    past: PastArrays
    y_mean: Float[Array, ""]
    y_std: Float[Array, ""]

    def condition(self, run: Run):
        return self.guarded.condition(run)

    @property
    def judges(self) -> bool:
        return True

    @property
    def unguarded(self) -> AbstractSurrogate:
        return self.learned

    def guarding(self, learned: AbstractSurrogate) -> "WeighedSurrogate":
        return replace(self, learned=learned)

    def trust(self, run: Run) -> Float[Array, ""]:
        return self.guarded.trust(run)

    def settled(self, trust: float) -> AbstractSurrogate:
        return self.guarded.settled(trust)

    @property
    def guarded(self) -> GuardedSurrogate:
        """The learned prior behind the guard, which compiled code sees."""
        return GuardedSurrogate(self.learned, self.y_mean, self.y_std, Guarded().caution)


@float64
def _no_past() -> PastArrays:
    none, matrix, runs = (jnp.asarray(np.zeros((0,) * axes)) for axes in (1, 2, 3))
    return PastArrays(runs, matrix, none, matrix, none, none, none)


def _named(method: AbstractMethod) -> dict:
    """As much of a method's settings as says what it learns."""
    if isinstance(method, Ensemble):
        return {"name": "Ensemble", "base": {"name": type(method.base).__name__}}
    return {"name": type(method).__name__}
