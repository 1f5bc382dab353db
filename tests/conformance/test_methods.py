"""What every method promises about learning from past runs."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import metaprior as mp
from metaprior.methods import AbstractGradientMethod, Moments, known_methods, meta_train_many
from tests.conformance.cases import (
    CASES,
    QUERIES,
    TRACES,
    arrays_of,
    assert_same,
    leaves,
    predict,
    unseen_run,
)


def with_values(tasks: mp.Tasks, y: np.ndarray, mask: np.ndarray | None = None) -> mp.Tasks:
    """The same inputs with other values, and possibly fewer of them; the shape stays."""
    mask = tasks.mask if mask is None else mask
    return mp.Tasks(tasks.space, tasks.x, np.where(mask, y, 0.0), mask)


def test_every_known_method_is_tried():
    assert set(known_methods()) <= set(CASES)


def test_method_learns_the_same_from_the_same_seed_bit_for_bit(trained, tasks):
    again = trained.method.meta_train(tasks, key=jr.key(0))
    for mine, theirs in zip(leaves(again), leaves(trained.surrogate), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_method_seed_matters_exactly_where_chance_is_involved(trained, tasks):
    other = trained.method.meta_train(tasks, key=jr.key(1))
    pairs = zip(leaves(other), leaves(trained.surrogate), strict=True)
    same = all(np.array_equal(mine, theirs) for mine, theirs in pairs)
    assert same == (not trained.case.seeded)


def test_method_padded_rows_of_the_tasks_never_matter(trained, tasks):
    junk = 1e3 * np.random.default_rng(0).normal(size=tasks.x.shape)
    x = np.where(tasks.mask[..., None], tasks.x, junk)
    y = np.where(tasks.mask, tasks.y, junk[..., 0])
    dirty = trained.method.meta_train(mp.Tasks(tasks.space, x, y, tasks.mask), key=jr.key(0))
    for run in (unseen_run(0), unseen_run(5)):
        assert_same(predict(dirty, run), predict(trained.surrogate, run), 1e-9)


def test_method_another_unit_of_the_values_changes_nothing_else(trained, tasks):
    scale, shift = 250.0, -3000.0
    scaled = trained.method.meta_train(with_values(tasks, scale * tasks.y + shift), key=jr.key(0))
    for num in (0, 7):
        if num == 0 and not trained.case.units_from_past:
            continue
        run = unseen_run(num)
        expected = predict(trained.surrogate, run)
        found = predict(scaled, eqx.tree_at(lambda r: r.y, run, scale * run.y + shift))
        in_old_units = Moments(
            (found.mean - shift) / scale,
            found.function_variance / scale**2,
            found.noise_variance / scale**2,
        )
        assert_same(in_old_units, expected, trained.case.affine_tolerance)


def test_method_tasks_of_one_point_each_can_be_learned_from(trained, tasks):
    first = np.zeros_like(tasks.mask)
    first[:, 0] = True
    surrogate = trained.method.meta_train(with_values(tasks, tasks.y, first), key=jr.key(0))
    for num in (0, 1, 7):
        found = predict(surrogate, unseen_run(num))
        assert np.isfinite(found.mean).all()
        assert np.isfinite(found.variance).all() and (found.variance > 0).all()


def test_method_constant_values_can_be_learned_from(trained, tasks):
    """And lead to the prediction that this is the value, once it has been seen."""
    surrogate = trained.method.meta_train(
        with_values(tasks, np.full_like(tasks.y, 7.0)), key=jr.key(0)
    )
    constant = eqx.tree_at(lambda r: r.y, unseen_run(7), jnp.full_like(unseen_run(7).y, 7.0))
    for run in (unseen_run(0), constant):
        found = predict(surrogate, run)
        assert np.isfinite(found.mean).all()
        assert np.isfinite(found.variance).all() and (found.variance > 0).all()
    np.testing.assert_allclose(found.mean, 7.0, atol=0.5)


def test_method_blank_surrogate_has_the_structure_of_a_trained_one(trained, tasks):
    blank = trained.method.blank_surrogate(tasks.space.num_columns)
    assert jax.tree.structure(blank) == jax.tree.structure(trained.surrogate)
    kinds = [[(leaf.dtype, leaf.ndim) for leaf in leaves(s)] for s in (blank, trained.surrogate)]
    assert kinds[0] == kinds[1]


def test_method_saved_prior_is_the_same_prior(trained, tmp_path):
    prior = trained.prior
    loaded = mp.load(prior.save(tmp_path / "prior"), space=prior.space)
    assert (loaded.method, loaded.direction) == (prior.method, prior.direction)
    run = unseen_run(7)
    expected = predict(prior.surrogate, run)
    compiled = len(TRACES)
    for mine, theirs in zip(predict(loaded.surrogate, run), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert len(TRACES) == compiled  # compiled code does not tell the two apart


def test_method_trainings_in_a_batch_are_those_one_by_one(trained, tasks):
    if not isinstance(trained.method, AbstractGradientMethod):
        pytest.skip("not trained by gradients")
    first = replace(trained.method, num_steps=40)
    # Numbers of its own, too, where a method has these.
    own = {"kappa": 1.0, "noise_log_spread": 0.5, "min_std": 0.1}
    other = {name: value for name, value in own.items() if hasattr(first, name)}
    methods = [first, replace(first, learning_rate=3e-3, weight_decay=0.1, **other)]
    keys = jr.split(jr.key(3), 2)
    together = meta_train_many(methods, tasks, keys=keys)
    arrays, static = eqx.partition(together, eqx.is_array)
    for i, method in enumerate(methods):
        mine = eqx.combine(jax.tree.map(lambda leaf, i=i: leaf[i], arrays), static)
        alone = method.meta_train(tasks, key=keys[i])
        for num in (0, 9):
            run = unseen_run(num)
            assert_same(predict(mine, run), predict(alone, run), 1e-6)


def test_method_surrogates_and_runs_can_be_batched(trained):
    """Traced only: what the compiler makes of a batch is its own affair."""
    run = unseen_run(3)
    pair = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (run, arrays_of(trained.surrogate)))
    static = eqx.filter(trained.surrogate, eqx.is_array, inverse=True)

    def one(run, arrays):
        posterior = eqx.combine(arrays, static).condition(run)
        return jax.vmap(posterior.moments)(jnp.asarray(QUERIES))

    found = jax.eval_shape(jax.vmap(one), *pair)
    assert [value.shape for value in found] == [(2, len(QUERIES))] * 3
