"""What the gradient-trained methods share: one way to be trained, alone or many at once."""

import abc
from collections.abc import Sequence
from copy import copy
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from metaprior._precision import float64
from metaprior.data import Standardiser, Tasks, blank_standardiser, fit_standardiser
from metaprior.meta import AbstractObjective, MetaData, Schedule, meta_data, train, train_many
from metaprior.methods._method import AbstractMethod, AbstractSurrogate, OnProgress


class AbstractGradientMethod(AbstractMethod):
    """A method that minimises an objective over random batches of tasks.

    Final classes are frozen dataclasses that declare these fields and their own. Those of type
    `float` are traced numbers, which may differ between trainings done at once; all others are
    sizes, which may not.
    """

    learning_rate: float
    learning_rate_decay: float
    weight_decay: float
    num_steps: int

    @abc.abstractmethod
    def initial(self, num_columns: int, *, key: PRNGKeyArray) -> Any:
        """The model before training."""

    @abc.abstractmethod
    def objective(self, tasks: Tasks, data: MetaData) -> AbstractObjective:
        """What is minimised; `data` are the `tasks`, standardised."""

    @abc.abstractmethod
    def surrogate(self, model: Any, standardiser: Standardiser) -> AbstractSurrogate:
        """What a trained model can be used as."""

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> AbstractSurrogate:
        standardiser, data = _prepare(tasks)
        key_model, key_train = jax.random.split(key)
        trained = train(
            self.initial(tasks.space.num_columns, key=key_model),
            self.objective(tasks, data),
            self._schedule(),
            self.num_steps,
            key=key_train,
            on_progress=on_progress,
        )
        return self.surrogate(trained.model, standardiser)

    @float64
    def blank_surrogate(self, num_columns: int) -> AbstractSurrogate:
        model = self.initial(num_columns, key=jax.random.key(0))
        return self.surrogate(model, blank_standardiser(num_columns))

    def _schedule(self) -> Schedule:
        return Schedule(self.learning_rate, self.learning_rate_decay, self.weight_decay)


@float64
def meta_train_many(
    methods: Sequence[AbstractGradientMethod],
    tasks: Tasks,
    *,
    keys: Key[Array, " batch"],
    on_progress: OnProgress | None = None,
) -> AbstractSurrogate:
    """A batch of trainings at once; every array of the surrogate has a leading batch axis.

    The configurations may differ in every number that is not a size.
    """
    standardiser, data = _prepare(tasks)
    first, numbers = methods[0], _numbers(methods)
    split = jax.vmap(jax.random.split)(keys)

    def one(numbers, key):
        """What differs between the trainings; the data do not."""
        method = _with(first, numbers)
        objective = eqx.tree_at(lambda o: o.data, method.objective(tasks, data), None)
        model = method.initial(tasks.space.num_columns, key=key)
        return model, objective, method._schedule()

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
        lambda model, numbers: _with(first, numbers).surrogate(model, standardiser)
    )(trained.model, numbers)


def _prepare(tasks: Tasks) -> tuple[Standardiser, MetaData]:
    tasks.require_several()
    standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask)
    return standardiser, meta_data(tasks, standardiser)


def _numbers(methods: Sequence[AbstractGradientMethod]) -> dict[str, Float[Array, " batch"]]:
    """The traced numbers of each configuration, by name; everything else must be equal."""
    first = methods[0]
    for field in fields(first):
        values = [getattr(method, field.name) for method in methods]
        if field.type is not float and any(v is not values[0] and v != values[0] for v in values):
            raise ValueError(
                f"Configurations trained together must have equal sizes, but `{field.name}` takes "
                f"the values {sorted({repr(v) for v in values})}; train them in separate batches."
            )
    names = [field.name for field in fields(first) if field.type is float]
    return {name: jnp.asarray([getattr(m, name) for m in methods]) for name in names}


def _with(
    method: AbstractGradientMethod, numbers: dict[str, Float[Array, ""]]
) -> AbstractGradientMethod:
    """`method` with traced numbers in place of its own; its constructor takes plain ones only."""
    traced = copy(method)
    for name, number in numbers.items():
        object.__setattr__(traced, name, number)
    return traced
