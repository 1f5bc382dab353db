"""Batches in chunks, batches of trainings on data of their own, and trainings that diverge."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metaprior as mp
from metaprior.data import fit_standardiser
from metaprior.meta import _train
from metaprior.meta._batch import entry, map_chunks, stack
from metaprior.meta._data import MetaData, nothing_held_out
from metaprior.meta._measurement import Domain
from metaprior.methods import GPSurrogate, LearnedGP, meta_train_each
from metaprior.methods._gradient import _repeated

SPACE = mp.Space(x=mp.Real(-1.0, 1.0), z=mp.Real(0.0, 10.0))


def history(seed: int, num_tasks: int = 5, length: int = 6) -> mp.Tasks:
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(num_tasks):
        x = rng.uniform([-1.0, 0.0], [1.0, 10.0], (length, 2))
        runs.append((x, 3.0 * seed + np.sin(2 * x[:, 0] + rng.normal()) + 0.1 * x[:, 1]))
    return mp.Tasks.from_runs(runs, space=SPACE)


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))]


def assert_same(found, expected):
    for mine, theirs in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-10)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(st.integers(1, 9), st.one_of(st.none(), st.integers(1, 12)))
def test_map_chunks_changes_nothing(count, chunk):
    values = {"a": jnp.arange(2.0 * count).reshape(count, 2), "b": jnp.arange(count)}
    found = map_chunks(lambda one: one["a"] * 2.0 + one["b"], values, chunk)
    expected = np.arange(2.0 * count).reshape(count, 2) * 2 + np.arange(count)[:, None]
    np.testing.assert_array_equal(found, expected)


def test_map_chunks_works_on_one_chunk_at_a_time():
    widths = []

    def one(x):
        widths.append(jnp.shape(x))
        return jax.lax.map(lambda y: y, jnp.stack([x, x]))

    jaxpr = str(jax.make_jaxpr(lambda x: map_chunks(one, x, 4))(jnp.zeros(10)))
    # Ten entries in three chunks of four, of which two are fillers.
    assert "f64[3,4]" in jaxpr and widths == [()]


def test_stack_refuses_trees_of_different_structures():
    with pytest.raises(ValueError, match="Cannot stack 2 trees of 2 structures"):
        stack([{"a": jnp.zeros(2)}, {"b": jnp.zeros(2)}])
    assert entry(stack([{"a": jnp.zeros(2)}, {"a": jnp.ones(2)}]), 1)["a"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("chunk", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_meta_train_each_equals_training_one_by_one(chunk, monkeypatch):
    """With a chunk of 2, side by side as on an accelerator; numbers of steps differ."""
    monkeypatch.setattr(_train, "chunk_here", lambda _: chunk)
    base = LearnedGP(num_steps=30)
    methods = [base, replace(base, num_steps=110), replace(base, learning_rate=0.1)]
    histories = [history(seed) for seed in (0, 1, 2)]
    keys = jr.split(jr.key(0), 3)
    together = meta_train_each(methods, histories, keys=keys)
    for i in range(3):
        assert_same(entry(together, i), methods[i].meta_train(histories[i], key=keys[i]))


def test_meta_train_each_room_for_more_tasks_changes_no_result_and_compiles_once():
    method = LearnedGP(num_steps=20, batch_size=4)
    full = history(0, num_tasks=5)
    keys = jr.split(jr.key(1), 1)
    found = meta_train_each([method], [full], keys=keys, room=5)
    assert_same(entry(found, 0), method.meta_train(full, key=keys[0]))
    compiled = _train._chunk_many._cached._cache_size()
    for num in (1, 2, 3, 4):
        trained = meta_train_each([method], [full.subset(range(num))], keys=keys, room=5)
        assert all(np.isfinite(leaf).all() for leaf in leaves(trained))
        assert isinstance(trained, GPSurrogate)
        only = trained.standardiser.y_mean[0]
        np.testing.assert_allclose(only, full.y[:num][full.mask[:num]].mean(), rtol=1e-12)
    assert _train._chunk_many._cached._cache_size() == compiled
    with pytest.raises(ValueError, match="There is room for 1 to 5 tasks, and a set has 6"):
        _repeated(history(0, num_tasks=6), 5)


def test_meta_train_each_batch_larger_than_the_tasks_has_each_of_them_equally_often():
    tasks = history(0, num_tasks=3, length=2)
    standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask)
    x = jnp.arange(5.0)[:, None, None] * jnp.ones((5, 4, 2))
    data = MetaData(
        x, x[..., 0], jnp.ones((5, 4), bool), jnp.asarray(3), Domain(SPACE, standardiser)
    )
    draw = jax.jit(lambda draws: data.draw(draws, nothing_held_out()).x[:, 0, 0])
    counts = []
    for seed in range(200):
        drawn = np.asarray(draw(jr.uniform(jr.key(seed), (4,)))).astype(int)
        counts.append(np.bincount(drawn, minlength=3))
    counts = np.array(counts)
    assert counts.shape == (200, 3) and counts.max() <= 2
    # Slots 0 to 5 stand for tasks 0, 1, 2, 0, 1, 2: every task has its share, 4/3 of a batch.
    standard_error = counts.std(axis=0) / np.sqrt(200)
    assert (np.abs(counts.mean(axis=0) - 4 / 3) < 4 * standard_error).all()


def test_meta_train_each_isolates_a_diverging_training():
    sound = LearnedGP(num_steps=30)
    methods = [sound, replace(sound, learning_rate=1e200), sound]
    histories = [history(seed) for seed in (0, 1, 2)]
    keys = jr.split(jr.key(3), 3)
    with pytest.raises(FloatingPointError, match=r"\(training 1 of the batch, counted from 0\)"):
        meta_train_each(methods, histories, keys=keys)
    found = meta_train_each(methods, histories, keys=keys, may_diverge=True)
    for i in (0, 2):
        assert_same(entry(found, i), sound.meta_train(histories[i], key=keys[i]))
    assert not all(np.isfinite(leaf).all() for leaf in leaves(entry(found, 1)))


def test_train_many_terms_after_the_last_step_are_nan():
    seen = []
    sound = LearnedGP(num_steps=30)
    # Three, so that it is compiled once for this test and the one before.
    methods = [sound, replace(sound, num_steps=120), sound]
    histories = [history(seed) for seed in (0, 1, 2)]
    meta_train_each(methods, histories, keys=jr.split(jr.key(0), 3), on_progress=seen.append)
    assert [(each.step, each.num_steps) for each in seen] == [(100, 120), (120, 120)]
    first, last = (each.terms["fit"] for each in seen)
    assert np.isfinite(first[0, :30]).all() and np.isnan(first[0, 30:]).all()
    assert np.isfinite(first[1]).all() and np.isfinite(last[1]).all() and np.isnan(last[0]).all()
