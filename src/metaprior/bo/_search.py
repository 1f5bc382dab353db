"""Maximising a score: over the whole space by multi-start ascent, or over given candidates.

Spaces may be mixed. Integers are relaxed during the ascent and snapped after it; categories are
searched by the candidates and, like integers, by single steps to neighbouring values at the end,
the reals following every step. Where dimensions exist under conditions, the best candidate of each
branch is a start, and what decides on branches moves by such steps only.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief import AbstractSmoothFunction, climb
from metaprior.bo._acquisition import ScoredAnchors
from metaprior.bo._moves import Moves

# Starts of the search are so far apart from each other, in units of sqrt(d).
APART = 0.2


@dataclass(frozen=True)
class Search:
    """How hard to search: numbers of candidates, of starts and of steps from each start."""

    num_global: int = 768
    num_local: int = 256
    num_starts: int = 16
    num_steps: int = 30
    neighbour_rounds: int = 3

    def candidates(
        self,
        moves: Moves,
        x: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "m d"]:
        """Valid points all over the space, and some around the best points of the run.

        The first are a low-discrepancy set, shifted at random; the others perturb the best points
        at several distances, since optima are often found near good points.
        """
        d = moves.num_columns
        everywhere = (low_discrepancy(self.num_global, d) + rng.uniform(size=d)) % 1.0
        if len(y) == 0:
            # Without observations there is no good place to stay near to.
            centres = np.full((self.num_local, d), 0.5)
        else:
            best = np.argsort(-y, kind="stable")[:4]
            centres = x[rng.choice(best, size=self.num_local)]
        scale = 10.0 ** rng.uniform(-3.0, -0.7, size=(self.num_local, 1))
        nearby = centres + scale * rng.standard_normal((self.num_local, d))
        return moves.snap(np.concatenate([everywhere, np.clip(nearby, 0.0, 1.0)]))


def maximum(
    scored: ScoredAnchors,
    moves: Moves,
    candidates: Float[np.ndarray, "m d"],
    search: Search,
) -> Float[np.ndarray, " d"]:
    """The valid point with the largest score found by ascent from the best candidates.

    - `scored`: the score, and its values at the candidates.
    """
    score = scored.score
    starts = _starts(candidates, scored.values, search.num_starts)
    branches = moves.best_of_branches(candidates, scored.values)
    if len(branches):
        starts = np.unique(np.concatenate([starts, branches]), axis=0)
    tops, values = _climbed(score, starts, moves, moves.is_free, search)
    if moves.is_discrete:
        tops = moves.snap(tops)
        for _ in range(search.neighbour_rounds):
            stepped = _best_neighbours(score, moves, tops, branches)
            # The reals were chosen for integers between the steps: they follow what is discrete.
            moved, values = _climbed(score, stepped, moves, moves.is_real, search)
            if np.array_equal(moved, tops):
                break
            tops = moved
    highest = np.argmax(values)
    top, value = tops[highest], values[highest]
    # Snapping may lose what the ascent had won: the best candidate stays in the race.
    best = np.argmax(scored.values)
    return top if value >= scored.values[best] else candidates[best]


def _climbed(
    score: AbstractSmoothFunction,
    starts: Float[np.ndarray, "r d"],
    moves: Moves,
    columns: Bool[np.ndarray, " d"],
    search: Search,
) -> tuple[Float[np.ndarray, "r d"], Float[np.ndarray, " r"]]:
    """The tops above the starts, reached by those of the columns that exist, and their scores."""
    moving = moves.existing(columns, starts)
    if not moving.any():
        return starts, score.values(starts)
    # What does not move stays where it is: the box around it is closed.
    lower, upper = np.where(moving, 0.0, starts), np.where(moving, 1.0, starts)
    found = climb(score, starts, lower, upper, num_steps=search.num_steps)
    return found.x, found.value


def _best_neighbours(
    score: AbstractSmoothFunction,
    moves: Moves,
    points: Float[np.ndarray, "r d"],
    branches: Float[np.ndarray, "b d"],
) -> Float[np.ndarray, "r d"]:
    """The best of each point and its neighbours."""
    options = [moves.neighbours(point, branches) for point in points]
    ends = np.cumsum([len(own) for own in options])
    values = np.split(score.values(np.concatenate(options)), ends[:-1])
    return np.stack([own[np.argmax(v)] for own, v in zip(options, values, strict=True)])


def _starts(
    candidates: Float[np.ndarray, "m d"], values: Float[np.ndarray, " m"], num: int
) -> Float[np.ndarray, "r d"]:
    """At most `num` of the best candidates: most of them apart from each other, so that one high
    peak does not take every start, and the others the best of all."""
    close = APART**2 * candidates.shape[1]
    squares = np.sum(candidates**2, axis=1)
    left, chosen = values.copy(), []
    for _ in range(num - num // 4):
        best = int(np.argmax(left))
        if left[best] == -np.inf:
            break
        chosen.append(best)
        # Squared distances less the square of the chosen point itself.
        left[squares - 2.0 * (candidates @ candidates[best]) <= close - squares[best]] = -np.inf
    best = np.argsort(-values, kind="stable")[: num // 4]
    return candidates[np.unique([*chosen, *best])]


def low_discrepancy(num: int, d: int) -> Float[np.ndarray, "num d"]:
    r"""Points that cover the cube evenly: $x_i = i\, \alpha \bmod 1$ with
    $\alpha_j = \varphi^{-j}$ and $\varphi$ the root of $\varphi^{d+1} = \varphi + 1$ (Roberts 2018:
    the golden ratio for one dimension, and its relatives for more)."""
    phi = 2.0
    for _ in range(64):
        phi = (1.0 + phi) ** (1.0 / (d + 1))
    steps = phi ** -np.arange(1.0, d + 1.0)
    return np.arange(num)[:, None] * steps[None, :] % 1.0
