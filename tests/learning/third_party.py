"""A method of another package: Gaussian processes of one known period, fitted to all past runs.

Importing this module registers the method, as importing a package of a user's would.
"""

from dataclasses import dataclass

import jax.numpy as jnp

from metaprior.gp import ConstantMean, GaussianProcess, Periodic, Spread
from metaprior.meta import LikelihoodObjective, log_likelihoods
from metaprior.methods import AbstractGradientMethod, GPSurrogate, register, traced


@register
@dataclass(frozen=True)
class Waves(AbstractGradientMethod):
    period: float = traced(1.0)
    learning_rate: float = traced(0.05)
    learning_rate_decay: float = traced(1.0)
    weight_decay: float = traced(0.0)
    num_steps: int = 100
    batch_size: int = 4

    def initial(self, num_columns, *, key):
        kernel = Periodic(jnp.log(self.period), jnp.asarray(0.0), jnp.asarray(0.0))
        return GaussianProcess(ConstantMean(jnp.asarray(0.0)), kernel, jnp.log(1e-2))

    def objective(self, tasks, data):
        mean_length = jnp.asarray(tasks.lengths.mean())
        size = min(self.batch_size, tasks.num_tasks)
        return LikelihoodObjective(data, mean_length, log_likelihoods, size)

    def surrogate(self, model, standardiser):
        return GPSurrogate(model, standardiser, Spread(jnp.asarray(0.0), jnp.asarray(0.0)))
