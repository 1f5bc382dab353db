"""Learned GP: the hyper-parameters of a GP prior, fitted to all past runs together.

The classical way to transfer between tasks (Minka and Picard, "Learning How to Learn is Learning
With Point Sets", 1997; Bonilla, Chai and Williams, NeurIPS 2007): every task is a draw from one
Gaussian process, whose hyper-parameters maximise the likelihood of all tasks.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from metaprior.data import Standardiser, Tasks
from metaprior.gp import (
    AbstractKernel,
    ConstantMean,
    GaussianProcess,
    Spread,
    SquaredExponential,
    as_arrays,
)
from metaprior.meta import LikelihoodObjective, MetaData, log_likelihoods
from metaprior.methods._gp_surrogate import GPSurrogate
from metaprior.methods._gradient import AbstractGradientMethod
from metaprior.methods._method import traced
from metaprior.methods._neural_gp import settle_kernel

# What a fair random search should cover. There are no weight matrices for a weight decay to
# shrink.
SEARCH_RANGES = {
    "learning_rate": ("log-uniform", 1e-3, 1e-1),
    "learning_rate_decay": ("log-uniform", 0.1, 1.0),
    "num_steps": ("choice", [1000, 2000, 4000]),
    "batch_size": ("choice", [4, 10]),
    "noise_log_spread": ("choice", [0.0, 1.0, 3.0]),
    "scale_log_spread": ("choice", [0.0, 0.5, 1.0]),
}

INITIAL_LENGTHSCALE, INITIAL_NOISE_VARIANCE = 0.5, 1e-2


@dataclass(frozen=True)
class LearnedGP(AbstractGradientMethod):
    r"""Maximum-likelihood constant mean, squared-exponential kernel and noise of all tasks.

    $$ \max_{c, \ell, \nu, \sigma^2} \sum_{i=1}^n \ln N(y_i; c, K_i + \sigma^2 I), \qquad
       K_i = \Big[ \nu \exp\big\{ -\tfrac12 \textstyle\sum_j (x_j - x'_j)^2 / \ell_j^2 \big\}
       \Big]_{x, x' \in x_i} $$

    with per-dimension lengthscales (ARD). All numbers refer to standardised inputs and outputs.

    - `learning_rate`, `learning_rate_decay` (every 1000 steps): of Adam. With so few parameters a
      large rate finds the region of the optimum, and after 1000 steps a small one settles in it.
    - `weight_decay`: without effect, for there are no weight matrices.
    - `num_steps`, `batch_size`: training steps, and tasks in each.
    - `noise_log_spread`, `scale_log_spread`: how far noise variance and kernel variance of a new
      run may be from the learned ones, in logarithms; with 0 they are kept.
    - `kernel`: the kernel to learn the numbers of, starting at those given, such as
      `Matern(smoothness=1.5) + Linear()` of `metaprior.gp`; `None` is a squared exponential.
    """

    learning_rate: float = traced(2e-2)
    learning_rate_decay: float = traced(0.1)
    weight_decay: float = traced(0.0)
    num_steps: int = 2000
    batch_size: int = 10
    noise_log_spread: float = traced(3.0)
    scale_log_spread: float = traced(1.0)
    kernel: AbstractKernel | None = None

    def __post_init__(self) -> None:
        settle_kernel(self)

    def initial(self, num_columns: int, *, key: PRNGKeyArray) -> GaussianProcess:
        # Distances between points of a d-dimensional domain grow like the square root of d.
        lengthscale = INITIAL_LENGTHSCALE * np.sqrt(num_columns)
        start = SquaredExponential(jnp.full(num_columns, np.log(lengthscale)), jnp.asarray(0.0))
        kernel = start if self.kernel is None else as_arrays(self.kernel)
        noise = jnp.log(INITIAL_NOISE_VARIANCE)
        return GaussianProcess(ConstantMean(jnp.asarray(0.0)), kernel, noise)

    def objective(self, tasks: Tasks, data: MetaData) -> LikelihoodObjective:
        return LikelihoodObjective(
            data,
            jnp.asarray(np.mean(tasks.lengths)),
            log_likelihoods,
            min(self.batch_size, tasks.num_tasks),
        )

    def surrogate(self, model: GaussianProcess, standardiser: Standardiser) -> GPSurrogate:
        spread = Spread(jnp.asarray(self.noise_log_spread), jnp.asarray(self.scale_log_spread))
        return GPSurrogate(model, standardiser, spread)
