r"""Quasi-Newton ascent inside a box, from several starts side by side.

    symbol      meaning                                        shape
    x           current points, inside [lower, upper]          (r, p)
    g           gradients of the function at x                 (r, p)
    H           estimates of the inverse of minus the Hessian  (r, p, p)

Coordinates that sit on a bound with the gradient pointing outwards are held there for a step.

`ascend` takes the same steps as the compiled ascent that fits processes while a prior is learned,
so that both find the same of several local maxima: the step length is the best of a fixed ladder.
`climb` needs one gradient per step, and no values: for functions that are evaluated fast, where
what counts is the number of calls.
"""

import abc
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

STEP_LADDER = 2.0 ** np.array([1, 0, -1, -2, -3, -5, -7, -10])
# Below every gradient that matters, above what would overflow when divided by.
SMALLEST = 1e-200
# The first trial step moves by this fraction of the box.
FIRST_STEP = 0.1
# Of `climb`: the share of the expected rise that a step must have, and a step not worth making.
SUFFICIENT = 1e-4
SHORTEST = 1e-7
LOWEST_RISE = 1e-9
# From this step on the estimate of the Hessian is reliable: an ascent stops if this multiple of its
# expected rise does not reach the highest one.
SURE_AFTER = 6
HOPE = 5.0


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
    direction, _ = _uphill(state, lower, upper)
    trials = np.clip(x[:, None] + STEP_LADDER[:, None] * direction[:, None], lower, upper)
    values = function.values(trials.reshape(-1, x.shape[1])).reshape(num, -1)
    best = np.argmax(values, axis=1)
    improved = values[np.arange(num), best] > state.value
    new_x = np.where(improved[:, None], trials[np.arange(num), best], x)
    value, new_gradient = function.gradients(new_x)
    # A step that failed means that the estimate misleads: start it again from the gradient.
    again = _rate(new_gradient, width, FIRST_STEP / 10)[:, None, None] * np.eye(x.shape[1])
    updated = _bfgs_update(state.inverse_hessian, new_x - x, state.gradient - new_gradient)
    inverse_hessian = np.where(improved[:, None, None], updated, again)
    return Climb(new_x, value, new_gradient, inverse_hessian), improved


def climb(
    function: AbstractSmoothFunction,
    starts: Float[np.ndarray, "r p"],
    lower: Float[np.ndarray, "r p"],
    upper: Float[np.ndarray, "r p"],
    *,
    num_steps: int,
) -> Climb:
    """A point that is no worse for each start, in a box of its own, and one of them a maximum.

    A step that does not rise enough (Armijo) is tried again with less of its length. An ascent is
    left alone once it moves by less than `SHORTEST` in every coordinate, or is expected to rise
    by less than `LOWEST_RISE` of what the starts differ by, or so far below the highest that it
    cannot be expected to reach it.
    """
    value, gradient = function.gradients(starts)
    rate = _rate(gradient, _widths(lower, upper), FIRST_STEP)
    guess = rate[:, None, None] * np.eye(starts.shape[1])
    state = Climb(starts.copy(), value, gradient, guess)
    length, active = np.ones(len(starts)), np.arange(len(starts))
    lowest_rise = LOWEST_RISE * np.ptp(value)
    for step in range(num_steps):
        own = Climb(*(part[active] for part in state))
        direction, free = _uphill(own, lower[active], upper[active])
        rise = np.sum(free * direction, axis=1)
        trial = np.clip(own.x + length[active, None] * direction, lower[active], upper[active])
        goes_on = np.max(np.abs(trial - own.x), axis=1) > SHORTEST
        if step >= SURE_AFTER:
            goes_on &= own.value + HOPE * rise >= np.max(state.value)
            goes_on &= rise > lowest_rise
        if not goes_on.any():
            break
        active, trial = active[goes_on], trial[goes_on]
        own = Climb(*(part[goes_on] for part in own))
        value, gradient = function.gradients(trial)
        moved = trial - own.x
        slope = np.sum(free[goes_on] * moved, axis=1)
        rises = value > own.value + SUFFICIENT * slope
        # The top of the parabola through both values and the first slope, in units of the step.
        lacking = np.maximum(own.value + slope - value, SMALLEST)
        shorter = np.clip(0.5 * slope / lacking, 0.1, 0.5)
        length[active] = np.where(rises, 1.0, shorter * length[active])
        updated = _bfgs_update(own.inverse_hessian, moved, own.gradient - gradient)
        found = Climb(trial, value, gradient, updated)
        for old, new in zip(state, found, strict=True):
            old[active[rises]] = new[rises]
    return state


def _uphill(
    state: Climb, lower: Float[np.ndarray, "*r p"], upper: Float[np.ndarray, "*r p"]
) -> tuple[Float[np.ndarray, "r p"], Float[np.ndarray, "r p"]]:
    """The direction of the next step, and the gradient without what points out of the box."""
    x = state.x
    outwards = ((x <= lower) & (state.gradient < 0)) | ((x >= upper) & (state.gradient > 0))
    gradient = np.where(outwards, 0.0, state.gradient)
    direction = (state.inverse_hessian @ gradient[..., None])[..., 0]
    direction = np.where(outwards, 0.0, direction)
    # Far from the maximum the estimate may point downhill: then follow the gradient.
    lengths = np.linalg.norm(direction, axis=1) * np.linalg.norm(gradient, axis=1)
    is_uphill = np.sum(direction * gradient, axis=1) > 1e-10 * lengths
    steepest = _rate(gradient, _widths(lower, upper), FIRST_STEP)[:, None] * gradient
    return np.where(is_uphill[:, None], direction, steepest), gradient


def _widths(
    lower: Float[np.ndarray, "*r p"], upper: Float[np.ndarray, "*r p"]
) -> Float[np.ndarray, "*r p"]:
    """Widths of boxes; a closed dimension has none, and takes no part in any step."""
    return np.where(upper > lower, upper - lower, np.inf)


def _rate(
    gradient: Float[np.ndarray, "r p"], width: Float[np.ndarray, "*r p"], fraction: float
) -> Float[np.ndarray, " r"]:
    """The step length along the gradient that moves at most a fraction of the box."""
    return fraction / np.maximum(np.max(np.abs(gradient) / width, axis=1), SMALLEST)


def _bfgs_update(
    inverse_hessian: Float[np.ndarray, "r p p"],
    moved: Float[np.ndarray, "r p"],
    bent: Float[np.ndarray, "r p"],
) -> Float[np.ndarray, "r p p"]:
    r"""$H \leftarrow (I - \rho s b^\top) H (I - \rho b s^\top) + \rho s s^\top$,
    $\rho = 1 / s^\top b$, where the function bends downwards along the step."""
    # A coordinate kept at its bound says nothing about the curvature along the others.
    bent = np.where(moved == 0.0, 0.0, bent)
    curvature = np.sum(moved * bent, axis=1)
    lengths = np.linalg.norm(moved, axis=1) * np.linalg.norm(bent, axis=1)
    is_concave = curvature > 1e-12 * lengths
    rho = 1.0 / np.where(is_concave, curvature, 1.0)
    left = np.eye(moved.shape[1]) - rho[:, None, None] * moved[:, :, None] * bent[:, None, :]
    step = rho[:, None, None] * moved[:, :, None] * moved[:, None, :]
    updated = left @ inverse_hessian @ left.transpose(0, 2, 1) + step
    return np.where(is_concave[:, None, None], updated, inverse_hessian)
