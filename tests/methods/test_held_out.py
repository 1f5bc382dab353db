"""Tasks held out from a training, for the objective of every gradient-trained method."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from metaprior.data import Real, Space, Tasks, fit_standardiser
from metaprior.meta import HeldOut, MetaData, meta_data
from metaprior.methods import (
    ABLR,
    AbstractGradientMethod,
    FPacohBNN,
    FPacohMap,
    FPacohVI,
    LearnedGP,
    NeuralProcess,
    PacohMap,
    known_methods,
    start_trainings,
)

SPACE = Space(a=Real(0, 1), b=Real(0, 1))
LENGTHS = (1, 3, 6, 2, 5, 4, 6)
SMALL: dict[str, Any] = {
    "batch_size": 2,
    "feature_dim": 2,
    "num_measurements": 6,
    "measurements_from_task": 1,
}
METHODS = [
    FPacohMap(**SMALL),
    FPacohVI(**SMALL, num_priors=4, num_functions=2),
    FPacohBNN(
        batch_size=2,
        width=4,
        depth=1,
        num_samples=8,
        newton_steps=1,
        num_measurements=6,
        measurements_from_task=1,
    ),
    PacohMap(batch_size=2, feature_dim=2),
    LearnedGP(batch_size=2),
    ABLR(batch_size=2),
    NeuralProcess(batch_size=2, width=4, depth=1, latent_dim=2),
]
BLOCKS = [(1, 2), (2, 3), (5, 2), (3, 0)]

# The objectives of the others compile for several seconds each.
QUICK = (FPacohMap, LearnedGP)

each_method = pytest.mark.parametrize(
    "method",
    [pytest.param(m, marks=[pytest.mark.slow] * (type(m) not in QUICK)) for m in METHODS],
    ids=lambda m: type(m).__name__,
)


def make_tasks() -> Tasks:
    rng = np.random.default_rng(0)
    runs = [(rng.uniform(size=(m, 2)), rng.normal(size=m)) for m in LENGTHS]
    return Tasks.from_runs(runs, space=SPACE)


TASKS = make_tasks()
UNITS = fit_standardiser(TASKS.x, TASKS.y, TASKS.mask)


def spoilt(data: MetaData, first: int, count: int) -> MetaData:
    """The data with NaN in place of the inputs and values of the block."""
    rows = slice(first, first + count)
    return eqx.tree_at(
        lambda d: (d.x, d.y), data, (data.x.at[rows].set(jnp.nan), data.y.at[rows].set(jnp.nan))
    )


@eqx.filter_jit
def loss_and_gradient(objective, model, key):
    def loss(model):
        return objective.loss(model, objective.draw(key=key))[0]

    return eqx.filter_value_and_grad(loss)(model)


def test_held_out_tests_cover_every_gradient_method():
    ours = {c for c in known_methods().values() if issubclass(c, AbstractGradientMethod)}
    assert ours == {type(method) for method in METHODS}


@each_method
def test_objective_without_a_block_is_the_objective_of_the_other_tasks(method):
    """Loss and gradient, with NaN in the block, equal those of a data set without it: nothing is
    read from it, and n and the mean lengths in the formulas count the others only."""
    model = method.initial(2, key=jr.key(1))
    for first, count in BLOCKS:
        others = np.r_[0:first, first + count : len(LENGTHS)]
        # The same padded number of tasks, so that one compiled function serves all blocks.
        alone = TASKS.subset(np.resize(others, len(LENGTHS)))
        few = eqx.tree_at(lambda d: d.num_tasks, meta_data(alone, UNITS), jnp.asarray(len(others)))
        expected = method.objective(TASKS.subset(others), few)
        held_out = HeldOut(jnp.asarray(first), jnp.asarray(count))
        data = spoilt(meta_data(TASKS, UNITS), first, count)
        found = method.objective(TASKS, data).without(held_out)
        for seed in range(3):
            key = jr.key(seed)
            ours, theirs = (loss_and_gradient(o, model, key) for o in (found, expected))
            for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@each_method
def test_objective_that_holds_nothing_out_reads_every_task(method):
    """The control: NaN in a block that is not held out reaches the loss."""
    model = method.initial(2, key=jr.key(1))
    objective = method.objective(TASKS, spoilt(meta_data(TASKS, UNITS), 2, 3))
    losses = [float(loss_and_gradient(objective, model, jr.key(seed))[0]) for seed in range(12)]
    assert np.isnan(losses).any()


@pytest.mark.slow
@each_method
def test_start_trainings_learn_nothing_from_held_out_tasks(method):
    """Two sets of tasks that differ in the values of the last two runs."""
    signs = np.resize([1.0, -1.0], TASKS.mask.sum())
    signs[0] = 0.0
    # Mean and variance of signs are exact in any order: the standardiser, which sees all runs, is
    # the same for both sets.
    y = np.zeros(TASKS.y.shape)
    y[TASKS.mask] = signs
    changed = y.copy()
    changed[5:][TASKS.mask[5:]] = np.sort(y[5:][TASKS.mask[5:]])
    held_out = HeldOut(jnp.array([5, 0]), jnp.array([2, 0]))
    learned = []
    for values in (y, changed):
        these = start_trainings(
            [method] * 2,
            Tasks(SPACE, TASKS.x, values, TASKS.mask),
            held_out=held_out,
            keys=jr.split(jr.key(0)),
        )
        these.advance(20, np.ones(2, bool))
        learned.append(jax.tree.leaves(eqx.filter(these.models, eqx.is_inexact_array)))
    largest = np.zeros(2)
    for one, two in zip(*learned, strict=True):
        for i in (0, 1):
            largest[i] = max(largest[i], float(jnp.abs(one[i] - two[i]).max()))
    assert largest[0] == 0.0
    # The control, of which nothing is held out.
    assert largest[1] > 1e-4
