"""Policies: what they suggest is valid, random where it says so, and the maximum elsewhere."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy.stats

from metaprior.bo import InitialDesign, RandomSearch, SurrogatePolicy, UpperConfidenceBound
from metaprior.data import Categorical, Integer, Real, Space, empty_run, run_of
from metaprior.methods import VanillaGP

SPACE = Space(x=Real(0.0, 1.0))
SURROGATE = VanillaGP(lengthscale=0.5).from_scratch(1)
POLICY = SurrogatePolicy(surrogate=SURROGATE, acquisition=UpperConfidenceBound(3.0), space=SPACE)
RUN = run_of(np.array([[0.1], [0.4], [0.9]]), np.array([0.0, 1.0, -1.0]))
GRID = jnp.linspace(0.0, 1.0, 20_001)[:, None]


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
        run = run.append(x, jnp.asarray(0.0))
    quarters = {int(4 * x) for x in points[:4]}
    assert quarters == {0, 1, 2, 3}
    assert points[4:] == [0.123, 0.123]
