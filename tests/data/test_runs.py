"""Runs: buffers that grow without changing shape."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data import Run, empty_run, run_of


def observations(length: int, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(length)
    return rng.uniform(size=(length, d)), rng.normal(size=length)


@pytest.mark.parametrize(
    ("length", "spare", "capacity"),
    [(0, 0, 16), (1, 0, 16), (16, 0, 16), (16, 1, 32), (17, 0, 32), (0, 33, 64), (100, 28, 128)],
)
def test_run_of_capacities_by_hand(length, spare, capacity):
    x, y = observations(length)
    run = run_of(x, y, spare)
    assert run.x.shape == (capacity, 2) and run.y.shape == (capacity,)
    assert int(run.length) == length
    assert np.asarray(run.mask).tolist() == [True] * length + [False] * (capacity - length)
    np.testing.assert_array_equal(run.x[:length], x)
    np.testing.assert_array_equal(run.y[:length], y)
    assert not np.asarray(run.x[length:]).any() and not np.asarray(run.y[length:]).any()


def test_run_is_in_double_precision():
    x, y = observations(3)
    run = run_of(x, y)
    assert run.x.dtype == run.y.dtype == jnp.float64


@settings(deadline=None, max_examples=30)
@given(
    values=st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(-1e9, 1e9)), min_size=1, max_size=16
    )
)
def test_run_append_one_by_one_equals_run_of(values):
    table = np.array(values)
    run = empty_run(16, 2)
    for row in table:
        run = append(run, jnp.asarray(row[:2]), jnp.asarray(row[2]))
    whole = run_of(table[:, :2], table[:, 2])
    for grown, given_ in zip(jax.tree.leaves(run), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(grown, given_)
    np.testing.assert_array_equal(run.mask, whole.mask)


append = eqx.filter_jit(Run.append)


def test_run_append_leaves_the_old_run_unchanged():
    before = empty_run(4, 1)
    after = before.append(jnp.asarray([0.5]), jnp.asarray(2.0))
    assert int(before.length) == 0 and not np.asarray(before.y).any()
    assert int(after.length) == 1 and float(after.y[0]) == 2.0 and float(after.x[0, 0]) == 0.5


def test_run_append_within_the_capacity_compiles_once():
    step = eqx.filter_jit(eqx.debug.assert_max_traces(Run.append, max_traces=1))
    run = run_of(*observations(3))
    for _ in range(5):
        run = step(run, jnp.asarray([0.1, 0.2]), jnp.asarray(1.0))
    assert int(run.length) == 8
    assert np.asarray(run.y[3:8]).tolist() == [1.0] * 5
