r"""The guard against negative transfer: fall back to a non-transfer GP on an unfamiliar task.

As points of the new run arrive, the learned prior and a non-transfer Gaussian process are scored
by how well each predicted them (see `_evidence`). With $r_i$ the difference of their log densities
of point $i$, limited to $\pm b$, and $\nu_i$ the novelty of the point, the trust $p$ in the learned
prior is

$$ \operatorname{logit} p = \operatorname{logit} p_0 + \eta \sum_i \nu_i v(r_i), \qquad
   v(r) = \begin{cases} \tfrac12 \ln(1 + r) & r > 0 \\ -\ln(1 - r) & r \le 0 \end{cases} : $$

Bayesian model averaging over the two, slowed down so that no single observation decides, however
surprising. The posterior is the mixture of the two with weights $w$ and $1 - w$; $w$ is $p$, and
exactly 1 or 0 where $p$ is above or below two thresholds: a prior that serves is used as it was
learned, and one that misleads is not used at all.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Run, Tasks, blank_standardiser, fit_standardiser
from metaprior.gp import float64
from metaprior.methods._averaged_gp import AveragedGPSurrogate
from metaprior.methods._evidence import scores, spread_out
from metaprior.methods._fixed_gp import run_mean_and_std
from metaprior.methods._fpacoh_map import FPacohMap
from metaprior.methods._method import (
    AbstractMethod,
    AbstractPosterior,
    AbstractSurrogate,
    OnProgress,
)
from metaprior.methods._mixture import (
    mixture_cdf,
    mixture_covariance,
    mixture_log_density,
    mixture_moments,
)

# Differences below this fraction of the run's standard deviation say nothing about a prior: how
# sharply it predicts points next to others is a matter of its noise, not of what it learned.
RESOLUTION = 0.01
# However wrong a prediction was, it is not counted as more.
MOST_NATS = 8.0
# And a good one counts half: to know how wavy functions are is enough to predict a bit better
# than a non-transfer GP, even for a prior that is wrong about where they are large.
PRAISE = 0.5


class Caution(NamedTuple):
    """The numbers of `Guarded`, for its surrogate."""

    prior_trust: float
    temperature: float
    all_above: float
    nothing_below: float


@dataclass(frozen=True)
class Guarded(AbstractMethod):
    """A method that notices when a new task is unlike the past ones.

    - `base`: the method that learns from past runs.
    - `prior_trust`: trust in it before the first observation.
    - `temperature`: how fast evidence moves the trust; with 0 it never does.
    - `all_above`, `nothing_below`: trust from which on the learned posterior alone is used, and
      below which it is not used at all.
    """

    base: AbstractMethod = FPacohMap()
    prior_trust: float = 0.95
    temperature: float = 1.5
    all_above: float = 0.75
    nothing_below: float = 0.25

    def __post_init__(self) -> None:
        if not isinstance(self.base, AbstractMethod) or isinstance(self.base, Guarded):
            raise TypeError(
                f"`base` of Guarded is {self.base!r}; give a method without a guard, such as "
                "FPacohMap()."
            )
        if not 0.0 < self.nothing_below <= self.all_above <= self.prior_trust < 1.0:
            raise ValueError(
                "The trust of Guarded must satisfy 0 < nothing_below <= all_above <= prior_trust "
                f"< 1, but they are {self.nothing_below!r}, {self.all_above!r} and "
                f"{self.prior_trust!r}; change one of them."
            )
        if not self.temperature >= 0.0:
            raise ValueError(
                f"`temperature` of Guarded is {self.temperature!r}; give a number of at least 0."
            )

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> "GuardedSurrogate":
        return self.around(self.base.meta_train(tasks, key=key, on_progress=on_progress), tasks)

    @float64
    def around(self, learned: AbstractSurrogate, tasks: Tasks) -> "GuardedSurrogate":
        """What was learned from `tasks`, with the guard around it."""
        units = fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space)
        return GuardedSurrogate(learned, units.y_mean, units.y_std, self.caution)

    @property
    def sees_features(self) -> bool:
        return self.base.sees_features

    @property
    def takes_steps(self) -> bool:
        return self.base.takes_steps

    @float64
    def blank_surrogate(self, num_columns: int) -> "GuardedSurrogate":
        units = blank_standardiser(num_columns)
        learned = self.base.blank_surrogate(num_columns)
        return GuardedSurrogate(learned, units.y_mean, units.y_std, self.caution)

    @property
    def caution(self) -> Caution:
        """The numbers of this guard."""
        return Caution(*(getattr(self, name) for name in Caution._fields))


class GuardedSurrogate(AbstractSurrogate):
    """A learned surrogate, and what is needed to judge it by a run.

    - `y_mean`, `y_std`: of all past values together, the units in which both sides are scored.
    """

    learned: AbstractSurrogate
    y_mean: Float[Array, ""]
    y_std: Float[Array, ""]
    caution: Caution = eqx.field(static=True)

    def condition(self, run: Run) -> "GuardedPosterior":
        return self.at(self.trust(run)).condition(run)

    @property
    def judges(self) -> bool:
        return True

    @property
    def unguarded(self) -> AbstractSurrogate:
        return self.learned

    def guarding(self, learned: AbstractSurrogate) -> "GuardedSurrogate":
        return replace(self, learned=learned)

    def at(self, trust: Float[Array, ""]) -> "TrustedSurrogate":
        """The surrogate at a trust that no longer depends on the run it is conditioned on."""
        return TrustedSurrogate(self.learned, self.averaged, trust, self.caution)

    def settled(self, trust: float) -> AbstractSurrogate:
        """The learned surrogate itself, the non-transfer one, or both, so that only what is used
        is compiled."""
        if trust >= self.caution.all_above:
            return self.learned
        return self.averaged if trust < self.caution.nothing_below else self.at(jnp.asarray(trust))

    def trust(self, run: Run) -> Float[Array, ""]:
        start = jnp.log(self.caution.prior_trust) - jnp.log1p(-self.caution.prior_trust)
        return jax.nn.sigmoid(start + self.caution.temperature * self.evidence(run))

    def evidence(self, run: Run) -> Float[Array, ""]:
        """How much better the learned prior predicted the run than a non-transfer GP did."""
        _, std = run_mean_and_std(run)
        resolution_variance = (RESOLUTION * std) ** 2

        def in_order(outwards):
            some, novelty = spread_out(run, outwards)
            ours = scores(self.learned, some, resolution_variance)
            theirs = scores(self.averaged, some, resolution_variance)
            # A prediction that is not a number is as wrong as one can be.
            nats = jnp.nan_to_num(ours - theirs, nan=-MOST_NATS)
            counted = jnp.log1p(jnp.clip(jnp.abs(nats), 0.0, MOST_NATS))
            verdict = jnp.where(nats > 0.0, PRAISE * counted, -counted)
            return jnp.sum(jnp.where(some.mask, novelty * verdict, 0.0))

        return jnp.mean(jax.lax.map(in_order, jnp.array([1.0, -1.0])))

    @property
    def averaged(self) -> AveragedGPSurrogate:
        """The averaged GP, which has learned nothing from the past but the units."""
        return AveragedGPSurrogate(self.y_mean, self.y_std)


class TrustedSurrogate(AbstractSurrogate):
    """A learned surrogate at a given trust in it."""

    learned: AbstractSurrogate
    averaged: AveragedGPSurrogate
    given_trust: Float[Array, ""]
    caution: Caution = eqx.field(static=True)

    def condition(self, run: Run) -> "GuardedPosterior":
        above, below = self.caution.all_above, self.caution.nothing_below
        trust = self.given_trust
        weight = jnp.where(trust >= above, 1.0, jnp.where(trust < below, 0.0, trust))
        return GuardedPosterior(self.learned.condition(run), self.averaged.condition(run), weight)


class GuardedPosterior(AbstractPosterior):
    """The learned posterior with probability `weight`, otherwise that of a non-transfer GP."""

    learned: AbstractPosterior
    averaged: AbstractPosterior
    weight: Float[Array, ""]

    def moments(self, x):
        ours = self.learned.moments(x)
        # Most runs never need the other one: it is left out while it has no weight.
        theirs = jax.lax.cond(
            self.weight < 1.0, lambda x: self.averaged.moments(x), lambda x: ours, x
        )
        return mixture_moments(jax.tree.map(_both, ours, theirs), self._weights)

    def log_density(self, x, y):
        each = _both(self.learned.log_density(x, y), self.averaged.log_density(x, y))
        return mixture_log_density(each, self._weights)

    def cdf(self, x, y):
        return mixture_cdf(_both(self.learned.cdf(x, y), self.averaged.cdf(x, y)), self._weights)

    def covariance(self, x):
        means = (jax.vmap(each.moments)(x).mean for each in (self.learned, self.averaged))
        covariances = _both(self.learned.covariance(x), self.averaged.covariance(x))
        return mixture_covariance(_both(*means), covariances, self._weights)

    @property
    def _weights(self) -> Float[Array, "2"]:
        return _both(self.weight, 1.0 - self.weight)

    def sample(self, x, num, *, key):
        # The key itself is the learned posterior's: with full trust, the samples are the same too.
        is_ours = jax.random.uniform(jax.random.fold_in(key, 0), (num, 1)) < self.weight
        ours = self.learned.sample(x, num, key=key)
        theirs = self.averaged.sample(x, num, key=jax.random.fold_in(key, 1))
        return jnp.where(jnp.broadcast_to(is_ours, ours.shape), ours, theirs)

    def path(self, anchors, *, key):
        is_ours = jax.random.uniform(jax.random.fold_in(key, 0)) < self.weight
        ours = self.learned.path(anchors, key=key)
        theirs = self.averaged.path(anchors, key=jax.random.fold_in(key, 1))
        return lambda x: jnp.where(is_ours, ours(x), theirs(x))


def _both(ours: Array, theirs: Array) -> Array:
    """The same of the learned posterior and of the other one, along a leading axis."""
    return jnp.stack([ours, theirs])
