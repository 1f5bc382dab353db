r"""Calibration error and coverage, from $F_j = \hat F(y_j \mid x_j)$.

Under a calibrated prediction the values $F_j$ of the predictive distribution function at the
observations are uniform on $[0, 1]$, whatever the distributions themselves look like.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike


def calibration_error(cdf_values: ArrayLike, levels: int | ArrayLike = 20) -> float:
    r"""Root mean squared difference between confidence levels and how often they held.

    $$ \sqrt{\frac1H \sum_{h=1}^H (\hat q_h - q_h)^2}, \qquad
       \hat q_h = \frac1m \big|\{ j : F_j \le q_h \}\big| $$

    - `cdf_values`: the $F_j$, of any shape; all of them are pooled.
    - `levels`: $H$, or the levels $q_h$ themselves. A number means that many equally spaced levels
      from 0 to 1, **both ends included**, which is how we read the paper (appendix, eq. calib-err,
      20 levels). The ends hardly ever disagree, so a grid without them reads a little higher.
    """
    values = _checked_probabilities("cdf_values", cdf_values)
    if isinstance(levels, int | np.integer):
        if levels < 2:
            raise ValueError(f"`levels` is {levels}; give at least 2, or the levels themselves.")
        levels = np.linspace(0.0, 1.0, int(levels))
    q = _checked_probabilities("levels", levels)
    return float(np.sqrt(np.mean((_fraction_at_most(values, q) - q) ** 2)))


def coverage(cdf_values: ArrayLike, levels: ArrayLike) -> Float[np.ndarray, " levels"]:
    r"""How often the central interval of each level held the observation.

    $$ \hat c(\alpha) = \frac1m \big|\{ j : |2 F_j - 1| \le \alpha \}\big| $$

    A curve above the diagonal is under-confident, one below it over-confident.

    - `cdf_values`: the $F_j$, of any shape; all of them are pooled.
    - `levels`: the $\alpha$, for example `np.linspace(0, 1, 21)`.
    """
    values = _checked_probabilities("cdf_values", cdf_values)
    alpha = _checked_probabilities("levels", levels)
    return _fraction_at_most(np.abs(2.0 * values - 1.0), alpha)


def _fraction_at_most(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The fraction of `values` that do not exceed each bound."""
    return np.searchsorted(np.sort(values), bounds, side="right") / values.size


def _checked_probabilities(name: str, values: ArrayLike) -> np.ndarray:
    """`values` as a flat array, after checking that they are probabilities."""
    flat = np.asarray(values, dtype=float).ravel()
    if flat.size == 0:
        raise ValueError(f"`{name}` is empty; give at least one number between 0 and 1.")
    # Written so that NaN fails too.
    wrong = ~((flat >= 0) & (flat <= 1))
    if wrong.any():
        index = int(np.argmax(wrong))
        raise ValueError(
            f"`{name}` is {flat[index]} at position {index}; give numbers between 0 and 1."
        )
    return flat
