"""PACOH-MAP: a GP prior with neural mean and kernel, regularised in the parameter space.

Rothfuss, Fortuin, Josifoski and Krause, "PACOH: Bayes-Optimal Meta-Learning with PAC-Guarantees",
ICML 2021; equation 1 of Rothfuss et al., NeurIPS 2021, with a point as hyper-posterior. It shares
everything with F-PACOH-MAP except for what the prior is pulled towards.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from metaprior.data import Standardiser, Tasks
from metaprior.gp import AbstractKernel, GaussianProcess, Spread
from metaprior.meta import MetaData, PacohObjective
from metaprior.methods._gp_surrogate import GPSurrogate
from metaprior.methods._gradient import AbstractGradientMethod
from metaprior.methods._method import traced
from metaprior.methods._neural_gp import neural_gp, settle_kernel

# What a fair random search should cover. The standard deviation of the hyper-prior is not among
# them: the objective depends on kappa divided by its square only.
SEARCH_RANGES = {
    "kappa": ("log-uniform", 1e-5, 10.0),
    "learning_rate": ("log-uniform", 1e-4, 1e-2),
    "learning_rate_decay": ("log-uniform", 0.8, 1.0),
    "weight_decay": ("log-uniform", 1e-5, 1e-1),
    "num_steps": ("choice", [2000, 4000, 8000]),
    "batch_size": ("choice", [4, 10]),
    "feature_dim": ("choice", [2, 6]),
    "noise_log_spread": ("choice", [0.0, 1.0, 3.0]),
    "scale_log_spread": ("choice", [0.0, 0.5, 1.0]),
}


@dataclass(frozen=True)
class PacohMap(AbstractGradientMethod):
    r"""PACOH-MAP. All numbers refer to standardised inputs and outputs.

    - `kappa`: weight of the hyper-prior; 1 is the bound of the paper.
    - `hyper_prior_std`: standard deviation $\sigma_P$ of the hyper-prior $N(0, \sigma_P^2 I)$ on
      all parameters: weights, biases, and the logarithms of the kernel's numbers and the noise.
    - `learning_rate`, `learning_rate_decay` (every 1000 steps), `weight_decay`: of AdamW; the
      hyper-prior shrinks the weights already, so that the decay is 0 by default.
    - `num_steps`, `batch_size`: training steps, and tasks in each.
    - `feature_dim`: dimension of the kernel's feature space.
    - `noise_log_spread`, `scale_log_spread`: how far noise variance and kernel variance of a new
      run may be from the learned ones, in logarithms; with 0 they are kept, as in the paper.
    - `kernel`: base kernel on the learned features, trained along, such as
      `Matern(smoothness=1.5) + Linear()` of `metaprior.gp`; `None` is a squared exponential.
    """

    kappa: float = traced(1.0)
    hyper_prior_std: float = traced(3.0)
    learning_rate: float = traced(4e-3)
    learning_rate_decay: float = traced(0.9)
    weight_decay: float = traced(0.0)
    num_steps: int = 4000
    batch_size: int = 4
    feature_dim: int = 6
    noise_log_spread: float = traced(3.0)
    scale_log_spread: float = traced(1.0)
    kernel: AbstractKernel | None = None

    def __post_init__(self) -> None:
        settle_kernel(self)

    def initial(self, num_columns: int, *, key: PRNGKeyArray) -> GaussianProcess:
        return neural_gp(num_columns, self.feature_dim, self.kernel, key=key)

    def objective(self, tasks: Tasks, data: MetaData) -> PacohObjective:
        return PacohObjective(
            data,
            jnp.asarray(self.kappa),
            jnp.asarray(self.hyper_prior_std) ** 2,
            jnp.asarray(1 / np.mean(1 / tasks.lengths)),
            min(self.batch_size, tasks.num_tasks),
        )

    def surrogate(self, model: GaussianProcess, standardiser: Standardiser) -> GPSurrogate:
        spread = Spread(jnp.asarray(self.noise_log_spread), jnp.asarray(self.scale_log_spread))
        return GPSurrogate(model, standardiser, spread)
