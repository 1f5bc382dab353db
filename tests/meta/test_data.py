"""Meta-training data: standardised, padded, and batches of distinct tasks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from metaprior.data import Real, Space, Tasks, fit_standardiser
from metaprior.meta import HeldOut, MetaData, meta_data, nothing_held_out

SPACE = Space(a=Real(0, 1), b=Real(0, 1))


def make_tasks(*lengths: int) -> Tasks:
    rng = np.random.default_rng(0)
    runs = [(rng.uniform(size=(m, 2)), 5 + 2 * rng.normal(size=m)) for m in lengths]
    return Tasks.from_runs(runs, space=SPACE)


def make_data(tasks: Tasks) -> MetaData:
    return meta_data(tasks, fit_standardiser(tasks.x, tasks.y, tasks.mask))


def test_meta_data_observations_are_standardised_and_padding_is_zero():
    tasks = make_tasks(3, 1, 6)
    data = make_data(tasks)
    mask = np.asarray(data.mask)
    scaled = StandardScaler().fit_transform(
        np.column_stack([tasks.x[tasks.mask], tasks.y[tasks.mask]])
    )
    np.testing.assert_allclose(np.asarray(data.x)[mask], scaled[:, :2], rtol=1e-10)
    np.testing.assert_allclose(np.asarray(data.y)[mask], scaled[:, 2], rtol=1e-10)
    assert mask.sum(axis=1).tolist() == [3, 1, 6, 0]
    assert not np.asarray(data.x)[~mask].any() and not np.asarray(data.y)[~mask].any()


@pytest.mark.parametrize(("num_tasks", "rows"), [(2, 4), (4, 4), (5, 8), (9, 12), (33, 36)])
def test_meta_data_number_of_tasks_is_padded(num_tasks, rows):
    data = make_data(make_tasks(*[2] * num_tasks))
    assert data.x.shape == (rows, 4, 2) and data.y.shape == data.mask.shape == (rows, 4)
    assert int(data.num_tasks) == num_tasks


def test_meta_data_batches_are_whole_tasks_and_never_padding():
    data = make_data(make_tasks(3, 1, 6, 2, 5))
    draws = jax.random.uniform(jax.random.key(0), (200, 3))
    batches = jax.jit(jax.vmap(lambda d: data.draw(d, nothing_held_out())))(draws)
    rows = {y.tobytes(): i for i, y in enumerate(np.asarray(data.y)[:5])}
    seen = set()
    for x, y, mask in zip(*(np.asarray(a) for a in jax.tree.leaves(batches)), strict=True):
        chosen = [rows[y[j].tobytes()] for j in range(3)]
        assert len(set(chosen)) == 3
        np.testing.assert_array_equal(x, np.asarray(data.x)[chosen])
        np.testing.assert_array_equal(mask, np.asarray(data.mask)[chosen])
        seen |= set(chosen)
    assert seen == set(range(5))


def test_meta_data_batch_of_all_tasks_has_each_of_them_once():
    data = make_data(make_tasks(3, 1, 6))
    draw = eqx.filter_jit(data.draw)
    for seed in range(20):
        batch = draw(jax.random.uniform(jax.random.key(seed), (3,)), nothing_held_out())
        got = np.sort(np.asarray(batch.y), axis=0)
        np.testing.assert_array_equal(got, np.sort(np.asarray(data.y)[:3], axis=0))
        assert jnp.sum(batch.mask) == 10


def test_meta_data_counts_and_measures_the_tasks_that_are_not_held_out():
    data = make_data(make_tasks(3, 1, 6, 2))
    held_out = HeldOut(jnp.asarray(1), jnp.asarray(2))
    assert int(data.num_seen(held_out)) == 2
    assert np.asarray(data.lengths_seen(held_out))[:4].tolist() == [3, 0, 0, 2]
    assert np.asarray(data.lengths_seen(held_out))[4:].sum() == 0
    assert np.asarray(data.lengths_seen(nothing_held_out()))[:4].tolist() == [3, 1, 6, 2]
