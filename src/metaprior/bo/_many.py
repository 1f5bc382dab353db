"""More objectives than the closed form takes: who says then what a query is worth."""

import abc
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief import ConditionedBelief


class FrontSoFar(NamedTuple):
    """What a run has shown of a front, and what is under way. All values are maximised.

    - `objectives`, `constraints`: beliefs after all that was observed; a point is feasible if the
      values of all constraints are at least 0.
    - `x`: observed points that make up the front; there may be none.
    - `pending`: queries under way.
    - `reference`: volume counts above it only.
    """

    objectives: tuple[ConditionedBelief, ...]
    constraints: tuple[ConditionedBelief, ...]
    x: Float[np.ndarray, "n d"]
    pending: Float[np.ndarray, "p d"]
    reference: Float[np.ndarray, " m"]


class AbstractManyObjectives(abc.ABC):
    """Chooses queries by any number of objectives, out of candidates."""

    @abc.abstractmethod
    def values(
        self,
        front: FrontSoFar,
        candidates: Float[np.ndarray, "k d"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, " k"]:
        """How much a query at each of the candidates is worth."""
