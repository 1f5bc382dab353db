r"""Improvement where it is allowed: an acquisition for runs with constraints.

    symbol      meaning
    f           the function to be maximised
    c_j         a constraint: a point is feasible if every c_j(x) <= 0
    y*          the best value that was observed at a feasible point

$$ \ln a(x) = \ln \mathbb{E} \max(f(x) - y^*, 0)
   + \sum_j \ln \Phi\!\left(-\frac{\mu_j(x)}{\sigma_j(x)}\right) $$

with $\mu_j, \sigma_j$ of a Gaussian process fitted to what this run has shown of $c_j$ (Gardner et
al. 2014). Before anything feasible was seen there is no $y^*$, and the sum alone is maximised.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import stats
from jaxtyping import Array, Bool, Float

from metaprior.bo._acquisition import (
    SMALLEST_VARIANCE,
    AbstractAcquisition,
    log_standard_improvement,
)
from metaprior.data import Run, run_of
from metaprior.gp import float64
from metaprior.methods import AbstractPosterior, FittedGP


class ConstrainedImprovement(AbstractAcquisition):
    """Expected improvement on the best feasible value, times the probability of feasibility.

    - `constraints`: posteriors of all constraints, stacked along a first axis.
    - `best`: the best value observed at a feasible point; $-\\infty$ before the first.
    """

    constraints: AbstractPosterior
    best: Float[Array, ""]

    def score(self, posterior, run, anchors, *, key):
        found = jnp.isfinite(self.best)
        best = jnp.where(found, self.best, 0.0)

        def log_worth(x):
            moments = posterior.moments(x)
            std = jnp.sqrt(jnp.maximum(moments.function_variance, SMALLEST_VARIANCE))
            improvement = jnp.log(std) + log_standard_improvement((moments.mean - best) / std)
            return jnp.where(found, improvement, 0.0) + self.log_feasibility(x)

        return log_worth

    def log_feasibility(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """Log probability that every constraint holds at `x`."""

        def log_probability(constraint: AbstractPosterior) -> Float[Array, ""]:
            moments = constraint.moments(x)
            std = jnp.sqrt(jnp.maximum(moments.function_variance, SMALLEST_VARIANCE))
            return stats.norm.logcdf(-moments.mean / std)

        return jnp.sum(eqx.filter_vmap(log_probability)(self.constraints))


@float64
def constrained_improvement(
    x: Float[np.ndarray, "m d"],
    y: Float[np.ndarray, " m"],
    constraints: Float[np.ndarray, "m k"],
) -> ConstrainedImprovement:
    """The acquisition after values `y`, larger is better, and `constraints` were observed at `x`.

    - `constraints`: NaN where one was not reported, which says neither that it holds nor that it
      does not; a point without any report that it is violated counts as feasible.
    """
    feasible = ~np.any(constraints > 0.0, axis=1)
    best = np.max(y, where=feasible, initial=-np.inf)
    runs = [_known_run(x, values) for values in constraints.T]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
    return ConstrainedImprovement(_fit(stacked, x.shape[1]), jnp.asarray(best))


def _known_run(x: Float[np.ndarray, "m d"], values: Float[np.ndarray, " m"]) -> Run:
    known: Bool[np.ndarray, " m"] = np.isfinite(values)
    # Room for those that are missing, so that the runs of all constraints have one capacity.
    return run_of(x[known], values[known], spare=1 + int(np.sum(~known)))


@eqx.filter_jit
def _fit(runs: Run, num_columns: int) -> AbstractPosterior:
    surrogate = FittedGP().from_scratch(num_columns)
    return eqx.filter_vmap(surrogate.condition)(runs)
