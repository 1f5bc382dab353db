r"""RGPE: an ensemble of one Gaussian process per past task, weighted by how it ranks the new run.

Feurer, Letham and Bakshy, "Scalable Meta-Learning for Bayesian Optimization", arXiv:1802.02219,
2018. Each process is fitted to its own task, standardised by itself; the target's is fitted to the
new run. A model is as good as its samples order the values of the new run: with $f$ drawn from it,

$$ L(f) = \sum_{j,k} 1[\, (f(x_j) < f(x_k)) \oplus (y_j < y_k) \,], $$

where the target, which has seen the run, is judged by $f_{-j}(x_j)$ against $f_{-j}(x_k)$, drawn
jointly from its posterior without observation $j$. The weight $w_i$ is the share of draws in which
model $i$ has the lowest loss; ties are shared. The ensemble has

$$ \mu(x) = \sum_i w_i \mu_i(x), \qquad v(x) = \sum_i w_i^2 v_i(x), $$

and the same for noise: a weighted sum of independent processes, with level and scale of the run.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from metaprior.data import Run, Tasks, canonical_order, fit_standardiser, padded_length
from metaprior.gp import ConditionedProcess, Gaussian, condition, float64, sample
from metaprior.methods._fitted_gp import fit_process
from metaprior.methods._fixed_gp import run_mean_and_std
from metaprior.methods._method import (
    AbstractGaussianPosterior,
    AbstractMethod,
    AbstractSurrogate,
    Moments,
    OnProgress,
    traced,
)
from metaprior.methods._rank_weights import past_losses, rank_weights, target_losses

# What a fair random search should cover; the rest of the method is fitted to the runs.
SEARCH_RANGES = {
    "num_steps": ("choice", [10, 25, 50, 100]),
    "num_samples": ("choice", [64, 128, 256, 512]),
    "discard_quantile": ("choice", [0.5, 0.75, 0.9, 0.95, 0.99, 1.0]),
}


# Members that are worked on at once: bounds the memory that thousands of them need.
BATCH = 32


@dataclass(frozen=True)
class RankWeightedGP(AbstractMethod):
    """The rank-weighted ensemble of Gaussian processes (RGPE).

    - `num_steps`: quasi-Newton steps of each fit, from each of a few starting lengthscales.
    - `num_samples`: functions drawn from each model to estimate the weights.
    - `discard_quantile`: a past model counts only if its median loss is at most this quantile of
      the target's losses.
    """

    num_steps: int = 25
    num_samples: int = 256
    discard_quantile: float = traced(0.95)

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> "RankWeightedSurrogate":
        tasks.require_several()
        units = fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space)
        # The number of tasks is padded too: one more of them rarely means a new compilation.
        spare = padded_length(tasks.num_tasks) - tasks.num_tasks
        past = _fit_past(
            jnp.asarray(np.pad(tasks.x, [(0, spare), (0, 0), (0, 0)])),
            jnp.asarray(np.pad(tasks.y, [(0, spare), (0, 0)])),
            jnp.asarray(np.pad(tasks.lengths, (0, spare))),
            self.num_steps,
        )
        key_data = jax.random.bits(key, (2,), jnp.uint32)
        return self._surrogate(past, units.y_mean, units.y_std, key_data)

    @float64
    def blank_surrogate(self, num_columns: int) -> "RankWeightedSurrogate":
        """Number and length of the past runs are free: the axes that stand for them are empty."""
        empty = Run(jnp.zeros((0, num_columns)), jnp.zeros(0), jnp.asarray(0))
        shapes = jax.eval_shape(lambda run: _fit(run, num_steps=0)[0], empty)
        past = jax.tree.map(lambda leaf: jnp.zeros((0, *leaf.shape), leaf.dtype), shapes)
        one = jnp.asarray(1.0)
        return self._surrogate(past, 0.0 * one, one, jnp.zeros(2, jnp.uint32))

    def _surrogate(self, past, y_mean, y_std, key_data) -> "RankWeightedSurrogate":
        quantile = jnp.asarray(self.discard_quantile, y_mean.dtype)
        return RankWeightedSurrogate(
            past, y_mean, y_std, key_data, quantile, self.num_steps, self.num_samples
        )


class RankWeightedSurrogate(AbstractSurrogate):
    """The processes of the past tasks, and what is needed to weigh them against a new run.

    - `past`: one for each task, along a leading axis; without observations where it is padding.
    - `y_mean`, `y_std`: of all past values together, for a run that has no scale of its own yet.
    - `key_data`: of all random draws, so that a run always has the same posterior.
    """

    past: ConditionedProcess
    y_mean: Float[Array, ""]
    y_std: Float[Array, ""]
    key_data: UInt32[Array, "2"]
    discard_quantile: Float[Array, ""]
    num_steps: int = eqx.field(static=True)
    num_samples: int = eqx.field(static=True)

    def condition(self, run: Run) -> "WeightedSumPosterior":
        order = canonical_order(run.x, run.y, run.mask)
        run = Run(run.x[order], run.y[order], run.length)
        in_past_units = Run(run.x, (run.y - self.y_mean) / self.y_std, run.length)
        target, mean, std = _fit(in_past_units, num_steps=self.num_steps)
        # One value has no scale and no ranking: until there are two, only past tasks have weight.
        ranked = run.length >= 2
        past_weights, target_weight = self._weights(target, run)
        usable = jnp.any(self.past.mask, axis=1)
        return WeightedSumPosterior(
            self.past,
            target,
            jnp.where(ranked, past_weights, usable / jnp.sum(usable)),
            jnp.where(ranked, target_weight, 0.0),
            self.y_mean + self.y_std * jnp.where(ranked, mean, 0.0),
            self.y_std * jnp.where(ranked, std, 1.0),
        )

    def _weights(
        self, target: ConditionedProcess, run: Run
    ) -> tuple[Float[Array, " n"], Float[Array, ""]]:
        key = jax.random.wrap_key_data(self.key_data, impl="threefry2x32")
        key_past, key_target = jax.random.split(key)
        drawn_for = (run.x, run.y, run.mask, self.num_samples)

        def losses(member):
            index, process = member
            return past_losses(process, *drawn_for, key=jax.random.fold_in(key_past, index))

        indices = jnp.arange(self.past.mask.shape[0])
        return rank_weights(
            jax.lax.map(losses, (indices, self.past), batch_size=BATCH),
            target_losses(target, *drawn_for, key=key_target),
            jnp.any(self.past.mask, axis=1),
            self.discard_quantile,
        )


class WeightedSumPosterior(AbstractGaussianPosterior):
    r"""$f(x) = a + b \sum_i w_i f_i(x)$ with independent $f_i$: those of the past, along a leading
    axis, and the target's; $a$ and $b$ are the level and the scale of the run."""

    past: ConditionedProcess
    target: ConditionedProcess
    past_weights: Float[Array, " n"]
    target_weight: Float[Array, ""]
    y_mean: Float[Array, ""]
    y_std: Float[Array, ""]

    def moments(self, x):
        means, variances = jax.vmap(lambda member: member(x))(self.past)
        noise_variances = jnp.exp(self.past.process.log_noise_variance)
        mean, variance = self.target(x)
        return Moments(
            self.y_mean + self.y_std * (self.past_weights @ means + self.target_weight * mean),
            self._variance(variances, variance),
            self._variance(noise_variances, self.target.process.noise_variance),
        )

    def _variance(self, past: Float[Array, " n"], target: Float[Array, ""]) -> Float[Array, ""]:
        """Variance of the weighted sum, in the units of the run."""
        return self.y_std**2 * (self.past_weights**2 @ past + self.target_weight**2 * target)

    def covariance(self, x):
        def weighted(member: ConditionedProcess, weight):
            return weight**2 * member.covariance(x)

        # One member after the other: bounds the memory.
        covariance, _ = jax.lax.scan(
            lambda total, member: (total + weighted(*member), None),
            weighted(self.target, self.target_weight),
            (self.past, self.past_weights),
        )
        return self.y_std**2 * covariance

    def sample(self, x, num, *, key):
        def plus(total: Gaussian, member: ConditionedProcess, weight) -> Gaussian:
            own = member.joint(x)
            return Gaussian(
                total.mean + weight * own.mean, total.covariance + weight**2 * own.covariance
            )

        m = x.shape[0]
        start = plus(Gaussian(jnp.zeros(m), jnp.zeros((m, m))), self.target, self.target_weight)
        joint, _ = jax.lax.scan(
            lambda total, member: (plus(total, *member), None),
            start,
            (self.past, self.past_weights),
        )
        return self.y_mean + self.y_std * sample(joint, num, key=key)

    def path(self, anchors, *, key):
        key_past, key_target = jax.random.split(key)
        keys = jax.random.split(key_past, self.past_weights.shape[0])
        past = jax.lax.map(
            lambda member: member[0].path(anchors, key=member[1]),
            (self.past, keys),
            batch_size=BATCH,
        )
        target = self.target.path(anchors, key=key_target)

        def value(x):
            values = jax.vmap(lambda path: path(x))(past)
            drawn = self.past_weights @ values + self.target_weight * target(x)
            return self.y_mean + self.y_std * drawn

        return value


def _fit(
    run: Run, *, num_steps: int
) -> tuple[ConditionedProcess, Float[Array, ""], Float[Array, ""]]:
    """The process fitted to a run standardised by itself, and mean and standard deviation of the
    run."""
    mean, std = run_mean_and_std(run)
    y = (run.y - mean) / std
    process = fit_process(run.x, y, run.mask, num_steps=num_steps)
    return condition(process, run.x, y, run.mask), mean, std


@eqx.filter_jit
def _fit_past(
    x: Float[Array, "n m d"], y: Float[Array, "n m"], lengths: Int[Array, " n"], num_steps: int
) -> ConditionedProcess:
    """The process of each past run, along a leading axis."""

    def fit(run):
        return _fit(Run(*run), num_steps=num_steps)[0]

    return jax.lax.map(fit, (x, y, lengths), batch_size=BATCH)
