"""Where an optimiser may ask: a space, or candidates out of it, as users write them and encoded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from metaprior.bo._moves import Moves, free_moves
from metaprior.bo._propose import SAME_POINT, unused
from metaprior.data import Dimension, Points, Space, complaint
from metaprior.words import shortened

Point = dict[str, Any]


@dataclass(frozen=True)
class Places:
    """The space of a run, or the points of it that may be asked.

    - `rows`, `candidates`: those points, as they were given and encoded; nothing and `None` where
      the whole space may be asked.
    """

    space: Space
    rows: tuple[Point, ...]
    candidates: Float[np.ndarray, "m d"] | None

    @classmethod
    def of(cls, space: Space, candidates: Points | None) -> "Places":
        if candidates is None:
            return cls(space, (), None)
        rows = space.as_dicts(candidates, where="candidates")
        if not rows:
            raise ValueError("`candidates` is empty; give at least one point, or leave it out.")
        return cls(space, tuple(rows), space.encode(rows, where="candidates"))

    def point(self, x: Float[np.ndarray, " d"]) -> Point:
        """A query in the user's units; a candidate exactly as it was given, to look it up by."""
        if self.candidates is None:
            (point,) = self.space.decode(x[None])
            return point
        return dict(self.rows[int(np.argmax(matches(self.candidates, x)))])

    def moves(self, fixed: Point | None) -> Moves:
        """What a search may do where the dimensions in `fixed` have their values."""
        if fixed is not None and not isinstance(fixed, Mapping):
            raise TypeError(
                f"`fixed` is {shortened(fixed)}; give a dict of values by name, or leave it out."
            )
        if not fixed:
            return free_moves(self.space)
        unknown = [name for name in fixed if name not in self.space.names]
        if unknown:
            raise ValueError(
                f"`fixed` has {unknown[0]!r}, which is none of the dimensions "
                f"{list(self.space.names)}; leave it out."
            )
        named = list(zip(self.space.names, self.space.dimensions, strict=True))
        for name in fixed:
            _require_possible(name, name, fixed, dict(named))
        held = np.concatenate([np.full(d.num_columns, name in fixed) for name, d in named])
        # Each dimension by itself: it counts where it exists, and that may not be known yet.
        values = [
            d.encode([fixed[name]], complaint("fixed", f"dimension {name!r}"))[0]
            if name in fixed
            else np.full(d.num_columns, 0.5)
            for name, d in named
        ]
        return Moves(self.space, held, np.concatenate(values))

    def allowed(
        self,
        candidates: Float[np.ndarray, "m d"],
        used: Float[np.ndarray, "n d"],
        moves: Moves,
    ) -> Bool[np.ndarray, " m"]:
        """Which candidates are not used and have the values that are fixed, one at least."""
        allowed = unused(candidates, used)
        if not allowed.any():
            raise ValueError(
                f"All {len(candidates)} candidates have been asked; stop here, or start an "
                "Optimizer with more of them."
            )
        allowed &= np.all(np.abs(moves.placed(candidates) - candidates) <= SAME_POINT, axis=1)
        if not allowed.any():
            raise ValueError("No candidate that is left has the values in `fixed`; change them.")
        return allowed


def matches(
    points: Float[np.ndarray, "m d"], x: Float[np.ndarray, " d"], *, first: bool = False
) -> Bool[np.ndarray, " m"]:
    """Which of `points` are the query `x`; with `first`, only the first of them."""
    same = np.all(np.abs(points - x) <= SAME_POINT, axis=1)
    return same & (np.cumsum(same) == 1) if first else same


def _require_possible(
    name: str, ancestor: str, fixed: Point, dimensions: dict[str, Dimension]
) -> None:
    """Raise an error if other fixed values keep `name`, or an ancestor of it, from existing."""
    for parent, values in dimensions[ancestor].when:
        if parent not in fixed:
            _require_possible(name, parent, fixed, dimensions)
        elif fixed[parent] not in values:
            raise ValueError(
                f"`fixed` has {name!r}, which needs {parent!r} to be "
                f"{' or '.join(map(repr, values))}, and fixes {parent!r} at {fixed[parent]!r}; "
                "leave out one of the two."
            )
