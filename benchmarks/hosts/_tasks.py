"""A task: one or two values of any point of a space, and what the best trade-off of them is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from metaprior.data import Space, direction_sign

Point = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """Objectives that are defined everywhere in the space.

    - `evaluate`: the values of points, one column per objective, in the user's units.
    - `directions`: by name, `"maximize"` or `"minimize"`.
    - `reference`: the values from which volume counts; `volume`: what the best known front
      dominates above them.
    """

    name: str
    space: Space
    directions: Mapping[str, str]
    evaluate: Callable[[list[Point]], Float[np.ndarray, "n m"]]
    reference: Float[np.ndarray, " m"]
    volume: float

    @property
    def signs(self) -> Float[np.ndarray, " m"]:
        """1 for an objective to maximise, -1 for one to minimise."""
        return np.array([direction_sign(each) for each in self.directions.values()])

    def values(self, point: Point) -> dict[str, float]:
        """The values of one point, by name."""
        (row,) = self.evaluate([point])
        return {name: float(v) for name, v in zip(self.directions, row, strict=True)}
