"""Surrogates at several numbers of steps of one training."""

import equinox as eqx
import jax
import numpy as np

import metaprior as mp
from metaprior.methods import FPacohMap, meta_train_at, meta_train_each


def test_meta_train_at_equals_trainings_of_those_lengths(hill_space, hill_runs):
    tasks = [mp.Tasks.from_runs(runs, space=hill_space) for runs in (hill_runs, hill_runs[::-1])]
    methods = [FPacohMap(kappa=kappa) for kappa in (0.05, 0.5)]
    keys, checkpoints = jax.random.split(jax.random.key(0)), (2, 5)
    found = meta_train_at(methods, tasks, checkpoints, keys=keys)
    for surrogates, num_steps in zip(found, checkpoints, strict=True):
        each = [FPacohMap(kappa=method.kappa, num_steps=num_steps) for method in methods]
        alone = meta_train_each(each, tasks, keys=keys)
        leaves = (jax.tree.leaves(eqx.filter(s, eqx.is_array)) for s in (surrogates, alone))
        for mine, theirs in zip(*leaves, strict=True):
            np.testing.assert_array_equal(mine, theirs)
