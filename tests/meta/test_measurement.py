"""Measurement sets and task batches: what is drawn, and how evenly."""

from itertools import combinations
from math import comb

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data import (
    Categorical,
    Integer,
    Real,
    Space,
    Tasks,
    blank_standardiser,
    fit_standardiser,
)
from metaprior.meta import (
    Domain,
    FPacohObjective,
    choose_measurements,
    choose_tasks,
    gp_hyper_prior,
    measurement_sizes,
    meta_data,
)

# A true sampler fails a test of this level once in ten thousand seeds; the seeds are fixed.
LEVEL = 1e-4
CAPACITY = 16


@pytest.mark.parametrize(
    ("total", "from_task", "shortest", "expected"),
    [(20, 10, 20, (20, 10, 10)), (20, 10, 3, (20, 10, 17)), (20, 10, 1, (20, 10, 19))]
    + [(5, 10, 20, (5, 5, 0)), (20, 0, 5, (20, 0, 20))],
)
def test_measurement_sizes_by_hand(total, from_task, shortest, expected):
    sizes = measurement_sizes(total, from_task, shortest)
    assert (sizes.total, sizes.from_task, sizes.from_domain) == expected


SIZES = measurement_sizes(20, 10, 1)
choose = jax.jit(choose_measurements, static_argnums=2)


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**31 - 1), length=st.integers(1, CAPACITY), shuffled=st.booleans())
def test_choose_measurements_gives_distinct_rows_of_task_then_domain(seed, length, shuffled):
    rng = np.random.default_rng(seed)
    mask = np.arange(CAPACITY) < length
    if shuffled:
        rng.shuffle(mask)
    rows = np.asarray(choose(jnp.asarray(mask), jnp.asarray(rng.uniform(size=CAPACITY)), SIZES))
    own, domain = rows[rows < CAPACITY], rows[rows >= CAPACITY]
    assert len(own) == min(10, length) and len(rows) == 20
    assert len(set(own.tolist())) == len(own) and mask[own].all()
    assert domain.tolist() == list(range(CAPACITY, CAPACITY + 20 - len(own)))


def test_choose_measurements_makes_every_subset_equally_likely():
    """3 of 6 rows: chi-square over the 20 subsets."""
    sizes = measurement_sizes(5, 3, 6)
    mask = jnp.arange(8) < 6
    scores = jax.random.uniform(jax.random.key(0), (20_000, 8))
    rows = jax.jit(jax.vmap(lambda s: choose_measurements(mask, s, sizes)))(scores)
    assert evenness(np.asarray(rows)[:, :3], 6) > LEVEL


def evenness(chosen: np.ndarray, num: int) -> float:
    """p-value of the hypothesis that each subset of `range(num)` is as likely as any other."""
    size = chosen.shape[1]
    subsets = {subset: i for i, subset in enumerate(combinations(range(num), size))}
    counts = np.zeros(comb(num, size))
    for row in np.sort(chosen, axis=1):
        counts[subsets[tuple(row.tolist())]] += 1
    return float(scipy.stats.chisquare(counts).pvalue)


tasks_of = jax.jit(choose_tasks)
many_tasks_of = jax.jit(jax.vmap(choose_tasks, in_axes=(None, 0)))


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**31 - 1), spare=st.integers(0, 5) | st.integers(0, 10**9))
def test_choose_tasks_gives_distinct_tasks(seed, spare):
    batch, num_tasks = 4, 4 + spare
    draws = np.random.default_rng(seed).uniform(size=batch)
    chosen = np.asarray(tasks_of(jnp.asarray(num_tasks), jnp.asarray(draws)))
    assert len(set(chosen.tolist())) == batch
    assert chosen.min() >= 0 and chosen.max() < num_tasks


@pytest.mark.parametrize("draw", [0.0, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("num_tasks", [4, 5, 1000])
def test_choose_tasks_gives_distinct_tasks_for_equal_draws(draw, num_tasks):
    chosen = np.asarray(tasks_of(jnp.asarray(num_tasks), jnp.full(4, draw)))
    assert len(set(chosen.tolist())) == 4
    assert chosen.min() >= 0 and chosen.max() < num_tasks


@pytest.mark.parametrize("num_tasks", [4, 5, 7])
def test_choose_tasks_makes_every_set_equally_likely(num_tasks):
    """4 of `num_tasks`: chi-square over all subsets."""
    draws = jax.random.uniform(jax.random.key(num_tasks), (20_000, 4))
    chosen = np.asarray(many_tasks_of(jnp.asarray(num_tasks), draws))
    if num_tasks == 4:
        np.testing.assert_array_equal(np.sort(chosen, axis=1), np.tile(np.arange(4), (20_000, 1)))
    else:
        assert evenness(chosen, num_tasks) > LEVEL


def test_choose_tasks_test_can_fail():
    """The control: taken tasks are replaced by the next free one."""
    rng = np.random.default_rng(0)
    chosen = np.zeros((20_000, 4), int)
    for row in chosen:
        taken: list[int] = []
        for candidate in rng.integers(0, 7, 4):
            while candidate in taken:
                candidate = (candidate + 1) % 7
            taken.append(int(candidate))
        row[:] = taken
    assert evenness(chosen, 7) < LEVEL


def domain_points(space: Space, num: int) -> np.ndarray:
    domain = Domain(space, blank_standardiser(space.num_columns))
    cube = jax.random.uniform(jax.random.key(1), (num, space.num_columns))
    return np.asarray(eqx.filter_jit(domain.points)(cube))


def test_domain_points_of_a_mixed_space_are_valid_and_uniform():
    """Reals by Kolmogorov-Smirnov, in the unit of their scale; levels by chi-square."""
    space = Space(
        lr=Real(1e-4, 1.0, log=True), depth=Integer(2, 6), act=Categorical(["relu", "tanh", "elu"])
    )
    points = space.decode(domain_points(space, 5_000))
    log_rates = np.log10([point["lr"] for point in points])
    assert scipy.stats.kstest(log_rates, scipy.stats.uniform(-4, 4).cdf).pvalue > LEVEL
    # The control: uniform in the rate itself it is not.
    rates = 10.0**log_rates
    assert scipy.stats.kstest(rates, scipy.stats.uniform(1e-4, 1.0).cdf).pvalue < LEVEL
    for name, levels in (("depth", [2, 3, 4, 5, 6]), ("act", ["relu", "tanh", "elu"])):
        values = [point[name] for point in points]
        counts = [values.count(level) for level in levels]
        assert sum(counts) == len(points)
        assert scipy.stats.chisquare(counts).pvalue > LEVEL


def test_domain_points_are_encoded_like_observations():
    space = Space(depth=Integer(2, 6), act=Categorical(["relu", "tanh"]))
    points = domain_points(space, 200)
    np.testing.assert_allclose(points, space.encode(space.decode(points)), atol=1e-15)


def test_fpacoh_objective_draws_measurement_sets_as_in_the_paper():
    """Runs of 1, 3 and 12 points: `min(10, T)` distinct inputs of the task, the rest uniform on
    the whole domain (Kolmogorov-Smirnov), in standardised units, and new in every step."""
    rng = np.random.default_rng(0)
    space = Space(a=Real(0, 1), b=Real(-3, 5))
    # Inputs in one corner, so that the domain differs from the hull of the data.
    runs = [(rng.uniform(0, 0.2, (m, 2)), rng.normal(size=m)) for m in (1, 3, 12)]
    tasks = Tasks.from_runs(runs, space=space)
    standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask)
    objective = FPacohObjective(
        meta_data(tasks, standardiser),
        gp_hyper_prior(1.0, 1.0),
        jnp.asarray(1.0),
        jnp.asarray(1e-4),
        measurement_sizes(20, 10, 1),
        3,
    )
    keys = jax.random.split(jax.random.key(0), 100)
    batches = jax.jit(jax.vmap(lambda key: objective.draw(key=key)))(keys)
    points, rows = np.asarray(batches.measured.points), np.asarray(batches.measured.rows)
    mask = np.asarray(batches.measured.tasks.mask)
    uniform = []
    for step, task in np.ndindex(rows.shape[:2]):
        length = mask[step, task].sum()
        chosen = rows[step, task]
        own = chosen[chosen < tasks.capacity]
        assert len(set(own.tolist())) == len(own) == min(10, length) and own.max() < length
        assert len(set(chosen.tolist())) == 20
        uniform.append(points[step, task][chosen[len(own) :]])
    scale, shift = np.asarray(standardiser.x_std), np.asarray(standardiser.x_mean)
    cube = np.concatenate(uniform) * scale + shift
    assert len(np.unique(cube[:, 0])) == len(cube) == 100 * (19 + 17 + 10)
    for column in cube.T:
        assert scipy.stats.kstest(column, "uniform").pvalue > LEVEL


def test_domain_points_of_a_conditional_space_exist_and_are_uniform_where_they_do():
    space = Space(
        kind=Categorical(["tree", "linear"]),
        depth=Integer(1, 4, when={"kind": ["tree"]}),
        alpha=Real(0.0, 1.0, when={"kind": ["linear"]}),
    )
    domain = Domain(space, blank_standardiser(space.num_inputs))
    cube = jax.random.uniform(jax.random.key(1), (4_000, space.num_columns))
    inputs = np.asarray(eqx.filter_jit(domain.points)(cube))
    points = space.decode(inputs[:, : space.num_columns])
    # What models see of a point is what they see of the same point in a run.
    np.testing.assert_allclose(inputs, space.embed(space.encode(points)), atol=1e-12)
    depths = [point["depth"] for point in points if "depth" in point]
    alphas = [point["alpha"] for point in points if "alpha" in point]
    assert len(depths) + len(alphas) == len(points)
    assert scipy.stats.chisquare([depths.count(k) for k in (1, 2, 3, 4)]).pvalue > LEVEL
    assert scipy.stats.kstest(alphas, "uniform").pvalue > LEVEL
