r"""The F-PACOH objective with a MAP hyper-posterior (equation 3, algorithms 1 and 3 of the paper).

symbol      meaning                                             name here
n           number of tasks that are not held out               num_tasks
H           number of tasks in a batch                          batch_size
T_i         number of observations of task i                    mask.sum()
L           number of measurement points                        sizes.total
kappa       weight of the divergence                            kl_weight
rho         the hyper-prior                                     hyper_prior
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from metaprior.gp import AbstractObservedProcess, AbstractProcess, Reference
from metaprior.meta._data import MetaData
from metaprior.meta._hyper_prior import divergence_weight, hyper_prior_at
from metaprior.meta._measured_tasks import MeasuredTasks, measure_tasks
from metaprior.meta._measurement import MeasurementSizes
from metaprior.meta._train import AbstractObjective
from metaprior.processes import AbstractScoreEstimator, SpectralStein, Target, divergence


class FPacohBatch(NamedTuple):
    """Tasks with measurement sets and, for each set, the hyper-prior there.

    `noise` makes function samples of the prior where the divergence has no closed form.
    """

    measured: MeasuredTasks
    hyper_prior: Target
    noise: Float[Array, "batch samples total"] | None
    keys: Key[Array, " batch"] | None


class FPacohObjective(AbstractObjective):
    r"""Unbiased estimate of the F-PACOH objective from a batch of tasks.

    $$ J(\phi) = \frac1n \sum_{i=1}^n \Big[ -\frac{1}{T_i} \ln p_\phi(y_i \mid x_i)
       + \kappa \Big( \frac{1}{\sqrt n} + \frac{1}{n T_i} \Big)
         \mathbb{E}_X \, \mathrm{KL}\big( p_\phi(f_X) \,\|\, \rho(f_X) \big) \Big] $$

    with $X$ a random measurement set. `measurement_variance` is the jitter that both sides of the
    divergence share: how finely two functions are compared. If the hyper-prior is not Gaussian,
    the divergence is a surrogate with the right gradient, from `num_samples` function samples.
    """

    data: MetaData
    hyper_prior: AbstractProcess
    kl_weight: Float[Array, ""]
    measurement_variance: Float[Array, ""]
    sizes: MeasurementSizes = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)
    estimator: AbstractScoreEstimator = SpectralStein()
    num_samples: int = eqx.field(static=True, default=100)

    def draw(self, *, key: PRNGKeyArray) -> FPacohBatch:
        measured = measure_tasks(self.data, self.sizes, self.batch_size, self.held_out, key=key)
        key_target, key_noise, key_estimate = jax.random.split(jax.random.fold_in(key, 1), 3)
        targets = hyper_prior_at(
            self.hyper_prior,
            measured.measurements,
            jitter=self.measurement_variance,
            estimator=self.estimator,
            num_samples=self.num_samples,
            key=key_target,
        )
        if isinstance(targets, Reference):
            return FPacohBatch(measured, targets, None, None)
        shape = (self.batch_size, self.num_samples, self.sizes.total)
        noise = jax.random.normal(key_noise, shape)
        return FPacohBatch(measured, targets, noise, jax.random.split(key_estimate, shape[0]))

    def loss(self, model: AbstractObservedProcess, batch: FPacohBatch):
        fit, marginals = batch.measured.fit_and_marginals(model)

        num_tasks = self.data.num_seen(self.held_out)

        def one_task(marginal, hyper_prior, noise, key, length):
            kl = divergence(marginal, hyper_prior, estimator=self.estimator, noise=noise, key=key)
            return self.kl_weight * divergence_weight(num_tasks, length) * kl

        lengths = jnp.sum(batch.measured.tasks.mask, axis=1)
        complexity = jax.vmap(one_task)(
            marginals, batch.hyper_prior, batch.noise, batch.keys, lengths
        )
        fit, complexity = jnp.mean(fit), jnp.mean(complexity)
        return fit + complexity, {"fit": fit, "complexity": complexity}
