"""The search finds what the compiled one finds, on posteriors of learned priors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import metaprior as mp
from metaprior.bo import (
    LogExpectedImprovement,
    Search,
    UpperConfidenceBound,
    free_moves,
    maximum,
)
from metaprior.data import run_of
from metaprior.lab.policies import (
    AbstractCompiledAcquisition,
    CompiledConfidenceBound,
    SurrogatePolicy,
)
from metaprior.methods import FixedGP, FPacohMap

SPACE = mp.Space(**{f"x{i}": mp.Real(0.0, 1.0) for i in range(4)})
NUM_POSTERIORS, NUM_OBSERVED = 10, 12

UNIT = mp.Real(0.0, 1.0)
SPACES = {
    "2 reals": mp.Space(a=UNIT, b=UNIT),
    "4 reals": SPACE,
    "7 reals": mp.Space(**{f"x{i}": UNIT for i in range(7)}),
    "mixed": mp.Space(a=UNIT, b=UNIT, n=mp.Integer(1, 8), c=mp.Categorical(["p", "q", "r"])),
    "discrete": mp.Space(
        n=mp.Integer(0, 20), k=mp.Integer(1, 9), c=mp.Categorical(["p", "q", "r", "s"])
    ),
}
POSTERIORS_PER_SPACE = 20


class CompiledImprovement(AbstractCompiledAcquisition):
    """Log expected improvement, by the series where its terms cancel."""

    def score(self, posterior, run, anchors, *, key):
        best = jnp.max(jnp.where(run.mask, run.y, -jnp.inf))

        def at(x):
            moments = posterior.moments(x)
            std = jnp.sqrt(jnp.maximum(moments.function_variance, 1e-16))
            u = (moments.mean - best) / std
            near, far = jnp.maximum(u, -30.0), jnp.minimum(u, -30.0)
            s = 1.0 / far**2
            series = s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s * (1.0 - 9.0 * s))))
            by_terms = jnp.log(norm.pdf(near) + near * norm.cdf(near))
            return jnp.log(std) + jnp.where(u < -30.0, norm.logpdf(far) + jnp.log(series), by_terms)

        return at


ACQUISITIONS = [
    (UpperConfidenceBound(), CompiledConfidenceBound()),
    (LogExpectedImprovement(), CompiledImprovement()),
]


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


@pytest.mark.slow
def test_search_misses_less_than_the_compiled_search_on_100_posteriors():
    """Posteriors of learned priors after 2 to 21 points; a miss is a value below the other one's.

    Candidates are drawn at random, so either search may miss the highest of several peaks. On 19
    November 2026 ours missed none of 200, and the compiled one 6, the worst by 0.47 standard
    deviations of the values (bound) or nats (log improvement).
    """
    gains = np.concatenate([gains_over(space) for space in SPACES.values()])
    assert len(gains) == 2 * 100
    ours, theirs = -gains[gains < -1e-6], gains[gains > 1e-6]
    assert len(ours) < len(theirs), (ours, theirs)
    assert max(ours, default=0.0) < max(theirs), (ours, theirs)


def gains_over(space):
    """What our search finds more than the compiled one, for every posterior and acquisition."""
    rng, moves, shifts = np.random.default_rng(0), free_moves(space), (0.4, -0.3, 0.1, 0.8, -0.6)
    runs = []
    for shift in shifts:
        x = moves.snap(rng.uniform(size=(20, space.num_columns)))
        runs.append((space.decode(x), np.sin(5.0 * x + shift).sum(axis=1) + rng.normal()))
    prior = mp.learn(mp.Tasks.from_runs(runs, space=space), method=FPacohMap(num_steps=200))
    gains = []
    for acquisition, compiled in ACQUISITIONS:
        policy = SurrogatePolicy(surrogate=prior.surrogate, acquisition=compiled, space=space)
        for seed in range(POSTERIORS_PER_SPACE):
            rng, length = np.random.default_rng(seed), 2 + seed
            x = moves.snap(rng.uniform(size=(length, space.num_columns)))
            y = np.sin(5.0 * x + seed).sum(axis=1)
            run, believed = run_of(x, y, spare=24 - length), prior.belief.condition(x, y)
            theirs = np.asarray(suggest(policy, run, jax.random.key(seed)))
            candidates = Search().candidates(moves, x, y, rng)
            scored = acquisition.score(believed, candidates, rng)
            ours = maximum(scored, moves, candidates, Search())
            values = scored.score.values(np.stack([ours, theirs]))
            is_bound = isinstance(acquisition, UpperConfidenceBound)
            gains.append((values[0] - values[1]) / (np.std(y) if is_bound else 1.0))
    return np.array(gains)
