"""Maximising an acquisition: over the whole space by multi-start ascent, or over given candidates.

Spaces may be mixed. Integers are relaxed during the ascent and snapped after it; categories are
searched by the candidates and, like integers, by single steps to neighbouring values at the end,
the reals following every step.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from metaprior.data import Run, Space
from metaprior.gp import ascend
from metaprior.lab.policies._acquisition import Score

# Given candidates are scored this many at a time.
BLOCK = 4096


class CompiledSearch(eqx.Module):
    """How hard to search: numbers of candidates, of starts and of steps from each start."""

    num_global: int = eqx.field(static=True, default=768)
    num_local: int = eqx.field(static=True, default=256)
    num_starts: int = eqx.field(static=True, default=8)
    num_steps: int = eqx.field(static=True, default=20)
    neighbour_rounds: int = eqx.field(static=True, default=3)

    def candidates(self, space: Space, run: Run, *, key: PRNGKeyArray) -> Float[Array, "m d"]:
        """Valid points all over the space, and some around the best points of the run.

        The first are a low-discrepancy set, shifted at random; the others perturb the best points
        at several distances, since optima are often found near good points.
        """
        key_shift, key_parent, key_scale, key_noise = jax.random.split(key, 4)
        d = space.num_columns
        shift = jax.random.uniform(key_shift, (d,))
        everywhere = (low_discrepancy(self.num_global, d) + shift[None, :]) % 1.0
        best = jnp.argsort(jnp.where(run.mask, run.y, -jnp.inf), descending=True)
        few = jnp.clip(run.length, 1, 4)
        parents = best[jax.random.randint(key_parent, (self.num_local,), 0, few)]
        scale = 10.0 ** jax.random.uniform(key_scale, (self.num_local, 1), minval=-3.0, maxval=-0.7)
        noise = scale * jax.random.normal(key_noise, (self.num_local, d))
        # Without observations there is no good place to stay near to.
        centre = jnp.where(run.length > 0, run.x[parents], 0.5)
        nearby = jnp.clip(centre + noise, 0.0, 1.0)
        return jax.vmap(space.snap)(jnp.concatenate([everywhere, nearby]))


def maximise(
    score: Score, space: Space, candidates: Float[Array, "m d"], search: CompiledSearch
) -> Float[Array, " d"]:
    """The valid point with the largest score found by ascent from the best candidates."""
    scores = jax.vmap(score)(candidates)
    starts = candidates[_diverse_best(scores, search.num_starts)]

    def climb(start: Float[Array, " d"], moving: Bool[np.ndarray, " d"]) -> Float[Array, " d"]:
        # What does not move stays where it is: the box around it is closed.
        lower = jnp.where(moving, 0.0, start)
        upper = jnp.where(moving, 1.0, start)
        return ascend(score, start, lower, upper, num_steps=search.num_steps).x

    def step_and_climb(_, top: Float[Array, " d"]) -> Float[Array, " d"]:
        top = _best_neighbour(score, space, top)
        return climb(top, space.is_real) if space.is_real.any() else top

    tops = jax.vmap(lambda start: climb(start, ~space.is_categorical))(starts)
    if not space.is_real.all():
        # The reals were chosen for integers between the steps: they follow what is discrete.
        tops = jax.vmap(
            lambda top: jax.lax.fori_loop(
                0, search.neighbour_rounds, step_and_climb, space.snap(top)
            )
        )(tops)
    # Snapping may lose what the ascent had won: the untouched starts stay in the race.
    finalists = jnp.concatenate([tops, starts])
    return finalists[jnp.argmax(jax.vmap(score)(finalists))]


def maximise_over(
    score: Score, candidates: Float[Array, "m d"], allowed: Bool[Array, " m"]
) -> Int[Array, ""]:
    """Index of the allowed candidate with the largest score.

    Candidates are scored block by block, so that memory does not grow with their number.
    """
    m, d = candidates.shape
    num_blocks = -(-m // BLOCK)
    if num_blocks == 1:
        scores = jax.vmap(score)(candidates)
    else:
        size = -(-m // num_blocks)
        # The first candidates fill up the last block; their second scores are cut off.
        blocks = candidates[jnp.arange(num_blocks * size) % m].reshape(num_blocks, size, d)
        scores = jax.lax.map(jax.vmap(score), blocks).reshape(-1)[:m]
    return jnp.argmax(jnp.where(allowed, scores, -jnp.inf))


def _best_neighbour(score: Score, space: Space, point: Float[Array, " d"]) -> Float[Array, " d"]:
    options = jnp.concatenate([point[None], space.neighbours(point)])
    return options[jnp.argmax(jax.vmap(score)(options))]


def _diverse_best(scores: Float[Array, " m"], num: int):
    """Half of the starts are the best of all; the others are each the best of its own share of
    the candidates, so that one high peak does not take every start."""
    half = num // 2
    _, best = jax.lax.top_k(scores, num - half)
    if half == 0:
        return best
    groups = scores[: half * (scores.shape[0] // half)].reshape(-1, half)
    return jnp.concatenate([best, jnp.argmax(groups, axis=0) * half + jnp.arange(half)])


def low_discrepancy(num: int, d: int) -> Float[np.ndarray, "num d"]:
    """The first `num` points of one fixed scrambled Sobol sequence: they cover the cube evenly."""
    # scipy.stats takes as long to import as JAX; only those who search should wait for it.
    from scipy.stats import qmc

    return qmc.Sobol(d, scramble=True, rng=0).random_base2((num - 1).bit_length())[:num]
