"""What every policy promises about the next query: random search, and the bound of each method."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from metaprior.bo import RandomSearch, Search, SurrogatePolicy, UpperConfidenceBound
from tests.conformance.cases import CAPACITY, SPACE, unseen_run

SEARCH = Search(num_global=32, num_local=16, num_starts=2, num_steps=4, neighbour_rounds=1)


def check_policy(policy):
    """Valid, decided by run and key alone, and compiled once while the run grows."""
    suggest = eqx.filter_jit(
        eqx.debug.assert_max_traces(
            lambda policy, run, key: policy.suggest(run, key=key), max_traces=1
        )
    )
    run, queries = unseen_run(0), []
    for t in range(CAPACITY - 1):
        x = suggest(policy, run, jr.key(t))
        valid = SPACE.encode(SPACE.decode(x[None]))[0]
        np.testing.assert_allclose(x, valid, atol=1e-12)
        np.testing.assert_array_equal(suggest(policy, run, jr.key(t)), x)
        queries.append(np.asarray(x))
        run = run.append(x, jnp.asarray(-float(t % 3)))
    assert len(np.unique(queries, axis=0)) > 1


def test_random_search_policy_suggests_valid_points():
    check_policy(RandomSearch(space=SPACE))


@pytest.mark.slow
def test_surrogate_policy_suggests_valid_points(trained):
    check_policy(
        SurrogatePolicy(
            surrogate=trained.surrogate,
            acquisition=UpperConfidenceBound(),
            space=SPACE,
            search=SEARCH,
        )
    )
