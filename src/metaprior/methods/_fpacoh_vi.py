"""F-PACOH-VI: a distribution over GP priors, regularised in the function space.

Rothfuss, Heyn, Chen and Krause, "Meta-Learning Reliable Priors in the Function Space",
NeurIPS 2021, algorithm 2 (F-PACOH-VI), with the likelihood term's sign as in equation 2.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from metaprior.data import Run, Standardiser, Tasks
from metaprior.gp import AbstractKernel, AbstractProcess, Spread
from metaprior.meta import (
    HyperPosterior,
    MetaData,
    VariationalObjective,
    antithetic_normals,
    hyper_posterior,
    measurement_sizes,
)
from metaprior.methods._gp_surrogate import GPSurrogate
from metaprior.methods._gradient import AbstractGradientMethod
from metaprior.methods._hyper_prior import estimator_of, hyper_prior_of
from metaprior.methods._method import AbstractSurrogate, traced
from metaprior.methods._mixture import MixturePosterior, equal_mixture
from metaprior.methods._neural_gp import neural_gp, settle_kernel

# What a fair random search should cover.
SEARCH_RANGES = {
    "kappa": ("log-uniform", 1e-3, 1.0),
    "hyper_lengthscale": ("log-uniform", 0.05, 0.5),
    "initial_std": ("log-uniform", 1e-3, 1e-1),
    "learning_rate": ("log-uniform", 1e-4, 1e-2),
    "learning_rate_decay": ("log-uniform", 0.8, 1.0),
    "weight_decay": ("log-uniform", 1e-5, 1e-1),
    "num_steps": ("choice", [2000, 4000, 8000]),
    "batch_size": ("choice", [4, 10]),
    "feature_dim": ("choice", [2, 6]),
}


class GPMixtureSurrogate(AbstractSurrogate):
    """A hyper-posterior, used through a fixed set of `num_priors` draws from it.

    The draws are the same in every call, so that predictions for growing runs are comparable.
    """

    hyper_posterior: HyperPosterior
    standardiser: Standardiser
    spread: Spread
    num_priors: int = eqx.field(static=True)

    def condition(self, run: Run) -> MixturePosterior:
        size = self.hyper_posterior.log_std.shape[0]
        noise = antithetic_normals(self.num_priors, size, key=jax.random.key(0))

        def one(prior):
            return GPSurrogate(prior, self.standardiser, self.spread).condition(run)

        return equal_mixture(eqx.filter_vmap(one)(self.hyper_posterior.at(noise)))


@dataclass(frozen=True)
class FPacohVI(AbstractGradientMethod):
    r"""F-PACOH-VI. All numbers refer to standardised inputs and outputs.

    - `num_priors`: priors drawn from the hyper-posterior in each step, and for predictions.
    - `num_functions`: functions drawn from each of these priors in each step, from which the score
      of the hyper-posterior is estimated.
    - `score_estimator`: "spectral" (Stein gradient estimator) or "sliced" (score matching).
    - `initial_std`: standard deviation of every parameter before training.

    All others mean what they mean in `FPacohMap`.
    """

    kappa: float = traced(0.03)
    hyper_lengthscale: float = traced(0.15)
    hyper_variance: float = traced(1.0)
    initial_std: float = traced(0.05)
    learning_rate: float = traced(4e-3)
    learning_rate_decay: float = traced(0.9)
    weight_decay: float = traced(1e-3)
    num_steps: int = 4000
    batch_size: int = 4
    feature_dim: int = 6
    num_measurements: int = 20
    measurements_from_task: int = 10
    measurement_variance: float = traced(1e-4)
    num_priors: int = 10
    num_functions: int = 3
    noise_log_spread: float = traced(3.0)
    scale_log_spread: float = traced(1.0)
    hyper_prior: AbstractProcess | None = None
    score_estimator: str = "spectral"
    kernel: AbstractKernel | None = None

    def __post_init__(self) -> None:
        settle_kernel(self)

    def initial(self, num_columns: int, *, key: PRNGKeyArray) -> HyperPosterior:
        process = neural_gp(num_columns, self.feature_dim, self.kernel, key=key)
        return hyper_posterior(process, self.initial_std)

    def objective(self, tasks: Tasks, data: MetaData) -> VariationalObjective:
        num_columns = tasks.space.num_inputs
        shortest = int(tasks.lengths.min())
        # Only its size matters here, so nothing is computed.
        blank = eqx.filter_eval_shape(self.initial, num_columns, key=jax.random.key(0))
        return VariationalObjective(
            data,
            hyper_prior_of(self, num_columns),
            jnp.asarray(self.kappa),
            jnp.asarray(self.measurement_variance),
            measurement_sizes(self.num_measurements, self.measurements_from_task, shortest),
            min(self.batch_size, tasks.num_tasks),
            self.num_priors,
            self.num_functions,
            blank.log_std.shape[0],
            estimator_of(self.score_estimator),
        )

    def surrogate(self, model: HyperPosterior, standardiser: Standardiser) -> GPMixtureSurrogate:
        spread = Spread(jnp.asarray(self.noise_log_spread), jnp.asarray(self.scale_log_spread))
        return GPMixtureSurrogate(model, standardiser, spread, self.num_priors)
