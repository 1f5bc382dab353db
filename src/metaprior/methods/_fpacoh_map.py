"""F-PACOH-MAP: a GP prior with neural mean and kernel, regularised in the function space.

Rothfuss, Heyn, Chen and Krause, "Meta-Learning Reliable Priors in the Function Space",
NeurIPS 2021, algorithm 3 (F-PACOH-MAP: Meta-Learning GP Priors).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PRNGKeyArray

from metaprior._precision import float64
from metaprior.data import Standardiser, Tasks, fit_standardiser
from metaprior.gp import FeatureKernel, GaussianProcess, NeuralMean, SquaredExponential
from metaprior.meta import (
    FPacohObjective,
    MetaData,
    Schedule,
    measurement_sizes,
    meta_data,
    train,
    train_many,
    vanilla_hyper_prior,
)
from metaprior.methods._gp_surrogate import GPSurrogate
from metaprior.methods._method import AbstractMethod, OnProgress


def neural_process_prior(num_columns: int, feature_dim: int, *, key: PRNGKeyArray):
    """A GP whose mean and kernel features are networks of 3 hidden layers of 32 tanh units."""
    key_mean, key_features = jax.random.split(key)
    width, depth = 32, 3
    mean = eqx.nn.MLP(num_columns, 1, width, depth, jnp.tanh, key=key_mean)
    features = eqx.nn.MLP(num_columns, feature_dim, width, depth, jnp.tanh, key=key_features)
    base = SquaredExponential(jnp.log(0.5), jnp.log(1.0))
    return GaussianProcess(NeuralMean(mean), FeatureKernel(base, features), jnp.log(1e-2))


@dataclass(frozen=True)
class FPacohMap(AbstractMethod):
    r"""F-PACOH-MAP. All numbers refer to standardised inputs and outputs.

    - `kappa`: weight $\kappa$ of the functional divergence.
    - `hyper_lengthscale`, `hyper_variance`: of the squared-exponential hyper-prior.
    - `learning_rate`, `learning_rate_decay` (every 1000 steps), `weight_decay`: of AdamW.
    - `num_steps`, `batch_size`: training steps, and tasks in each.
    - `feature_dim`: dimension of the kernel's feature space.
    - `num_measurements`, `measurements_from_task`: size of a measurement set, and how many of its
      points come from the task's own inputs.
    - `measurement_variance`: resolution at which functions are compared: the jitter on both sides
      of the divergence.
    - `noise_log_spread`: how far, in the logarithm of its variance, the noise of a new run may be
      from the learned one; 0 keeps the learned noise, as the paper does.
    """

    kappa: float = 0.1
    hyper_lengthscale: float = 0.3
    hyper_variance: float = 1.0
    learning_rate: float = 1e-3
    learning_rate_decay: float = 0.9
    weight_decay: float = 1e-3
    num_steps: int = 4000
    batch_size: int = 4
    feature_dim: int = 2
    num_measurements: int = 20
    measurements_from_task: int = 10
    measurement_variance: float = 1e-4
    noise_log_spread: float = 3.0

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> GPSurrogate:
        standardiser = _standardise(tasks)
        data = meta_data(tasks, standardiser)
        key_model, key_train = jax.random.split(key)
        trained = train(
            self._initial(data, key=key_model),
            self._objective(tasks, data),
            self._schedule(),
            self.num_steps,
            key=key_train,
            on_progress=on_progress,
        )
        return self._surrogate(trained.model, standardiser)

    def _initial(self, data: MetaData, *, key: PRNGKeyArray) -> GaussianProcess:
        return neural_process_prior(data.x.shape[-1], self.feature_dim, key=key)

    def _objective(self, tasks: Tasks, data: MetaData) -> FPacohObjective:
        shortest = int(tasks.lengths.min())
        return FPacohObjective(
            data,
            vanilla_hyper_prior(self.hyper_lengthscale, self.hyper_variance),
            jnp.asarray(self.kappa),
            jnp.asarray(self.measurement_variance),
            measurement_sizes(self.num_measurements, self.measurements_from_task, shortest),
            min(self.batch_size, tasks.num_tasks),
        )

    def _schedule(self) -> Schedule:
        return Schedule(self.learning_rate, self.learning_rate_decay, self.weight_decay)

    def _surrogate(self, process: GaussianProcess, standardiser: Standardiser) -> GPSurrogate:
        return GPSurrogate(process, standardiser, jnp.asarray(self.noise_log_spread))


@float64
def meta_train_many(
    methods: Sequence[FPacohMap],
    tasks: Tasks,
    *,
    keys: Key[Array, " batch"],
    on_progress: OnProgress | None = None,
) -> GPSurrogate:
    """A batch of trainings at once; every array of the surrogate has a leading batch axis.

    The configurations may differ in every number that is not a size.
    """
    standardiser = _standardise(tasks)
    data = meta_data(tasks, standardiser)
    split = jax.vmap(jax.random.split)(keys)
    models = [m._initial(data, key=key) for m, key in zip(methods, split[:, 0], strict=True)]
    objectives = _stack([eqx.tree_at(lambda o: o.data, m._objective(tasks, data), None) for m in methods])
    objectives = eqx.tree_at(lambda o: o.data, objectives, data, is_leaf=lambda leaf: leaf is None)
    schedules = jax.tree.map(lambda *values: jnp.asarray(values), *(m._schedule() for m in methods))
    trained = train_many(
        _stack(models), objectives, schedules, methods[0].num_steps, keys=split[:, 1], on_progress=on_progress
    )
    return _stack(
        [m._surrogate(jax.tree.map(lambda leaf, i=i: leaf[i] if eqx.is_array(leaf) else leaf, trained.model), standardiser) for i, m in enumerate(methods)]
    )


def _standardise(tasks: Tasks) -> Standardiser:
    tasks.require_several()
    return fit_standardiser(tasks.x, tasks.y, tasks.mask)


def _stack(trees):
    """Modules of one structure as one module of stacked arrays."""
    arrays, rest = zip(*(eqx.partition(tree, eqx.is_array) for tree in trees), strict=True)
    return eqx.combine(jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays), rest[0])
