r"""Where the points of a study lie beside what a prior knows.

A study may have wider bounds than the past ones, new choices, or parameters of its own. Its cube is
then larger than what the prior knows, in which each of its points has a nearest one:

    symbol      meaning                                              shape
    u           points of the study's cube                           (k, w)
    z           the nearest points that the prior knows              (k, d)
    delta       how far outside a point lies, in widths of the
                known range, all numbers together                    (k,)
    c           how much of what the prior says of z holds at u      (k,)
    rho         how much is new at u                                 (k,)

$$ c = e^{-\delta^2 / 2 \lambda^2}, \qquad \rho = \sqrt{1 - c^2}, $$

and $\rho = 1$ at a new choice and everywhere in a study with new parameters.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief._view import AbstractView, UnitView

# So far outside of a known range, in units of its width, c is 0.6; twice as far, 0.14. With twice
# this, the surroundings of a range count as known that no past study has seen: the search stayed
# away from optima there.
REACH = 0.25
# Below this, rho has no slope: there is none on the border.
SMALLEST = 1e-9


class Known(NamedTuple):
    """What a prior knows at points, and the derivatives."""

    share: Float[np.ndarray, " k"]
    new: Float[np.ndarray, " k"]
    share_slope: Float[np.ndarray, "k w"]
    new_slope: Float[np.ndarray, "k w"]


@dataclass(frozen=True)
class NearestKnown(AbstractView):
    """The view of the nearest points that a prior knows: `view`, stopped at the ends of the prior's
    cube in the columns that are `stopped`."""

    view: UnitView
    stopped: Bool[np.ndarray, " d"]

    def __call__(self, u):
        z = self.view(u)
        return np.where(self.stopped, np.clip(z, 0.0, 1.0), z)

    def pullback(self, u, by_z):
        z = self.view(u)
        moves = ~self.stopped | ((z >= 0.0) & (z <= 1.0))
        return self.view.pullback(u, np.where(moves, by_z, 0.0))


@dataclass(frozen=True)
class Novelty:
    """What of a study is new, by column of its cube.

    - `low`, `high`: the known range; infinite where everything is known.
    - `is_new_choice`: columns of choices that are new; `is_new`: of parameters that are.
    """

    low: Float[np.ndarray, " w"]
    high: Float[np.ndarray, " w"]
    is_new_choice: Bool[np.ndarray, " w"]
    is_new: Bool[np.ndarray, " w"]

    @property
    def is_nothing(self) -> bool:
        """Whether everything is known."""
        return not np.any(self.columns)

    @property
    def columns(self) -> Bool[np.ndarray, " w"]:
        """Columns along which something is new."""
        return np.isfinite(self.high - self.low) | self.is_new_choice | self.is_new

    @property
    def is_wider_only(self) -> bool:
        """Whether all that is new are values beyond the ends of known ranges."""
        return not np.any(self.is_new_choice | self.is_new)

    def __call__(self, u: Float[np.ndarray, "k w"]) -> Known:
        width = self.high - self.low
        # An infinite width makes nothing of the distance to an infinite bound.
        wide = np.isfinite(width)
        above, below = u - np.where(wide, self.high, 1.0), np.where(wide, self.low, 0.0) - u
        outside = np.where(above > 0.0, above, np.where(below > 0.0, -below, 0.0))
        outside = np.where(wide, outside, 0.0) / np.where(wide, width, 1.0)
        share = np.exp(-0.5 * np.sum(outside**2, axis=1) / REACH**2)
        share_slope = -share[:, None] * outside / (REACH**2 * np.where(wide, width, 1.0))
        chosen = np.any(u[:, self.is_new_choice] > 0.5, axis=1) | np.any(self.is_new)
        new = np.where(chosen, 1.0, np.sqrt(-np.expm1(2.0 * np.log(np.maximum(share, 1e-300)))))
        has_slope = ~chosen & (new > SMALLEST)
        factor = np.where(has_slope, -share / np.where(has_slope, new, 1.0), 0.0)
        return Known(share, new, share_slope, factor[:, None] * share_slope)
