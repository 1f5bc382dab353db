"""F-PACOH-MAP: a GP prior with neural mean and kernel, regularised in the function space.

Rothfuss, Heyn, Chen and Krause, "Meta-Learning Reliable Priors in the Function Space",
NeurIPS 2021, algorithm 3 (F-PACOH-MAP: Meta-Learning GP Priors).
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from metaprior.data import Standardiser, Tasks
from metaprior.gp import AbstractKernel, AbstractProcess, EffectsProcess, Spread
from metaprior.meta import FPacohObjective, MetaData, measurement_sizes
from metaprior.methods._gp_surrogate import GPSurrogate
from metaprior.methods._gradient import AbstractGradientMethod
from metaprior.methods._hyper_prior import estimator_of, hyper_prior_of
from metaprior.methods._method import traced
from metaprior.methods._neural_gp import neural_gp, settle_kernel, with_effects

# What a fair random search should cover: the paper's table, and the two spreads that it has not.
# The paper's lengthscale is 0.1 to 1 in standardised units; ours is that divided by the square root
# of the dimension.
SEARCH_RANGES = {
    "kappa": ("log-uniform", 1e-4, 0.5),
    "hyper_lengthscale": ("log-uniform", 0.05, 1.0),
    "learning_rate": ("log-uniform", 1e-4, 5e-3),
    "learning_rate_decay": ("log-uniform", 0.8, 1.0),
    "weight_decay": ("log-uniform", 1e-5, 1e-1),
    "num_steps": ("choice", [2000, 4000, 8000]),
    "batch_size": ("choice", [4, 10]),
    "feature_dim": ("choice", [2, 6]),
    "noise_log_spread": ("choice", [0.0, 1.0, 3.0]),
    "scale_log_spread": ("choice", [0.0, 0.5, 1.0]),
}


@dataclass(frozen=True)
class FPacohMap(AbstractGradientMethod):
    r"""F-PACOH-MAP. All numbers refer to standardised inputs and outputs.

    - `kappa`: weight $\kappa$ of the functional divergence.
    - `hyper_lengthscale`, `hyper_variance`: of the squared-exponential hyper-prior; the
      lengthscale in units of $\sqrt d$, since distances between points of a $d$-dimensional domain
      grow like that.
    - `learning_rate`, `learning_rate_decay` (every 1000 steps), `weight_decay`: of AdamW.
    - `num_steps`, `batch_size`: training steps, and tasks in each.
    - `feature_dim`: dimension of the kernel's feature space.
    - `num_measurements`, `measurements_from_task`: size of a measurement set, and how many of its
      points come from the task's own inputs.
    - `measurement_variance`: resolution at which functions are compared: the jitter on both sides
      of the divergence.
    - `hyper_prior`: a stochastic process of `metaprior.processes`, or one of your own, in place of
      the squared-exponential GP, which is what `None` means; in standardised units.
    - `score_estimator`: "spectral" or "sliced", where a hyper-prior has samples and no density.
    - `offset`, `amplitude`: whether tasks may differ in the level of the learned mean, and in its
      amplitude; in the paper they may not.
    - `warp`: whether every dimension is bent by a learned curve, the same for all tasks.
    - `noise_log_spread`, `scale_log_spread`: how far noise variance and kernel variance of a new
      run may be from the learned ones, in logarithms; with 0 they are kept, as in the paper.
    - `kernel`: base kernel on the learned features, trained along, such as
      `Matern(smoothness=1.5) + Linear()` of `metaprior.gp`; `None` is a squared exponential.
    """

    kappa: float = traced(0.05)
    hyper_lengthscale: float = traced(0.15)
    hyper_variance: float = traced(1.0)
    learning_rate: float = traced(4e-3)
    learning_rate_decay: float = traced(0.9)
    weight_decay: float = traced(1e-3)
    num_steps: int = 4000
    batch_size: int = 4
    feature_dim: int = 6
    num_measurements: int = 20
    measurements_from_task: int = 10
    measurement_variance: float = traced(1e-4)
    noise_log_spread: float = traced(3.0)
    scale_log_spread: float = traced(1.0)
    offset: bool = traced(False)
    amplitude: bool = traced(False)
    warp: bool = traced(False)
    hyper_prior: AbstractProcess | None = None
    score_estimator: str = "spectral"
    kernel: AbstractKernel | None = None

    def __post_init__(self) -> None:
        settle_kernel(self)
        for name in ("offset", "amplitude", "warp"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(
                    f"`{name}` of FPacohMap is {getattr(self, name)!r}; give True or False."
                )

    def initial(self, num_columns: int, *, key: PRNGKeyArray) -> EffectsProcess:
        process = neural_gp(num_columns, self.feature_dim, self.kernel, key=key)
        return with_effects(process, num_columns, self.offset, self.amplitude, self.warp)

    def objective(self, tasks: Tasks, data: MetaData) -> FPacohObjective:
        shortest = int(tasks.lengths.min())
        return FPacohObjective(
            data,
            hyper_prior_of(self, tasks.space.num_inputs),
            jnp.asarray(self.kappa),
            jnp.asarray(self.measurement_variance),
            measurement_sizes(self.num_measurements, self.measurements_from_task, shortest),
            min(self.batch_size, tasks.num_tasks),
            estimator_of(self.score_estimator),
        )

    def notes(self) -> list[str]:
        varying = {"level": self.offset, "amplitude": self.amplitude}
        what = " and ".join(name for name, allowed in varying.items() if allowed)
        return [f"The past tasks differ in {what}, and the prior allows for that."] if what else []

    def surrogate(self, model: EffectsProcess, standardiser: Standardiser) -> GPSurrogate:
        spread = Spread(jnp.asarray(self.noise_log_spread), jnp.asarray(self.scale_log_spread))
        return GPSurrogate(model, standardiser, spread)
