"""Predictions for held-out runs: one compiled program for the race, the exam and the replay.

A question is a surrogate, a run and how many of its first points have been seen; the answer is a
prediction at every point of the run. Questions are answered in blocks of one size, so the program
does not depend on how many surrogates or questions there are.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from metaprior.data import Run
from metaprior.gp import compile_quickly, float64
from metaprior.meta import chunk_here, entry
from metaprior.methods import AbstractSurrogate, FittedGP

BLOCK = 64


class Predictions(NamedTuple):
    """Mean and variance of an observation at each point, and log density and probability of the
    observed value."""

    mean: Float[np.ndarray, "questions points"]
    variance: Float[np.ndarray, "questions points"]
    log_density: Float[np.ndarray, "questions points"]
    cdf: Float[np.ndarray, "questions points"]


@float64
def predict(
    surrogates: AbstractSurrogate,
    which: Int[np.ndarray, " questions"],
    x: Float[np.ndarray, "questions points d"],
    y: Float[np.ndarray, "questions points"],
    sizes: Int[np.ndarray, " questions"],
) -> Predictions:
    """The answer to each question.

    - `surrogates`: stacked along a leading axis; question `i` is for number `which[i]`.
    - `x`, `y`: the run of each question; its first `sizes[i]` points have been seen.
    """
    blocks = []
    for first in range(0, len(which), BLOCK):
        rows = np.arange(first, min(first + BLOCK, len(which)))
        padded = np.resize(rows, BLOCK)
        asked = entry(surrogates, which[padded])
        runs = tuple(jnp.asarray(array[padded]) for array in (x, y, sizes))
        found = _predict_block(asked, runs, jnp.asarray(len(rows)), chunk_here(None) is None)
        blocks.append([np.asarray(each)[: len(rows)] for each in found])
    return Predictions(*(np.concatenate(each) for each in zip(*blocks, strict=True)))


@float64
def fitted_gp(num_columns: int, num_steps: int) -> AbstractSurrogate:
    """The baseline on held-out runs: a fitted GP, stacked alone.

    The number of steps of its fit is traced: another number needs no compilation of its own.
    """
    fitted = FittedGP().from_scratch(num_columns)
    return eqx.tree_at(lambda surrogate: surrogate.num_steps, fitted, jnp.asarray([num_steps]))


@compile_quickly
def _predict_block(surrogates, runs, count, side_by_side: bool):
    """Answers of a block, of which the first `count` matter."""
    arrays, static = eqx.partition(surrogates, eqx.is_array)

    def one(question) -> tuple[Float[Array, " points"], ...]:
        arrays, x, y, size = question
        posterior = eqx.combine(arrays, static).condition(Run(x, y, size))

        def at(point, value):
            moments = posterior.moments(point)
            density, cdf = posterior.log_density(point, value), posterior.cdf(point, value)
            return moments.mean, moments.variance, density, cdf

        return jax.vmap(at)(x, y)

    questions = arrays, *runs
    if side_by_side:
        return jax.vmap(one)(questions)

    def step(i, answers):
        found = one(jax.tree.map(lambda leaf: leaf[i], questions))
        return tuple(a.at[i].set(f) for a, f in zip(answers, found, strict=True))

    return jax.lax.fori_loop(0, count, step, (jnp.zeros(runs[1].shape),) * len(Predictions._fields))
