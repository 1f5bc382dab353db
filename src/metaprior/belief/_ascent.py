r"""Quasi-Newton ascent inside a box, from several starts side by side.

    symbol      meaning                                        shape
    x           current points, inside [lower, upper]          (r, p)
    g           gradients of the function at x                 (r, p)
    H           estimates of the inverse of minus the Hessian  (r, p, p)

The same steps as the compiled ascent that fits processes while a prior is learned, so that both
find the same of several local maxima. Coordinates that sit on a bound with the gradient pointing
outwards are held there for the step; the step length is the best of a fixed ladder.
"""

import abc
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

STEP_LADDER = 2.0 ** np.array([1, 0, -1, -2, -3, -5, -7, -10])
# Below every gradient that matters, above what would overflow when divided by.
SMALLEST = 1e-200
FIRST_STEP = 0.1


class AbstractSmoothFunction(abc.ABC):
    """A function of rows of parameters."""

    @abc.abstractmethod
    def values(self, parameters: Float[np.ndarray, "r p"]) -> Float[np.ndarray, " r"]:
        """The function of each row."""

    @abc.abstractmethod
    def gradients(
        self, parameters: Float[np.ndarray, "r p"]
    ) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, "r p"]]:
        """The function of each row and its derivatives."""


class Climb(NamedTuple):
    """Where the ascents stand."""

    x: Float[np.ndarray, "r p"]
    value: Float[np.ndarray, " r"]
    gradient: Float[np.ndarray, "r p"]
    inverse_hessian: Float[np.ndarray, "r p p"]


def ascend(
    function: AbstractSmoothFunction,
    starts: Float[np.ndarray, "r p"],
    lower: Float[np.ndarray, " p"],
    upper: Float[np.ndarray, " p"],
    *,
    num_steps: int,
) -> Climb:
    """A local maximum of `function` in the box for each start, never below its value there."""
    width = upper - lower
    value, gradient = function.gradients(starts)
    guess = _rate(gradient, width, FIRST_STEP)[:, None, None] * np.eye(starts.shape[1])
    state, stuck = Climb(starts, value, gradient, guess), np.zeros(len(starts), bool)
    for _ in range(num_steps):
        moved, improved = _step(function, state, lower, upper)
        # Failed twice in a row, an ascent only repeats itself.
        if np.all(~improved & stuck):
            break
        state, stuck = moved, ~improved
    return state


def _step(
    function: AbstractSmoothFunction,
    state: Climb,
    lower: Float[np.ndarray, " p"],
    upper: Float[np.ndarray, " p"],
) -> tuple[Climb, Bool[np.ndarray, " r"]]:
    x, width, num = state.x, upper - lower, len(state.x)
    outwards = ((x <= lower) & (state.gradient < 0)) | ((x >= upper) & (state.gradient > 0))
    gradient = np.where(outwards, 0.0, state.gradient)
    direction = np.einsum("rpq,rq->rp", state.inverse_hessian, gradient)
    direction = np.where(outwards, 0.0, direction)
    # Far from the maximum the estimate may point downhill: then follow the gradient.
    lengths = np.linalg.norm(direction, axis=1) * np.linalg.norm(gradient, axis=1)
    uphill = np.sum(direction * gradient, axis=1) > 1e-10 * lengths
    steepest = _rate(gradient, width, FIRST_STEP)[:, None] * gradient
    direction = np.where(uphill[:, None], direction, steepest)
    trials = np.clip(x[:, None] + STEP_LADDER[:, None] * direction[:, None], lower, upper)
    values = function.values(trials.reshape(-1, x.shape[1])).reshape(num, -1)
    best = np.argmax(values, axis=1)
    improved = values[np.arange(num), best] > state.value
    new_x = np.where(improved[:, None], trials[np.arange(num), best], x)
    value, new_gradient = function.gradients(new_x)
    # A step that failed means that the estimate misleads: start it again from the gradient.
    again = _rate(new_gradient, width, FIRST_STEP / 10)[:, None, None] * np.eye(x.shape[1])
    changes = zip(state.inverse_hessian, new_x - x, state.gradient - new_gradient, strict=True)
    updated = np.stack([_bfgs_update(*change) for change in changes])
    inverse_hessian = np.where(improved[:, None, None], updated, again)
    return Climb(new_x, value, new_gradient, inverse_hessian), improved


def _rate(
    gradient: Float[np.ndarray, "r p"], width: Float[np.ndarray, " p"], fraction: float
) -> Float[np.ndarray, " r"]:
    """The step length along the gradient that moves at most a fraction of the box."""
    return fraction / np.maximum(np.max(np.abs(gradient) / width, axis=1), SMALLEST)


def _bfgs_update(
    inverse_hessian: Float[np.ndarray, "p p"],
    moved: Float[np.ndarray, " p"],
    bent: Float[np.ndarray, " p"],
) -> Float[np.ndarray, "p p"]:
    r"""$H \leftarrow (I - \rho s b^\top) H (I - \rho b s^\top) + \rho s s^\top$,
    $\rho = 1 / s^\top b$, where the function bends downwards along the step."""
    # A coordinate kept at its bound says nothing about the curvature along the others.
    bent = np.where(moved == 0.0, 0.0, bent)
    curvature = moved @ bent
    if curvature <= 1e-12 * np.linalg.norm(moved) * np.linalg.norm(bent):
        return inverse_hessian
    rho = 1.0 / curvature
    left = np.eye(len(moved)) - rho * np.outer(moved, bent)
    return left @ inverse_hessian @ left.T + rho * np.outer(moved, moved)
