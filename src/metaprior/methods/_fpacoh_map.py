"""F-PACOH-MAP: a GP prior with neural mean and kernel, regularised in the function space.

Rothfuss, Heyn, Chen and Krause, "Meta-Learning Reliable Priors in the Function Space",
NeurIPS 2021, algorithm 3 (F-PACOH-MAP: Meta-Learning GP Priors).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from metaprior._precision import float64
from metaprior.data import Standardiser, Tasks, blank_standardiser, fit_standardiser
from metaprior.gp import FeatureKernel, GaussianProcess, NeuralMean, Spread, SquaredExponential
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
    - `noise_log_spread`, `scale_log_spread`: how far noise variance and kernel variance of a new
      run may be from the learned ones, in logarithms; with 0 they are kept, as in the paper.
    """

    kappa: float = 0.05
    hyper_lengthscale: float = 0.15
    hyper_variance: float = 1.0
    learning_rate: float = 4e-3
    learning_rate_decay: float = 0.9
    weight_decay: float = 1e-3
    num_steps: int = 4000
    batch_size: int = 4
    feature_dim: int = 6
    num_measurements: int = 20
    measurements_from_task: int = 10
    measurement_variance: float = 1e-4
    noise_log_spread: float = 3.0
    scale_log_spread: float = 1.0

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> GPSurrogate:
        standardiser = _standardise(tasks)
        data = meta_data(tasks, standardiser)
        key_model, key_train = jax.random.split(key)
        trained = train(
            self._initial(tasks.space.num_columns, key=key_model),
            self._objective(tasks, data),
            self._schedule(),
            self.num_steps,
            key=key_train,
            on_progress=on_progress,
        )
        return self._surrogate(trained.model, standardiser)

    @float64
    def blank_surrogate(self, num_columns: int) -> GPSurrogate:
        process = self._initial(num_columns, key=jax.random.key(0))
        return self._surrogate(process, blank_standardiser(num_columns))

    def _initial(self, num_columns: int, *, key: PRNGKeyArray) -> GaussianProcess:
        return neural_process_prior(num_columns, self.feature_dim, key=key)

    def _objective(self, tasks: Tasks, data: MetaData) -> FPacohObjective:
        shortest = int(tasks.lengths.min())
        lengthscale = self.hyper_lengthscale * jnp.sqrt(tasks.space.num_columns)
        return FPacohObjective(
            data,
            vanilla_hyper_prior(lengthscale, self.hyper_variance),
            jnp.asarray(self.kappa),
            jnp.asarray(self.measurement_variance),
            measurement_sizes(self.num_measurements, self.measurements_from_task, shortest),
            min(self.batch_size, tasks.num_tasks),
        )

    def _schedule(self) -> Schedule:
        return Schedule(self.learning_rate, self.learning_rate_decay, self.weight_decay)

    def _surrogate(self, process: GaussianProcess, standardiser: Standardiser) -> GPSurrogate:
        spread = Spread(jnp.asarray(self.noise_log_spread), jnp.asarray(self.scale_log_spread))
        return GPSurrogate(process, standardiser, spread)


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
    first, numbers = methods[0], _numbers(methods)
    split = jax.vmap(jax.random.split)(keys)

    def one(numbers, key):
        """What differs between the trainings; the data do not."""
        method = replace(first, **numbers)
        objective = eqx.tree_at(lambda o: o.data, method._objective(tasks, data), None)
        return method._initial(tasks.space.num_columns, key=key), objective, method._schedule()

    models, objectives, schedules = eqx.filter_vmap(one)(numbers, split[:, 0])
    objectives = eqx.tree_at(lambda o: o.data, objectives, data, is_leaf=lambda x: x is None)
    trained = train_many(
        models,
        objectives,
        schedules,
        first.num_steps,
        keys=split[:, 1],
        on_progress=on_progress,
    )
    return eqx.filter_vmap(
        lambda process, numbers: replace(first, **numbers)._surrogate(process, standardiser)
    )(trained.model, numbers)


def _numbers(methods: Sequence[FPacohMap]) -> dict[str, Float[Array, " batch"]]:
    """The traced numbers of each configuration, by name; sizes must be equal."""
    first = methods[0]
    for field in fields(FPacohMap):
        values = {getattr(method, field.name) for method in methods}
        if field.type is int and len(values) > 1:
            raise ValueError(
                f"Configurations trained together must have equal sizes, but `{field.name}` takes "
                f"the values {sorted(values)}; train them in separate batches."
            )
    names = [field.name for field in fields(first) if field.type is float]
    return {name: jnp.asarray([getattr(m, name) for m in methods]) for name in names}


def _standardise(tasks: Tasks) -> Standardiser:
    tasks.require_several()
    return fit_standardiser(tasks.x, tasks.y, tasks.mask)
