"""The search finds what the compiled one finds, on posteriors of learned priors."""

import equinox as eqx
import jax
import numpy as np
import pytest

import metaprior as mp
from metaprior.bo import Search, UpperConfidenceBound, free_moves, maximum
from metaprior.data import run_of
from metaprior.lab.policies import CompiledConfidenceBound, SurrogatePolicy
from metaprior.methods import FixedGP

SPACE = mp.Space(**{f"x{i}": mp.Real(0.0, 1.0) for i in range(4)})
NUM_POSTERIORS, NUM_OBSERVED = 10, 12


@eqx.filter_jit
def suggest(policy, run, key):
    return policy.suggest(run, key=key)


@pytest.fixture(scope="module")
def prior():
    rng = np.random.default_rng(0)
    runs = []
    for _ in range(4):
        x = rng.uniform(size=(20, 4))
        runs.append((x, np.sin(5.0 * x).sum(axis=1) + rng.normal()))
    return mp.learn(mp.Tasks.from_runs(runs, space=SPACE), method=FixedGP(lengthscale=0.3))


def found_by(search, believed, rng):
    moves = free_moves(SPACE)
    candidates = search.candidates(moves, believed.x, believed.y, rng)
    scored = UpperConfidenceBound().score(believed, candidates, rng)
    return scored.score, maximum(scored, moves, candidates, search)


def test_search_finds_no_less_than_the_compiled_search(prior):
    """Worst case over posteriors, in units of the spread of the values; a search that does not
    climb from its candidates is clearly worse."""
    policy = SurrogatePolicy(
        surrogate=prior.surrogate, acquisition=CompiledConfidenceBound(), space=SPACE
    )
    gains, without_climbing = [], []
    for seed in range(NUM_POSTERIORS):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(NUM_OBSERVED, 4))
        y = np.sin(5.0 * x + seed).sum(axis=1)
        compiled = np.asarray(suggest(policy, run_of(x, y, spare=1), jax.random.key(seed)))
        score, ours = found_by(Search(), prior.belief.condition(x, y), rng)
        _, still = found_by(Search(num_steps=0), prior.belief.condition(x, y), rng)
        values = score.values(np.stack([ours, compiled, still])) / np.std(y)
        gains.append(values[0] - values[1])
        without_climbing.append(values[2] - values[1])
    assert min(gains) > -1e-6, gains
    assert min(without_climbing) < -1e-3
