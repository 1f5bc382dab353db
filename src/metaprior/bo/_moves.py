"""Valid points of a mixed space, and the moves between them, for many points of the unit cube.

Reals move freely, integers lie on a grid of positions, a category is a one-hot code. Where
dimensions exist under conditions, a branch is the set of those that exist at a point.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from metaprior.data import Space

# Branches whose best points are looked at.
MOST_BRANCHES = 16


@dataclass(frozen=True)
class Moves:
    """What a search may do in `space`.

    - `held`: the columns that stay at the values of `place`, whatever a point says of them; where
      they exist.
    - `place`: anything in the other columns.
    """

    space: Space
    held: Bool[np.ndarray, " d"]
    place: Float[np.ndarray, " d"]

    @property
    def num_columns(self) -> int:
        return len(self.held)

    @cached_property
    def is_free(self) -> Bool[np.ndarray, " d"]:
        """Columns that an ascent moves while integers are relaxed; what others depend on stays."""
        return ~self.space.is_categorical & ~self.space.is_parent & ~self.held

    @cached_property
    def is_real(self) -> Bool[np.ndarray, " d"]:
        """Columns that an ascent moves when integers and categories are settled."""
        return self.space.is_real & ~self.held

    @cached_property
    def is_discrete(self) -> bool:
        """Whether an integer or a category is left to choose."""
        return bool(np.any(~self.space.is_real & ~self.held))

    def placed(self, points: Float[np.ndarray, "*m d"]) -> Float[np.ndarray, "*m d"]:
        """The points with the columns that are held at their values."""
        placed = np.where(self.held, self.place, points)
        conditions = self.space.conditions
        return placed if conditions is None else conditions.settle(placed)

    def existing(
        self, columns: Bool[np.ndarray, " d"], points: Float[np.ndarray, "m d"]
    ) -> Bool[np.ndarray, "*m d"]:
        """Which of the columns exist at each of the points; without conditions, the columns."""
        conditions = self.space.conditions
        return columns if conditions is None else columns & conditions.active(points)

    def best_of_branches(
        self, points: Float[np.ndarray, "m d"], values: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, "b d"]:
        """The point with the largest value in each of the branches with the largest; none without
        conditions."""
        conditions = self.space.conditions
        if conditions is None:
            return points[:0]
        order = np.argsort(-values, kind="stable")
        _, first = np.unique(conditions.exists(points[order]), axis=0, return_index=True)
        return points[order[np.sort(first)[:MOST_BRANCHES]]]

    def snap(self, points: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m d"]:
        """The valid points that `points` stand for.

        Integers go to the position of the bin they fall in, categories to the choice with the
        largest entry, reals are clipped.
        """
        snapped = np.clip(points, 0.0, 1.0)
        for start, stop, dimension in self._columns:
            if self.space.is_integer[start]:
                grid = dimension.grid
                level = grid.nearest_level(snapped[:, start], np)
                snapped[:, start] = grid.position(level, np)
            elif self.space.is_categorical[start]:
                chosen = np.argmax(points[:, start:stop], axis=1)
                snapped[:, start:stop] = np.eye(stop - start)[chosen]
        return self.placed(snapped)

    def neighbours(
        self, point: Float[np.ndarray, " d"], branches: Float[np.ndarray, "b d"] | None = None
    ) -> Float[np.ndarray, "k d"]:
        """A valid point itself, and all that are one move away in one discrete dimension: an
        integer one step down or up, or another choice.

        Dimensions that begin to exist start in the middle, or at their first choice, and once more
        at the values of each of the points `branches` where they exist.
        """
        conditions = self.space.conditions
        exists = None if conditions is None else conditions.active(point)
        found = [point]
        for start, stop, dimension in self._columns:
            if self.held[start] or (exists is not None and not exists[start]):
                continue
            if self.space.is_integer[start]:
                grid = dimension.grid
                level = float(grid.nearest_level(point[start], np))
                for other in (level - 1.0, level + 1.0):
                    if grid.first <= other <= grid.last:
                        moved = point.copy()
                        moved[start] = float(grid.position(other, np))
                        found.append(moved)
            elif self.space.is_categorical[start]:
                own, codes = int(np.argmax(point[start:stop])), np.eye(stop - start)
                for choice in range(stop - start):
                    if choice != own:
                        moved = point.copy()
                        moved[start:stop] = codes[choice]
                        found.append(moved)
        if conditions is None:
            return np.stack(found)
        moved = self.snap(np.stack(found))
        return np.concatenate([moved, self._begun(point, moved, branches)])

    def _begun(
        self,
        point: Float[np.ndarray, " d"],
        moved: Float[np.ndarray, "k d"],
        branches: Float[np.ndarray, "b d"] | None,
    ) -> Float[np.ndarray, "n d"]:
        """Those of the points `moved` at which more exists than at `point`, with the values that
        `branches` have there."""
        conditions = self.space.conditions
        if conditions is None or branches is None:
            return moved[:0]
        was_there, known = conditions.active(point), conditions.active(branches)
        begun = conditions.active(moved) & ~was_there
        found = [moved[:0]]
        for begins, move in zip(begun, moved, strict=True):
            if begins.any():
                having = branches[known[:, begins].all(axis=1)]
                found.append(np.where(was_there, move, having))
        return self.snap(np.concatenate(found))

    @cached_property
    def _columns(self) -> list[tuple[int, int, Any]]:
        """First column and the one after the last, of each dimension."""
        dimensions = self.space.dimensions
        stops = np.cumsum([dimension.num_columns for dimension in dimensions]).tolist()
        return list(zip([0, *stops[:-1]], stops, dimensions, strict=True))


def free_moves(space: Space) -> Moves:
    """All moves of a space, with nothing held."""
    nothing = np.zeros(space.num_columns)
    return Moves(space, nothing > 0.0, nothing)
