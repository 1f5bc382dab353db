"""Trainings in pieces, trainings that stop, tasks that are held out, and runs that are too long."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Array, Float

from metaprior.data import Real, Space, Tasks, fit_standardiser
from metaprior.meta import (
    AbstractObjective,
    FPacohObjective,
    HeldOut,
    MeasurementSizes,
    Schedule,
    Trainings,
    gp_hyper_prior,
    measurement_sizes,
    meta_data,
    nothing_held_out,
    train_many,
)
from metaprior.meta import _train as training
from metaprior.meta._measured_tasks import measure_tasks
from metaprior.methods._neural_gp import neural_gp

SPACE = Space(a=Real(0, 1), b=Real(0, 1))


# Trainings of a small problem: a noisy quadratic around a point.


class Point(eqx.Module):
    where: Float[Array, " d"]


class Target(AbstractObjective):
    data: Float[Array, " d"]
    weight: Float[Array, ""]

    def draw(self, *, key):
        return jr.normal(key, (3,))

    def loss(self, model, batch):
        value = self.weight * jnp.sum((model.where - self.data - batch) ** 2)
        return value, {"value": value}


NUM = 4
MODELS = Point(jnp.arange(3.0 * NUM).reshape(NUM, 3))
OBJECTIVES = Target(
    jnp.array([1.0, -1.0, 0.5]),
    jnp.array([0.1, 0.5, 1.0, 2.0]),
    held_out=HeldOut(jnp.zeros(NUM, int), jnp.zeros(NUM, int)),
)
SCHEDULES = Schedule(jnp.array([0.1, 0.05, 0.02, 0.01]), jnp.full(NUM, 0.5), jnp.zeros(NUM))
KEYS = jr.split(jr.key(0), NUM)
ALL = np.ones(NUM, bool)


def trainings() -> Trainings:
    return Trainings(MODELS, OBJECTIVES, SCHEDULES, keys=KEYS)


def numbers(these: Trainings) -> np.ndarray:
    return np.asarray(these.models.where)


@pytest.mark.parametrize("pieces", [(130,), (30, 100), (1, 99, 7, 23)])
def test_trainings_in_pieces_equal_one_call(pieces):
    these = trainings()
    for steps in pieces:
        while steps > 0:
            these.advance(min(steps, 100), ALL)
            steps -= 100
    assert these.step == 130
    at_once = train_many(MODELS, OBJECTIVES, SCHEDULES, 130, keys=KEYS)
    np.testing.assert_allclose(numbers(these), at_once.model.where, rtol=1e-12)


def test_trainings_learning_rate_goes_on_falling_from_piece_to_piece():
    """The thousandth step and the next are in different pieces."""
    these = trainings()
    for _ in range(12):
        these.advance(100, ALL)
    at_once = train_many(MODELS, OBJECTIVES, SCHEDULES, 1200, keys=KEYS)
    np.testing.assert_allclose(numbers(these), at_once.model.where, rtol=1e-10)
    no_decay = SCHEDULES._replace(learning_rate_decay=jnp.ones(NUM))
    other = train_many(MODELS, OBJECTIVES, no_decay, 1200, keys=KEYS)
    assert np.abs(numbers(these) - other.model.where).min() > 1e-6


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, NUM), min_size=1, max_size=5))
def test_trainings_that_stopped_stay_bit_for_bit(stops):
    """Training `i` stops in the piece in which `i` first appears; `NUM` stands for none."""
    these, control = trainings(), trainings()
    going_on = ALL.copy()
    final: dict[int, np.ndarray] = {}
    for who in stops:
        if who < NUM and going_on[who]:
            going_on[who] = False
            final[who] = numbers(these)[who]
        these.advance(10, going_on)
        control.advance(10, ALL)
        found = numbers(these)
        for i in range(NUM):
            expected = numbers(control)[i] if going_on[i] else final[i]
            np.testing.assert_array_equal(found[i], expected)
            # The control: those that do not stop move.
            assert i not in final or not np.array_equal(numbers(control)[i], final[i])


def test_trainings_history_is_that_of_train_many_and_nan_where_a_training_stood_still():
    these = trainings()
    these.advance(40, ALL)
    these.advance(30, np.arange(NUM) != 1)
    expected = train_many(MODELS, OBJECTIVES, SCHEDULES, 70, keys=KEYS).history["value"]
    found = these.history["value"]
    assert set(these.history) == {"value"} and found.shape == (NUM, 70)
    assert np.isnan(found[1, 40:]).all()
    moved = ~np.isnan(found)
    assert moved.sum() == NUM * 70 - 30
    np.testing.assert_allclose(found[moved], expected[moved], rtol=1e-12)


def test_trainings_that_have_not_begun_have_no_history():
    assert trainings().history == {}


def test_trainings_compile_nothing_when_others_continue():
    these = trainings()
    these.advance(10, ALL)
    compiled = training._chunk_many._cached._cache_size()
    for steps, going_on in ((100, ALL), (1, ~ALL), (37, np.arange(NUM) < 2)):
        these.advance(steps, going_on)
    another = Trainings(MODELS, OBJECTIVES, SCHEDULES, keys=jr.split(jr.key(1), NUM))
    another.advance(3, ALL)
    assert training._chunk_many._cached._cache_size() == compiled


# Tasks that a training must not see.

LENGTHS = (3, 1, 6, 2, 5, 4, 6)


def make_tasks(*lengths: int) -> Tasks:
    rng = np.random.default_rng(0)
    runs = [(rng.uniform(size=(m, 2)), rng.normal(size=m)) for m in lengths]
    return Tasks.from_runs(runs, space=SPACE)


TASKS = make_tasks(*LENGTHS)
UNITS = fit_standardiser(TASKS.x, TASKS.y, TASKS.mask)


def objective(tasks: Tasks, held_out: HeldOut | None = None) -> FPacohObjective:
    rest: dict[str, Any] = {} if held_out is None else {"held_out": held_out}
    return FPacohObjective(
        meta_data(tasks, UNITS),
        gp_hyper_prior(0.5, 1.0),
        jnp.asarray(0.3),
        jnp.asarray(1e-3),
        measurement_sizes(8, 4, 1),
        3,
        **rest,
    )


def block(first: int, count: int) -> HeldOut:
    return HeldOut(jnp.asarray(first), jnp.asarray(count))


@eqx.filter_jit
def draw(objective, key):
    return objective.draw(key=key)


@eqx.filter_jit
def loss(objective, model, batch):
    return objective.loss(model, batch)


blocks = st.integers(0, 6).flatmap(lambda i: st.tuples(st.just(i), st.integers(0, min(4, 7 - i))))


@settings(deadline=None, max_examples=40)
@given(blocks, st.integers(0, 2**31 - 1))
def test_trainings_do_not_depend_on_held_out_tasks(where, seed):
    """Batches, fit and divergence, weight and all, are those of the tasks without the block."""
    first, count = where
    others = np.r_[0:first, first + count : 7]
    # The same padded number of tasks, so that one compiled function serves all blocks.
    alone = objective(TASKS.subset(np.resize(others, 7)))
    alone = eqx.tree_at(lambda o: o.data.num_tasks, alone, jnp.asarray(len(others)))
    with_block = objective(TASKS, block(first, count))
    key, model = jr.key(seed), neural_gp(2, 2, key=jr.key(1))
    ours, theirs = draw(with_block, key), draw(alone, key)
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(mine, other)
    (_, found), (_, expected) = loss(with_block, model, ours), loss(alone, model, theirs)
    for name in ("fit", "complexity"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)


def which_tasks(held_out: HeldOut, num: int, seed: int) -> np.ndarray:
    """Indices of the tasks of `num` batches."""
    data = meta_data(TASKS, UNITS)
    draws = jr.uniform(jr.key(seed), (num, 3))
    y = np.asarray(jax.jit(jax.vmap(lambda d: data.draw(d, held_out).y))(draws))
    rows = {values.tobytes(): i for i, values in enumerate(np.asarray(data.y)[:7])}
    return np.array([[rows[values.tobytes()] for values in batch] for batch in y])


@pytest.mark.parametrize(("first", "count"), [(0, 2), (2, 3), (5, 2), (3, 0)])
def test_trainings_draw_held_out_tasks_never_and_others_equally_often(first, count):
    drawn = which_tasks(block(first, count), 3000, first)
    counts = np.bincount(drawn.ravel(), minlength=7)
    others = np.r_[0:first, first + count : 7]
    assert counts[first : first + count].sum() == 0
    # Three of k distinct ones: the classical statistic, corrected for the lack of replacement.
    share = 3 / len(others)
    statistic = ((counts[others] - 3000 * share) ** 2).sum() / (3000 * share * (1 - share))
    statistic *= (len(others) - 1) / len(others)
    assert scipy.stats.chi2(len(others) - 1).sf(statistic) > 1e-3
    assert all(len(set(batch)) == 3 for batch in drawn[:200].tolist())


def test_trainings_held_out_test_can_fail():
    counts = np.bincount(which_tasks(block(0, 0), 300, 0).ravel(), minlength=7)
    assert (counts > 60).all()


def test_trainings_divergence_weighs_by_the_number_of_tasks_that_may_be_seen():
    """Of one batch: kappa (1 / sqrt n + 1 / (n T)) KL, with T the same in all tasks."""
    tasks = make_tasks(*[4] * 7)
    model, this = neural_gp(2, 2, key=jr.key(1)), objective(tasks)
    batch = draw(this, jr.key(0))
    found = {}
    for count in (0, 1, 3, 5):
        held = eqx.tree_at(lambda o: o.held_out, this, block(2, count))
        found[count] = float(loss(held, model, batch)[1]["complexity"])
    for count, complexity in found.items():
        n = 7 - count
        expected = (n**-0.5 + 1 / (4 * n)) / (7**-0.5 + 1 / (4 * 7))
        np.testing.assert_allclose(complexity / found[0], expected, rtol=1e-10)


# Runs that are longer than what takes part in a step.


class Drawn(NamedTuple):
    """Batches of both tasks of a set, the shorter run first; which rows of the runs they are."""

    rows: np.ndarray
    measured: Any


def drawn_points(lengths: tuple[int, int], longest: int, num: int) -> Drawn:
    tasks = make_tasks(*lengths)
    data = meta_data(tasks, fit_standardiser(tasks.x, tasks.y, tasks.mask))
    sizes = MeasurementSizes(5, 3, 5 - min(3, *lengths), longest)
    keys = jr.split(jr.key(0), num)
    measured = jax.jit(
        jax.vmap(lambda key: measure_tasks(data, sizes, 2, nothing_held_out(), key=key))
    )(keys)
    # The tasks of a batch are in random order: tell them apart by their values.
    known = {
        float(value): (task, row)
        for task in (0, 1)
        for row, value in enumerate(np.asarray(data.y)[task, : lengths[task]])
    }
    y, mask = np.asarray(measured.tasks.y), np.asarray(measured.tasks.mask)
    rows = np.full((num, 2, y.shape[2]), -1)
    for i in range(num):
        for batch in (0, 1):
            which = [known[float(v)] for v in y[i, batch][mask[i, batch]]]
            (task,) = {task for task, _ in which}
            rows[i, task, : len(which)] = [row for _, row in which]
    return Drawn(rows, measured)


def uniformity(rows: np.ndarray, length: int) -> float:
    """How likely a uniform choice without replacement would be further from equal shares."""
    num, chosen = rows.shape
    counts = np.bincount(rows.ravel(), minlength=length)
    share = chosen / length
    statistic = ((counts - num * share) ** 2).sum() / (num * share * (1 - share))
    return float(scipy.stats.chi2(length - 1).sf(statistic * (length - 1) / length))


def test_measure_tasks_draws_a_uniform_part_of_a_long_run():
    rows, measured = drawn_points((3, 11), 6, 1500)
    assert measured.tasks.x.shape == (1500, 2, 6, 2)
    short, long = rows[:, 0], rows[:, 1]
    # All of the short run, whole; of the long one, six different points.
    assert (np.sort(short[:, :3]) == np.arange(3)).all() and (short[:, 3:] == -1).all()
    assert all(len(set(each)) == 6 for each in long.tolist()) and long.min() >= 0
    assert uniformity(long, 11) > 1e-3
    # The control: always the first six are not a uniform part.
    assert uniformity(np.tile(np.arange(6), (1500, 1)), 11) < 1e-12


def test_measure_tasks_of_a_long_run_uses_its_points_and_the_domain():
    _, measured = drawn_points((3, 11), 6, 50)
    points, rows = np.asarray(measured.points), np.asarray(measured.rows)
    assert points.shape == (50, 2, 6 + 2, 2) and rows.shape == (50, 2, 5)
    mask = np.asarray(measured.tasks.mask)
    for i in range(50):
        for task in (0, 1):
            chosen = rows[i, task]
            assert len(set(chosen.tolist())) == 5 and chosen.max() < points.shape[2]
            from_task = chosen[chosen < 6]
            assert len(from_task) == 3 and mask[i, task][from_task].all()


def test_measure_tasks_leaves_short_runs_whole():
    ours, theirs = (drawn_points((3, 11), longest, 20).measured for longest in (12, 128))
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_measure_tasks_of_a_long_run_has_a_gradient():
    tasks = make_tasks(3, 11, 11)
    this = FPacohObjective(
        meta_data(tasks, fit_standardiser(tasks.x, tasks.y, tasks.mask)),
        gp_hyper_prior(0.5, 1.0),
        jnp.asarray(0.3),
        jnp.asarray(1e-3),
        MeasurementSizes(5, 3, 2, 6),
        2,
    )
    batch = draw(this, jr.key(0))

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        return this.loss(model, batch)[0]

    found = jax.tree.leaves(gradient(neural_gp(2, 2, key=jr.key(1))))
    assert all(np.isfinite(leaf).all() for leaf in found)
    assert sum(np.abs(leaf).max() > 1e-6 for leaf in found) >= len(found) - 1
