"""Choices: what is left to ask, what is nearest, and uniform draws, whatever the padding holds."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data import Choices, Run

# Five points of which the last two are padding: copies of the first two.
POINTS = np.array([[0.1, 0.9], [0.5, 0.5], [0.1, 0.3], [0.1, 0.9], [0.5, 0.5]])
CHOICES = Choices(jnp.asarray(POINTS), jnp.arange(5) < 3)


@jax.jit
def left(choices, run):
    return choices.unasked(run)


def run_of_rows(rows, length):
    return Run(jnp.asarray(POINTS[np.array(rows)]), jnp.zeros(len(rows)), jnp.asarray(length))


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.integers(0, 4), min_size=4, max_size=4), length=st.integers(0, 4))
def test_choices_are_unasked_until_queried(rows, length):
    unasked = left(CHOICES, run_of_rows(rows, length))
    asked = {tuple(POINTS[row]) for row in rows[:length]}
    assert unasked.tolist() == [i < 3 and tuple(POINTS[i]) not in asked for i in range(5)]


def test_choices_nearest_is_among_those_allowed():
    near_the_last = jnp.array([0.1, 0.35])
    assert CHOICES.nearest(near_the_last, CHOICES.valid) == 2
    assert CHOICES.nearest(near_the_last, jnp.array([True, True, False, False, False])) == 1
    for i in range(3):
        assert CHOICES.nearest(jnp.asarray(POINTS[i]), CHOICES.valid) == i


def test_choices_draws_are_uniform_over_ordered_pairs_of_valid_points():
    keys = jr.split(jr.key(0), 6000)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: CHOICES.draw(2, key=key)))(keys))
    rows = [[int(np.flatnonzero((POINTS == x).all(axis=1))[0]) for x in pair] for pair in drawn]
    pairs, counts = np.unique(rows, axis=0, return_counts=True)
    assert pairs.tolist() == [[i, j] for i in range(3) for j in range(3) if i != j]
    # At this level one seed in a thousand would fail by chance.
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
