r"""ABLR: Bayesian linear regression on features that a network learned from all past runs.

Perrone, Jenatton, Seeger and Archambeau, "Scalable Hyperparameter Transfer Learning", NeurIPS 2018.

Two differences from that paper. The network has three layers of 32 tanh units, as those of the
other methods here have, where theirs has 50; the last of them are the features. And the precisions
are learned for all tasks together, where theirs belong to each task: a new run refines them.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from metaprior.data import Run, Standardiser, Tasks
from metaprior.gp import AbstractWeights, LinearPrior, Spread, best_steps
from metaprior.meta import LikelihoodObjective, MetaData, TaskBatch
from metaprior.methods._gradient import AbstractGradientMethod
from metaprior.methods._method import AbstractGaussianPosterior, AbstractSurrogate, Moments, traced
from metaprior.methods._neural_gp import DEPTH, WIDTH

# What a fair random search should cover.
SEARCH_RANGES = {
    "learning_rate": ("log-uniform", 1e-4, 1e-2),
    "learning_rate_decay": ("log-uniform", 0.8, 1.0),
    "weight_decay": ("log-uniform", 1e-5, 1e-1),
    "num_steps": ("choice", [2000, 4000, 8000]),
    "batch_size": ("choice", [4, 10]),
    "noise_log_spread": ("choice", [0.0, 1.0, 3.0]),
    "scale_log_spread": ("choice", [0.0, 0.5, 1.0]),
}

INITIAL_NOISE_VARIANCE = 1e-2
VARIANCE_FLOOR = 1e-12


class FeatureModel(eqx.Module):
    r"""$y = \phi(x)^\top w + \varepsilon$, $w \sim N(0, \alpha^{-1} I)$,
    $\varepsilon \sim N(0, \beta^{-1})$: $\phi$, $\alpha$ and $\beta$ are shared, $w$ is the task's.
    """

    network: eqx.nn.MLP
    log_weight_precision: Float[Array, ""]
    log_noise_precision: Float[Array, ""]

    def prior(
        self, noise_step: Float[Array, ""] | float = 0.0, scale_step: Float[Array, ""] | float = 0.0
    ) -> LinearPrior:
        """The belief about a task, variances moved by the steps in their logarithms."""
        return LinearPrior(
            jnp.exp(scale_step - self.log_weight_precision),
            jnp.exp(noise_step - self.log_noise_precision),
        )


def log_likelihoods(model: FeatureModel, tasks: TaskBatch) -> Float[Array, " batch"]:
    r"""$\ln N(y_i; 0, \Phi_i \Phi_i^\top / \alpha + I / \beta)$ of each task."""
    flat = tasks.x.reshape(-1, tasks.x.shape[-1])
    features = jax.vmap(model.network)(flat).reshape(*tasks.y.shape, -1)
    return jax.vmap(model.prior().log_evidence)(features, tasks.y, tasks.mask)


@dataclass(frozen=True)
class ABLR(AbstractGradientMethod):
    r"""Adaptive Bayesian linear regression. All numbers refer to standardised inputs and outputs.

    $$ \max_{\phi, \alpha, \beta} \sum_{i=1}^n
       \ln N(y_i; 0, \alpha^{-1} \Phi_i \Phi_i^\top + \beta^{-1} I), \qquad
       \Phi_i = [\phi(x)]_{x \in x_i} $$

    - `learning_rate`, `learning_rate_decay` (every 1000 steps), `weight_decay`: of AdamW.
    - `num_steps`, `batch_size`: training steps, and tasks in each.
    - `noise_log_spread`, `scale_log_spread`: how far noise variance $1 / \beta$ and weight
      variance $1 / \alpha$ of a new run may be from the learned ones, in logarithms; with 0 they
      are kept.
    """

    learning_rate: float = traced(4e-3)
    learning_rate_decay: float = traced(0.9)
    weight_decay: float = traced(1e-3)
    num_steps: int = 4000
    batch_size: int = 4
    noise_log_spread: float = traced(3.0)
    scale_log_spread: float = traced(1.0)

    def initial(self, num_columns: int, *, key: PRNGKeyArray) -> FeatureModel:
        # The layer that would read the features out is the Bayesian one.
        network = eqx.nn.MLP(num_columns, WIDTH, WIDTH, DEPTH - 1, jnp.tanh, jnp.tanh, key=key)
        return FeatureModel(network, jnp.asarray(0.0), -jnp.log(INITIAL_NOISE_VARIANCE))

    def objective(self, tasks: Tasks, data: MetaData) -> LikelihoodObjective:
        return LikelihoodObjective(
            data,
            jnp.asarray(np.mean(tasks.lengths)),
            log_likelihoods,
            min(self.batch_size, tasks.num_tasks),
        )

    def surrogate(self, model: FeatureModel, standardiser: Standardiser) -> "ABLRSurrogate":
        spread = Spread(jnp.asarray(self.noise_log_spread), jnp.asarray(self.scale_log_spread))
        return ABLRSurrogate(model, standardiser, spread)


class ABLRSurrogate(AbstractSurrogate):
    """Learned features and precisions, in the standardised units of the meta-training data."""

    model: FeatureModel
    standardiser: Standardiser
    spread: Spread

    def condition(self, run: Run) -> "LinearPosterior":
        features = jax.vmap(self.model.network)(self.standardiser.x(run.x))
        y = self.standardiser.y(run.y)
        prior = _refine(self.model, features, y, run.mask, self.spread)
        weights = prior.condition(features, y, run.mask)
        return LinearPosterior(self.model.network, weights, prior.noise_variance, self.standardiser)


def _refine(
    model: FeatureModel,
    features: Float[Array, "m D"],
    y: Float[Array, " m"],
    mask: Bool[Array, " m"],
    spread: Spread,
) -> LinearPrior:
    """The variances that maximise evidence times prior on the run: `metaprior.gp.refine`, with
    the evidence computed in the smaller space."""

    def log_evidence(noise_step, scale_step):
        return model.prior(noise_step, scale_step).log_evidence(features, y, mask)

    return model.prior(*best_steps(log_evidence, spread))


class LinearPosterior(AbstractGaussianPosterior):
    """The belief about the weights of one task, seen in the units of the run."""

    network: eqx.nn.MLP
    weights: AbstractWeights
    noise_variance: Float[Array, ""]
    standardiser: Standardiser

    def moments(self, x):
        features = self._features(x)
        scale = self.standardiser.y_std
        # Rounding can leave a tiny negative number where the data determine f.
        variance = jnp.maximum(self.weights.variance(features), VARIANCE_FLOOR)
        return Moments(
            self.standardiser.y_mean + scale * features @ self.weights.mean,
            scale**2 * variance,
            scale**2 * self.noise_variance,
        )

    def covariance(self, x):
        covariance = self.weights.covariance(jax.vmap(self._features)(x))
        floor = jnp.diag(jnp.maximum(VARIANCE_FLOOR - jnp.diagonal(covariance), 0.0))
        return self.standardiser.y_std**2 * (covariance + floor)

    def sample(self, x, num, *, key):
        weights = jax.vmap(lambda key: self.weights.draw(key=key))(jax.random.split(key, num))
        values = weights @ jax.vmap(self._features)(x).T
        return self.standardiser.y_mean + self.standardiser.y_std * values

    def path(self, anchors, *, key):
        # Drawn weights are a whole function: there is nothing to interpolate.
        weights, standardiser = self.weights.draw(key=key), self.standardiser
        return lambda x: standardiser.y_mean + standardiser.y_std * self._features(x) @ weights

    def _features(self, x: Float[Array, " d"]) -> Float[Array, " D"]:
        return self.network(self.standardiser.x(x))
