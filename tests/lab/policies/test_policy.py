"""Policies: what they suggest is valid, random where it says so, and the maximum elsewhere."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from metaprior.data import Categorical, Choices, Integer, Real, Space, empty_run, run_of
from metaprior.lab.policies import (
    AbstractPolicy,
    CompiledConfidenceBound,
    InitialDesign,
    RandomSearch,
    SurrogatePolicy,
    _maximise,
)
from metaprior.methods import FixedGP

SPACE = Space(x=Real(0.0, 1.0))
SURROGATE = FixedGP(lengthscale=0.5).from_scratch(1)
POLICY = SurrogatePolicy(surrogate=SURROGATE, acquisition=CompiledConfidenceBound(3.0), space=SPACE)
RUN = run_of(np.array([[0.1], [0.4], [0.9]]), np.array([0.0, 1.0, -1.0]))
GRID = jnp.linspace(0.0, 1.0, 20_001)[:, None]


@pytest.mark.slow
def test_surrogate_policy_maximises_its_acquisition_and_its_mean():
    @jax.jit
    def both(run, key):
        moments = jax.vmap(SURROGATE.condition(run).moments)(GRID)
        return POLICY.suggest(run, key=key), POLICY.predicted_best(run, key=key), moments

    query, predicted, moments = both(RUN, jr.key(0))
    bound = moments.mean + 3.0 * np.sqrt(moments.variance)
    np.testing.assert_allclose(query, GRID[np.argmax(bound)], atol=1e-4)
    np.testing.assert_allclose(predicted, GRID[np.argmax(moments.mean)], atol=1e-4)
    assert abs(query[0] - predicted[0]) > 0.01  # or the two could be mixed up


@pytest.mark.slow
def test_surrogate_policy_suggest_and_predict_at_once_change_neither():
    @jax.jit
    def apart(run, keys):
        return POLICY.suggest(run, key=keys[0]), POLICY.predicted_best(run, key=keys[1])

    @jax.jit
    def together(run, keys):
        return POLICY.suggest_and_predict(run, key_suggest=keys[0], key_predict=keys[1])

    keys = jr.split(jr.key(3))
    for one, other in zip(apart(RUN, keys), together(RUN, keys), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)


def test_random_search_is_uniform_over_valid_points():
    space = Space(x=Real(0.0, 1.0), k=Integer(1, 4), c=Categorical(["a", "b"]))
    policy = RandomSearch(space=space)
    run = empty_run(4, space.num_columns)
    draw = jax.jit(jax.vmap(lambda key: policy.suggest(run, key=key)))
    points = space.decode(draw(jr.split(jr.key(0), 2000)))
    assert scipy.stats.kstest([p["x"] for p in points], "uniform").pvalue > 1e-3
    for name, values in (("k", [1, 2, 3, 4]), ("c", ["a", "b"])):
        counts = [sum(p[name] == value for p in points) for value in values]
        assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_initial_design_comes_first_and_covers_the_space():
    class Last(RandomSearch):
        def suggest(self, run, *, key):
            return jnp.full(1, 0.123)

    policy = InitialDesign(policy=Last(space=SPACE), num_initial=4, space=SPACE)
    run = empty_run(8, 1)
    points = []
    for _ in range(6):
        x = policy.suggest(run, key=jr.key(0))
        points.append(float(x[0]))
        run = run.append(jnp.asarray(x), jnp.asarray(0.0))
    quarters = {int(4 * x) for x in points[:4]}
    assert quarters == {0, 1, 2, 3}
    assert points[4:] == [0.123, 0.123]


# Eight choices and four copies of the first of them as padding.
POINTS = np.array([0.05, 0.1, 0.3, 0.4, 0.45, 0.7, 0.9, 1.0, 0.05, 0.1, 0.3, 0.4])[:, None]
CHOICES = Choices(jnp.asarray(POINTS), jnp.arange(12) < 8)
# RUN has asked 0.1, 0.4 and 0.9.
UNASKED = [0.05, 0.3, 0.45, 0.7, 1.0]


def best_of(points, score):
    return points[int(np.argmax(score))]


@pytest.mark.parametrize("block", [4096, 5])
def test_surrogate_policy_chooses_the_best_row_left(block, monkeypatch):
    """Also when the choices are scored in three blocks, the last of them filled up."""
    monkeypatch.setattr(_maximise, "BLOCK", block)

    @jax.jit
    def both(run, key):
        moments = jax.vmap(SURROGATE.condition(run).moments)(jnp.asarray(POINTS))
        chosen = POLICY.choose(run, CHOICES, key=key)
        return chosen, POLICY.predicted_best(run, key=key, choices=CHOICES), moments

    chosen, predicted, moments = both(RUN, jr.key(0))
    bound = np.asarray(moments.mean + 3.0 * np.sqrt(moments.variance))
    left = np.isin(POINTS[:8, 0], UNASKED)
    assert chosen[0] == best_of(POINTS[:8, 0], np.where(left, bound[:8], -np.inf))
    # The answer may well be a point that was asked: here the best of the run.
    assert predicted[0] == best_of(POINTS[:8, 0], moments.mean[:8]) == 0.4


def test_random_search_is_uniform_over_the_rows_left():
    policy = RandomSearch(space=SPACE)
    draw = jax.jit(jax.vmap(lambda key: policy.choose(RUN, CHOICES, key=key)[0]))
    values, counts = np.unique(draw(jr.split(jr.key(0), 5000)), return_counts=True)
    assert values.tolist() == UNASKED
    # At this level one seed in a thousand would fail by chance.
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


class Stubborn(AbstractPolicy):
    """Suggests one point, and has never heard of choices."""

    space: Space = SPACE

    def suggest(self, run, *, key):
        return jnp.full(1, 0.38)


def test_policy_without_choices_takes_the_row_nearest_to_its_suggestion():
    """0.4 is nearest, and was asked before."""
    assert Stubborn().choose(RUN, CHOICES, key=jr.key(0)) == 0.45
    assert Stubborn().choose(empty_run(4, 1), CHOICES, key=jr.key(0)) == 0.4


def test_initial_design_starts_with_the_rows_nearest_to_it():
    policy = InitialDesign(policy=Stubborn(), num_initial=4, space=SPACE)
    run, chosen = empty_run(8, 1), []
    for _ in range(6):
        design = float(policy.suggest(run, key=jr.key(0))[0])
        x = policy.choose(run, CHOICES, key=jr.key(0))
        left = [p for p in POINTS[:8, 0] if p not in chosen]
        assert float(x[0]) == min(left, key=lambda p: abs(p - design))
        chosen.append(float(x[0]))
        run = run.append(x, jnp.asarray(0.0))
    assert len(set(chosen)) == 6
