r"""The one training loop: AdamW over random mini-batches, compiled in chunks of steps.

An objective has two parts. `draw` makes one step's random batch without looking at the model, so
the batches of a whole chunk are drawn at once, vectorised. `loss` is the differentiable rest, and
the only thing inside the loop. Numbers such as the learning rate or the weight of a divergence are
traced values, so a batch of trainings is one `vmap`.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, PyTree

from metaprior._precision import float64
from metaprior.gp import require_finite

CHUNK = 100
DECAY_EVERY = 1000


class AbstractObjective(eqx.Module):
    """What a method minimises. `data` is shared by all trainings of a batch; every other array
    field is a number of the configuration."""

    data: eqx.AbstractVar[PyTree]

    @abc.abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> Any:
        """The random batch of one step."""

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
    """A trained model and the history of the objective's terms, one value a step."""

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
    return _run(_start, _chunk, model, objective, schedule, num_steps, key, on_progress)


@float64
def train_many(
    models: PyTree,
    objectives: AbstractObjective,
    schedules: Schedule,
    num_steps: int,
    *,
    keys: Key[Array, " batch"],
    on_progress: Callable[[Progress], None] | None = None,
) -> Trained:
    """A batch of trainings in one compiled loop.

    Every array has a leading batch axis, except `objectives.data`, which they share.
    """
    return _run(
        _start_many, _chunk_many, models, objectives, schedules, num_steps, keys, on_progress
    )


class _State(NamedTuple):
    """All trainable numbers as one vector: the optimiser is then a single fused operation."""

    flat: Float[Array, " p"]
    optimiser: PyTree


def _run(start, chunk, model, objective, schedule, num_steps, key, on_progress):
    """Chunks of steps until `num_steps`, checked and reported one by one."""
    schedule = jax.tree.map(lambda value: jnp.asarray(value, float), schedule)
    state = start(model, schedule)
    histories = []
    for first in range(0, num_steps, CHUNK):
        count = min(CHUNK, num_steps - first)
        state, history = chunk(
            model, state, objective, schedule, key, jnp.asarray(first), jnp.asarray(count)
        )
        histories.append({name: np.asarray(terms)[..., :count] for name, terms in history.items()})
        for name, terms in histories[-1].items():
            require_finite(terms, f"The {name} term of the objective near step {first + count}")
        if on_progress is not None:
            on_progress(Progress(first + count, num_steps, histories[-1]))
    # The terms are those before each step: the last step may still have gone astray.
    require_finite(state.flat, "The trained model")
    names = histories[0] if histories else {}
    joined = {name: np.concatenate([h[name] for h in histories], axis=-1) for name in names}
    return Trained(_finish(model, state.flat, batched=chunk is _chunk_many), joined)


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


def _finish(model, flat, *, batched: bool):
    return eqx.filter_vmap(_unflatten)(model, flat) if batched else _unflatten(model, flat)


def _steps_many(models, states, objectives, schedules, keys, first, count):
    others = eqx.tree_at(lambda o: o.data, objectives, None)
    arrays, static = eqx.partition((models, states, others, schedules, keys), eqx.is_array)

    def one(arrays):
        model, state, others, schedule, key = eqx.combine(arrays, static)
        objective = eqx.tree_at(
            lambda o: o.data, others, objectives.data, is_leaf=lambda leaf: leaf is None
        )
        return _steps(model, state, objective, schedule, key, first, count)

    # One after another on a CPU, where a single training fits the caches and a batch of them does
    # not; all at once on an accelerator.
    on_cpu = jax.default_backend() == "cpu"
    return jax.lax.map(one, arrays) if on_cpu else jax.vmap(one)(arrays)


_start = eqx.filter_jit(_first_state)
_start_many = eqx.filter_jit(eqx.filter_vmap(_first_state))
_chunk = eqx.filter_jit(_steps)
_chunk_many = eqx.filter_jit(_steps_many)
