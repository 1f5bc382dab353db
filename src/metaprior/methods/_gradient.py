"""What the gradient-trained methods share: one way to be trained, alone or many at once."""

import abc
from collections.abc import Sequence
from copy import copy
from dataclasses import fields
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray, Shaped

from metaprior.data import Standardiser, Tasks, blank_standardiser, fit_standardiser
from metaprior.gp import compile_quickly, float64
from metaprior.meta import (
    AbstractObjective,
    HeldOut,
    MetaData,
    Schedule,
    Trainings,
    meta_data,
    stack,
    train,
    train_many,
    train_many_at,
)
from metaprior.methods._method import AbstractMethod, AbstractSurrogate, OnProgress, is_traced


class AbstractGradientMethod(AbstractMethod):
    """A method that minimises an objective over random batches of tasks.

    Final classes are frozen dataclasses that declare these fields and their own. Those made by
    `traced` may differ between trainings done at once; all others are sizes, which may not.
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
            self.initial(tasks.space.num_inputs, key=key_model),
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

    @property
    def sees_features(self) -> bool:
        return True

    @property
    def takes_steps(self) -> bool:
        return True

    @property
    def trains_in_batches(self) -> bool:
        return True

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
    """A batch of trainings on one set of tasks; the surrogate's arrays have a leading batch axis.

    The configurations may differ in every number that is not a size.
    """
    standardiser, data = _prepare(tasks)
    first, numbers = methods[0], _numbers(methods)

    def one(numbers):
        """What differs between the trainings; the data do not."""
        objective = _with(first, numbers).objective(tasks, data)
        return eqx.tree_at(lambda o: o.data, objective, None)

    objectives = eqx.tree_at(
        lambda o: o.data, eqx.filter_vmap(one)(numbers), data, is_leaf=lambda x: x is None
    )
    batch = _begun(first, numbers, objectives, stack([standardiser] * len(methods)), keys)
    trained = train_many(
        batch.models,
        objectives,
        batch.schedules,
        first.num_steps,
        keys=batch.keys,
        on_progress=on_progress,
    )
    return batch.surrogates(trained.model)


@float64
def meta_train_each(
    methods: Sequence[AbstractGradientMethod],
    tasks: Sequence[Tasks],
    *,
    keys: Key[Array, " batch"],
    room: int | None = None,
    chunk: int | None = None,
    may_diverge: bool = False,
    on_progress: OnProgress | None = None,
) -> AbstractSurrogate:
    """A batch of trainings, each on its own tasks; as `meta_train_many` returns it.

    The configurations may differ in every number that is not a size, and in `num_steps`; the sets
    of tasks in everything but their number, the shortest run and the padded length of the longest.

    - `room`: train as if there were room for so many tasks, so that sets of 1, 2, ... `room` tasks
      share compiled code. A batch of a step has a task more than once if there are too few.
    - `chunk`, `may_diverge`: as in `metaprior.meta.train_many`.
    """
    batch = _batch(methods, tasks, keys, room)
    trained = train_many(
        batch.models,
        batch.objectives,
        batch.schedules,
        [method.num_steps for method in methods],
        keys=batch.keys,
        shared_data=False,
        chunk=chunk,
        may_diverge=may_diverge,
        on_progress=on_progress,
    )
    return batch.surrogates(trained.model)


@float64
def meta_train_at(
    methods: Sequence[AbstractGradientMethod],
    tasks: Sequence[Tasks],
    checkpoints: Sequence[int],
    *,
    keys: Key[Array, " batch"],
    chunk: int | None = None,
) -> list[AbstractSurrogate]:
    """What `meta_train_each` returns for each of several numbers of steps, from one training.

    Numbers of a training that diverged are not finite.

    - `checkpoints`: rising numbers of steps, in place of those of the configurations.
    """
    batch = _batch(methods, tasks, keys, None)
    models = train_many_at(
        batch.models,
        batch.objectives,
        batch.schedules,
        checkpoints,
        keys=batch.keys,
        shared_data=False,
        chunk=chunk,
    )
    return [batch.surrogates(model) for model in models]


class _Batch(NamedTuple):
    """Trainings that have not begun, each on its own tasks; everything has a batch axis."""

    first: AbstractGradientMethod
    numbers: dict[str, Shaped[Array, " batch"]]
    models: Any
    objectives: AbstractObjective
    schedules: Schedule
    standardisers: Standardiser
    keys: Key[Array, " batch"]

    def surrogates(self, models: Any) -> AbstractSurrogate:
        """What the trained models can be used as."""

        def one(model, numbers, standardiser):
            return _with(self.first, numbers).surrogate(model, standardiser)

        return eqx.filter_vmap(one)(models, self.numbers, self.standardisers)


def _batch(
    methods: Sequence[AbstractGradientMethod],
    tasks: Sequence[Tasks],
    keys: Key[Array, " batch"],
    room: int | None,
) -> _Batch:
    first, numbers = methods[0], _numbers(methods, may_differ=("num_steps",))
    prepared = [_prepare(each, room) for each in tasks]
    objectives = stack(
        [
            method.objective(each if room is None else _repeated(each, room), data)
            for method, each, (_, data) in zip(methods, tasks, prepared, strict=True)
        ]
    )
    standardisers = stack([standardiser for standardiser, _ in prepared])
    return _begun(first, numbers, objectives, standardisers, keys)


def _begun(
    first: AbstractGradientMethod,
    numbers: dict[str, Shaped[Array, " batch"]],
    objectives: AbstractObjective,
    standardisers: Standardiser,
    keys: Key[Array, " batch"],
) -> _Batch:
    """Initialised models; everything but the data of the objectives has a batch axis."""
    split = jax.vmap(jax.random.split)(keys)
    num_columns = standardisers.x_mean.shape[-1]

    def start(numbers, key):
        method = _with(first, numbers)
        return method.initial(num_columns, key=key), method._schedule()

    models, schedules = eqx.filter_vmap(start)(numbers, split[:, 0])
    return _Batch(first, numbers, models, objectives, schedules, standardisers, split[:, 1])


@float64
def start_trainings(
    methods: Sequence[AbstractGradientMethod],
    tasks: Tasks,
    *,
    held_out: HeldOut,
    keys: Key[Array, " batch"],
    few_steps: bool = False,
) -> Trainings:
    """Trainings on one set of tasks that have not begun; each sees all tasks but its held-out ones.

    The configurations may differ in every number that is not a size, and in `num_steps`.

    - `few_steps`: as in `metaprior.meta.Trainings`.
    """
    standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space)
    data = meta_data(tasks, standardiser)
    first, numbers = methods[0], _numbers(methods, may_differ=("num_steps",))
    num_columns = tasks.space.num_inputs

    @compile_quickly
    @eqx.filter_vmap
    def objectives_of(numbers, held_out):
        objective = _with(first, numbers).objective(tasks, data).without(held_out)
        return eqx.tree_at(lambda o: o.data, objective, None)

    models, schedules, train_keys = _beginnings(_Alike(first), numbers, keys, num_columns)
    objectives = eqx.tree_at(
        lambda o: o.data, objectives_of(numbers, held_out), data, is_leaf=lambda x: x is None
    )
    return Trainings(models, objectives, schedules, keys=train_keys, few_steps=few_steps)


class _Alike:
    """A configuration as a static argument of compiled code, equal to all that can train with it:
    what differs between them is traced."""

    def __init__(self, method: AbstractGradientMethod):
        self.method = method

    def __hash__(self) -> int:
        return hash(type(self.method))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alike) and can_train_together(self.method, other.method)


def _begin(alike: _Alike, numbers, keys: Key[Array, " batch"], num_columns: int):
    """Models before training, schedules, and the keys of the trainings."""

    def one(numbers, key):
        method = _with(alike.method, numbers)
        key_model, key_train = jax.random.split(key)
        return method.initial(num_columns, key=key_model), method._schedule(), key_train

    return eqx.filter_vmap(one)(numbers, keys)


# It runs once per batch.
_beginnings = compile_quickly(_begin)


def can_train_together(one: AbstractGradientMethod, other: AbstractGradientMethod) -> bool:
    """Whether two configurations are of one class and have equal sizes, as a batch needs."""
    if type(one) is not type(other):
        return False
    try:
        _numbers([one, other], may_differ=("num_steps",))
    except ValueError:
        return False
    return True


@float64
def surrogates_of(
    methods: Sequence[AbstractGradientMethod], models: Any, standardiser: Standardiser
) -> AbstractSurrogate:
    """The surrogates of a batch of models, with a leading batch axis."""
    first, numbers = methods[0], _numbers(methods, may_differ=("num_steps",))
    return _surrogates(_Alike(first), models, numbers, standardiser)


@compile_quickly
def _surrogates(alike: _Alike, models, numbers, standardiser: Standardiser):
    def one(model, numbers):
        return _with(alike.method, numbers).surrogate(model, standardiser)

    return eqx.filter_vmap(one)(models, numbers)


def _prepare(tasks: Tasks, room: int | None = None) -> tuple[Standardiser, MetaData]:
    standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space)
    if room is None:
        tasks.require_several()
        return standardiser, meta_data(tasks, standardiser)
    data = meta_data(_repeated(tasks, room), standardiser)
    return standardiser, eqx.tree_at(lambda d: d.num_tasks, data, jnp.asarray(tasks.num_tasks))


def _repeated(tasks: Tasks, room: int) -> Tasks:
    """The tasks over and over until there are `room` of them: the shapes of a full set."""
    if not 0 < tasks.num_tasks <= room:
        raise ValueError(
            f"There is room for 1 to {room} tasks, and a set has {tasks.num_tasks}; give more room."
        )
    return tasks.subset(np.arange(room) % tasks.num_tasks)


def _numbers(
    methods: Sequence[AbstractGradientMethod], may_differ: Sequence[str] = ()
) -> dict[str, Shaped[Array, " batch"]]:
    """The traced numbers of each configuration, by name; everything else must be equal."""
    first = methods[0]
    for field in fields(first):
        if is_traced(field) or field.name in may_differ:
            continue
        values = [getattr(method, field.name) for method in methods]
        if any(v is not values[0] and v != values[0] for v in values):
            shown = ", ".join(sorted({repr(v) for v in values}, key=lambda text: (len(text), text)))
            raise ValueError(
                f"Configurations trained together must have equal sizes, but `{field.name}` takes "
                f"the values [{shown}]; train them in separate batches."
            )
    names = [field.name for field in fields(first) if is_traced(field)]
    return {name: jnp.asarray(np.array([getattr(m, name) for m in methods])) for name in names}


def _with(
    method: AbstractGradientMethod, numbers: dict[str, Shaped[Array, ""]]
) -> AbstractGradientMethod:
    """`method` with traced numbers in place of its own; its constructor takes plain ones only."""
    changed = copy(method)
    for name, number in numbers.items():
        object.__setattr__(changed, name, number)
    return changed
