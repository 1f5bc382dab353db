"""The loop: every query is evaluated once, observed with noise, and seen by the next one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from metaprior.data import Choices, Real, Space
from metaprior.lab.policies import (
    AbstractPolicy,
    CompiledConfidenceBound,
    RandomSearch,
    SurrogatePolicy,
    optimise,
)
from metaprior.methods import AbstractSurrogate, Moments
from tests.moments_only import MomentsOnly

SPACE = Space(x=Real(0.0, 1.0))


def problem(x):
    return -((x[0] - 0.37) ** 2)


class Halving(AbstractPolicy):
    """Queries half of the sum of all observations so far, and 0.8 first: easy to follow."""

    space: Space = SPACE

    def suggest(self, run, *, key):
        total = jnp.sum(jnp.where(run.mask, run.y, 0.0))
        return jnp.where(run.length == 0, 0.8, 0.5 * total)[None]


def test_optimise_shows_each_query_all_observations_before_it():
    """y = x: queries 0.8, 0.8 / 2, (0.8 + 0.4) / 2, (0.8 + 0.4 + 0.6) / 2."""
    trace = jax.jit(lambda key: optimise(lambda x: x[0], Halving(), 4, key=key))(jr.key(0))
    np.testing.assert_allclose(trace.run.x[:, 0], [0.8, 0.4, 0.6, 0.9], rtol=1e-12)
    np.testing.assert_array_equal(trace.run.y, trace.values)
    assert trace.run.length == 4
    assert np.isnan(trace.values_at_predicted_best).all()


def test_optimise_adds_noise_to_what_is_observed_only():
    policy = RandomSearch(space=SPACE)
    trace = jax.jit(lambda key: optimise(problem, policy, 500, key=key, noise_std=0.3))(jr.key(0))
    np.testing.assert_allclose(trace.values, jax.vmap(problem)(trace.run.x), rtol=1e-12)
    noise = np.asarray(trace.run.y - trace.values)
    # Four standard errors of a standard deviation from 500 draws: 4 * 0.3 / sqrt(1000).
    assert abs(noise.std() - 0.3) < 0.04
    assert abs(noise.mean()) < 4 * 0.3 / np.sqrt(500)
    other = jax.jit(lambda key: optimise(problem, policy, 500, key=key))(jr.key(1))
    assert not np.array_equal(other.run.x, trace.run.x)


class Knowing(AbstractSurrogate):
    """Expects the function itself, and is unsure in proportion to x."""

    def condition(self, run):
        return KnowingPosterior()


class KnowingPosterior(MomentsOnly):
    def moments(self, x):
        return Moments(problem(x), (0.1 * x[0]) ** 2, jnp.asarray(0.0))


def test_optimise_infers_by_the_mean_and_queries_by_the_bound():
    """The mean is largest at 0.37; the bound -(x - 0.37)^2 + 2 * 0.1 x at 0.37 + 0.1."""
    policy = SurrogatePolicy(
        surrogate=Knowing(), acquisition=CompiledConfidenceBound(2.0), space=SPACE
    )
    run = jax.jit(lambda key: optimise(problem, policy, 3, key=key, infer=True))
    trace = run(jr.key(0))
    np.testing.assert_allclose(trace.values_at_predicted_best, 0.0, atol=1e-10)
    np.testing.assert_allclose(trace.run.x[:, 0], 0.47, atol=1e-5)
    np.testing.assert_allclose(trace.values, -0.01, atol=1e-5)
    again = run(jr.key(0))
    np.testing.assert_array_equal(trace.run.x, again.run.x)


class Finite(eqx.Module):
    """The same problem where six points may be asked; two more rows are padding."""

    points: Array
    num: Array

    @property
    def choices(self):
        return Choices(self.points, jnp.arange(8) < self.num)

    def __call__(self, x):
        return problem(x)


def test_optimise_asks_each_choice_once():
    points = jnp.array([0.0, 0.2, 0.3, 0.5, 0.8, 1.0, 0.0, 0.2])[:, None]
    finite = Finite(points, jnp.asarray(6))
    policy = SurrogatePolicy(
        surrogate=Knowing(), acquisition=CompiledConfidenceBound(2.0), space=SPACE
    )
    trace = jax.jit(lambda key: optimise(finite, policy, 6, key=key, infer=True))(jr.key(0))
    # From the largest bound -(x - 0.37)^2 + 0.2 x down; the mean is largest at 0.3 throughout.
    bound = [-((x - 0.37) ** 2) + 0.2 * x for x in (0.0, 0.2, 0.3, 0.5, 0.8, 1.0)]
    order = np.argsort(bound)[::-1]
    np.testing.assert_array_equal(trace.run.x, np.asarray(points)[order])
    np.testing.assert_allclose(trace.values_at_predicted_best, -(0.07**2), rtol=1e-12)
    random = jax.jit(lambda key: optimise(finite, RandomSearch(space=SPACE), 6, key=key))
    orders = [random(jr.key(seed)).run.x[:, 0].tolist() for seed in (0, 1)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == [0.0, 0.2, 0.3, 0.5, 0.8, 1.0]
