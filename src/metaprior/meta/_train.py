r"""The one training loop: AdamW over random mini-batches, compiled in chunks of steps.

An objective has two parts. `draw` makes one step's random batch without looking at the model, so
the batches of a whole chunk are drawn at once, vectorised. `loss` is the differentiable rest, and
the only thing inside the loop. Numbers such as the learning rate or the weight of a divergence are
traced values, so a batch of trainings is one `vmap`.
"""

import abc
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from metaprior.gp import compile_quickly, float64, require_finite
from metaprior.meta._batch import chunk_here, map_chunks
from metaprior.meta._data import HeldOut, nothing_held_out

CHUNK = 100
DECAY_EVERY = 1000


class AbstractObjective(eqx.Module):
    """What a method minimises.

    `data` may be shared by all trainings of a batch; every other array field is a number of the
    configuration or of the training. Tasks that are `held_out` are never drawn, and whatever the
    objective computes from all tasks, such as their number, leaves them out.
    """

    data: eqx.AbstractVar[PyTree]
    held_out: HeldOut = eqx.field(default_factory=nothing_held_out, kw_only=True)

    def without(self, held_out: HeldOut) -> "AbstractObjective":
        """The same objective of the tasks that are not `held_out`.

        Override it if a field was computed from all tasks.
        """
        return eqx.tree_at(lambda objective: objective.held_out, self, held_out)

    @abc.abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> Any:
        """The random batch of one step, of tasks that are not held out."""

    @abc.abstractmethod
    def loss(self, model: PyTree, batch: Any) -> tuple[Float[Array, ""], dict[str, Array]]:
        """Value to minimise on this batch, and its terms by name."""


class Schedule(NamedTuple):
    """Numbers of the AdamW optimiser; the learning rate decays every 1000 steps."""

    learning_rate: Float[Array, "*batch"] | float
    learning_rate_decay: Float[Array, "*batch"] | float
    weight_decay: Float[Array, "*batch"] | float


class Progress(NamedTuple):
    """Where a training stands: steps done, steps to do in all, and the objective's terms in the
    steps since the last report."""

    step: int
    num_steps: int
    terms: dict[str, Float[np.ndarray, "*batch steps"]]


class Trained(NamedTuple):
    """A trained model and the history of the objective's terms, one value per step."""

    model: PyTree
    history: dict[str, Float[np.ndarray, "*batch steps"]]


@float64
def train(
    model: PyTree,
    objective: AbstractObjective,
    schedule: Schedule,
    num_steps: int,
    *,
    key: PRNGKeyArray,
    on_progress: Callable[[Progress], None] | None = None,
) -> Trained:
    """`model` after `num_steps` steps of AdamW on `objective`."""
    state, history = _run(
        _start, _chunk, (model, objective, schedule, key), num_steps, True, on_progress
    )
    return Trained(_unflatten(model, state.flat), history)


@float64
def train_many(
    models: PyTree,
    objectives: AbstractObjective,
    schedules: Schedule,
    num_steps: int | Sequence[int],
    *,
    keys: Key[Array, " batch"],
    shared_data: bool = True,
    chunk: int | None = None,
    may_diverge: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Trained:
    """A batch of trainings in one compiled loop; every array has a leading batch axis.

    - `num_steps`: of all trainings, or of each. Terms after the last step of a training are NaN.
    - `shared_data`: `objectives.data` has no batch axis: all trainings see the same data.
    - `chunk`: number of trainings side by side on an accelerator; all of them by default.
    - `may_diverge`: do not raise if a training diverges: its numbers are not finite, and the others
      are unaffected.
    """
    chunk = chunk_here(chunk)

    def steps(models, states, objectives, schedules, keys, first, counts):
        return _chunk_many(
            models, states, objectives, schedules, keys, first, counts, shared_data, chunk
        )

    lengths = np.unique(num_steps)
    # Loops of different lengths cost a selection in every step where they run side by side.
    num_steps_each = lengths[0] if len(lengths) == 1 else np.asarray(num_steps)
    start = models, objectives, schedules, keys
    state, history = _run(_start_many, steps, start, num_steps_each, not may_diverge, on_progress)
    return Trained(_unflatten_many(models, state.flat), history)


@float64
def train_many_at(
    models: PyTree,
    objectives: AbstractObjective,
    schedules: Schedule,
    checkpoints: Sequence[int],
    *,
    keys: Key[Array, " batch"],
    shared_data: bool = True,
    chunk: int | None = None,
) -> list[PyTree]:
    """The models of one batch of trainings after each of the numbers of steps `checkpoints`.

    They are what `train_many` returns for each number by itself, for the price of the largest.
    Numbers of a training that diverged are not finite.

    - `checkpoints`: rising; the other arguments are those of `train_many`.
    """
    if not checkpoints or any(b <= a for a, b in pairwise([0, *checkpoints])):
        raise ValueError(f"`checkpoints` is {list(checkpoints)}; give rising numbers >= 1.")
    chunk = chunk_here(chunk)
    schedules = jax.tree.map(lambda value: jnp.asarray(value, float), schedules)
    states, found = _start_many(models, schedules), []
    for begin, end in pairwise([0, *checkpoints]):
        for first in range(begin, end, CHUNK):
            counts = jnp.asarray(min(CHUNK, end - first))
            states, _ = _chunk_many(
                *(models, states, objectives, schedules, keys),
                *(jnp.asarray(first), counts, shared_data, chunk),
            )
        found.append(_unflatten_many(models, states.flat))
    return found


class Trainings:
    """A batch of trainings that can be inspected on the way and stopped one by one.

    There are two compiled functions, whichever trainings continue: the others take no steps.
    Another batch of the same shapes needs no compilation.
    """

    def __init__(
        self,
        models: PyTree,
        objectives: AbstractObjective,
        schedules: Schedule,
        *,
        keys: Key[Array, " batch"],
        chunk: int | None = None,
        few_steps: bool = False,
    ):
        """As in `train_many`; the data of `objectives` are shared.

        - `few_steps`: there are so few of them that compiling quickly saves more than fast code.
        """
        self._advance = _chunk_many_quickly if few_steps else _chunk_many
        schedules = jax.tree.map(lambda value: jnp.asarray(value, float), schedules)
        # Not while a program is traced that needs it.
        import_module("optax")
        self._batch = models, objectives, schedules, keys
        self._state = _start_many(models, schedules)
        self._chunk = chunk_here(chunk)
        self._histories: list[dict[str, Float[np.ndarray, "batch steps"]]] = []
        self.step = 0

    def advance(self, num_steps: int, going_on: Bool[np.ndarray, " batch"]) -> None:
        """At most `CHUNK` more steps of the trainings that continue; the others do not change."""
        models, objectives, schedules, keys = self._batch
        counts = jnp.asarray(np.where(going_on, num_steps, 0))
        first = jnp.asarray(self.step)
        self._state, history = self._advance(
            models, self._state, objectives, schedules, keys, first, counts, True, self._chunk
        )
        done = going_on[:, None] & np.ones(num_steps, bool)
        self._histories.append(_cut(history, done))
        self.step += num_steps

    @property
    def history(self) -> dict[str, Float[np.ndarray, "batch steps"]]:
        """The objective's terms, one value per step; NaN where a training took no step."""
        return _joined(self._histories)

    @property
    def models(self) -> PyTree:
        """The models as they are now; numbers of a diverged one are not finite."""
        return _unflatten_many(self._batch[0], self._state.flat)


class _State(NamedTuple):
    """All trainable numbers as one vector: the optimiser is then a single fused operation."""

    flat: Float[Array, " p"]
    optimiser: PyTree


def _run(start, chunk, batch, num_steps, check, on_progress):
    """Chunks of steps until `num_steps`, checked and reported one by one."""
    model, objective, schedule, key = batch
    schedule = jax.tree.map(lambda value: jnp.asarray(value, float), schedule)
    state = start(model, schedule)
    longest = int(np.max(num_steps))
    histories = []
    for first in range(0, longest, CHUNK):
        counts = np.clip(num_steps - first, 0, CHUNK)
        last = min(first + CHUNK, longest)
        state, history = chunk(
            model, state, objective, schedule, key, jnp.asarray(first), jnp.asarray(counts)
        )
        done = np.arange(last - first) < counts[..., None]
        for name, terms in history.items():
            if check:
                what = f"The {name} term of the objective near step {last}"
                _require_finite(np.where(done, terms[..., : last - first], 0.0), what)
        histories.append(_cut(history, done))
        if on_progress is not None:
            on_progress(Progress(last, longest, histories[-1]))
    # The terms are those before each step: the last step may still have diverged.
    if check:
        _require_finite(state.flat, "The trained model")
    return state, _joined(histories)


def _cut(history, done: Bool[np.ndarray, "*batch steps"]) -> dict[str, np.ndarray]:
    """The terms of the steps of one chunk; NaN where there was no step."""
    steps = done.shape[-1]
    return {
        name: np.where(done, np.asarray(terms)[..., :steps], np.nan)
        for name, terms in history.items()
    }


def _joined(histories: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The terms of chunks that follow each other."""
    names = histories[0] if histories else {}
    return {name: np.concatenate([h[name] for h in histories], axis=-1) for name in names}


def _require_finite(values, what: str) -> None:
    """Raise if there is a number that is not finite; say which training of a batch it is of."""
    values = np.asarray(values)
    wrong = ~np.isfinite(values).reshape(-1, values.shape[-1]).all(axis=1)
    if values.ndim == 2 and wrong.any():
        what = f"{what} (training {int(np.argmax(wrong))} of the batch, counted from 0)"
    require_finite(values, what)


def _first_state(model, schedule) -> _State:
    flat, _ = ravel_pytree(eqx.filter(model, eqx.is_inexact_array))
    return _State(flat, _optimiser(model, schedule).init(flat))


def _steps(
    model: PyTree,
    state: _State,
    objective: AbstractObjective,
    schedule: Schedule,
    key: PRNGKeyArray,
    first: Int[Array, ""],
    count: Int[Array, ""],
):
    """`count` steps of which the first has number `first`; `model` gives the structure only."""
    optimiser = _optimiser(model, schedule)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, first + i))(jnp.arange(CHUNK))
    batches = jax.vmap(lambda key: objective.draw(key=key))(keys)

    def loss(flat, batch):
        return objective.loss(_unflatten(model, flat), batch)

    def step(i, carry):
        (flat, optimiser_state), history = carry
        batch = jax.tree.map(lambda leaf: leaf[i], batches)
        gradient, terms = jax.grad(loss, has_aux=True)(flat, batch)
        updates, optimiser_state = optimiser.update(gradient, optimiser_state, flat)
        history = jax.tree.map(lambda past, term: past.at[i].set(term), history, terms)
        return _State(flat + updates, optimiser_state), history

    one_batch = jax.tree.map(lambda leaf: leaf[0], batches)
    _, terms = jax.eval_shape(loss, state.flat, one_batch)
    history = jax.tree.map(lambda term: jnp.zeros(CHUNK, term.dtype), terms)
    return jax.lax.fori_loop(0, count, step, (state, history))


def _optimiser(model: PyTree, schedule: Schedule):
    """AdamW that shrinks weight matrices only: biases and log-scales have no natural zero."""
    # Loading a prior and using it needs no optimiser, and should not wait for its import.
    import optax

    weights = jax.tree.map(
        lambda leaf: jnp.full(leaf.shape, float(leaf.ndim > 1)),
        eqx.filter(model, eqx.is_inexact_array),
    )
    is_weight, _ = ravel_pytree(weights)

    def shrink(updates, params):
        return updates + schedule.weight_decay * is_weight * params

    def rate(step):
        return schedule.learning_rate * schedule.learning_rate_decay ** (step // DECAY_EVERY)

    return optax.chain(
        optax.scale_by_adam(), optax.stateless(shrink), optax.scale_by_learning_rate(rate)
    )


def _unflatten(model, flat: Float[Array, " p"]):
    """`model` with its trainable numbers replaced by those of `flat`."""
    params, static = eqx.partition(model, eqx.is_inexact_array)
    _, unravel = ravel_pytree(params)
    return eqx.combine(unravel(flat), static)


def _unflatten_many(models, flat: Float[Array, "batch p"]):
    """A batch of models with their trainable numbers replaced.

    On the host: compiled, it would take longer to compile than a hundred steps take to run.
    """
    params, static = eqx.partition(models, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(params)
    ends = np.cumsum([int(np.prod(leaf.shape[1:])) for leaf in leaves])[:-1]
    parts = np.split(np.asarray(flat), ends, axis=1)
    filled = [
        jnp.asarray(part.reshape(leaf.shape), leaf.dtype)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return eqx.combine(jax.tree.unflatten(structure, filled), static)


def _steps_many(
    models, states, objectives, schedules, keys, first, counts, shared_data: bool, chunk: int | None
):
    def data_of(objective):
        return objective.data

    shared = objectives.data
    if shared_data:
        objectives = eqx.tree_at(data_of, objectives, None)
    batch = (models, states, objectives, schedules, keys)
    arrays, static = eqx.partition(batch, eqx.is_array)
    own_counts = None if counts.ndim == 0 else counts

    def one(entry):
        arrays, own_count = entry
        model, state, objective, schedule, key = eqx.combine(arrays, static)
        if shared_data:
            objective = eqx.tree_at(data_of, objective, shared, is_leaf=lambda leaf: leaf is None)
        count = counts if own_count is None else own_count
        return _steps(model, state, objective, schedule, key, first, count)

    return map_chunks(one, (arrays, own_counts), chunk)


_start = eqx.filter_jit(_first_state)
_start_many = compile_quickly(eqx.filter_vmap(_first_state))
_chunk = eqx.filter_jit(_steps)
_chunk_many = eqx.filter_jit(_steps_many)
_chunk_many_quickly = compile_quickly(_steps_many)
