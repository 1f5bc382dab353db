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
LOWEST_RISE = 1e-8
# From this step on the estimate of the Hessian is reliable: an ascent stops if this multiple of its
# expected rise does not reach the highest one.
SURE_AFTER = 6
HOPE = 5.0
# Two ascents that are this close in every coordinate climb the same hill.
CLOSE = 1e-3
# The highest goes on alone for so many steps more, unless it has stalled: it rose by less than this
# share of what the starts differ by, in so many steps. Along a ridge it could creep on for long.
LAST_STEPS = 8
STALLED, PATIENCE = 1e-8, 8


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


class Tops(NamedTuple):
    """Points reached, and the function there."""

    x: Float[np.ndarray, "r p"]
    value: Float[np.ndarray, " r"]


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
) -> Tops:
    """A point that is no worse for each start, in a box of its own, and one of them a maximum.

    A step that does not rise enough (Armijo) is tried again with less of its length. An ascent is
    left alone once it moves by less than `SHORTEST` in every coordinate, or is expected to rise by
    less than `LOWEST_RISE` of what the starts differ by. The highest also stops where it has
    stalled; the others where they are close to it, or so far below that they cannot be expected to
    reach it.
    """
    value, gradient = function.gradients(starts)
    rate = _rate(gradient, _widths(lower, upper), FIRST_STEP)
    own = Climb(starts, value, gradient, rate[:, None, None] * np.eye(starts.shape[1]))
    tops, spread = Tops(starts.copy(), value.copy()), np.ptp(value)
    # Of those that go on: where they belong, and the share of the next step that they try.
    rows, length = np.arange(len(starts)), np.ones(len(starts))
    heights = [np.max(value)]
    for step in range(num_steps + min(num_steps, LAST_STEPS)):
        direction, free = _uphill(own, lower, upper)
        trial = np.minimum(np.maximum(own.x + length[:, None] * direction, lower), upper)
        moved = trial - own.x
        goes_on = np.abs(moved).max(axis=1) > SHORTEST
        if step >= min(num_steps, SURE_AFTER):
            highest = int(np.argmax(tops.value))
            rise = (free * direction).sum(axis=1)
            hopeful = own.value + HOPE * rise >= tops.value[highest]
            hopeful &= np.abs(own.x - tops.x[highest]).max(axis=1) > CLOSE
            hopeful &= step < num_steps
            risen = tops.value[highest] - heights[max(step - PATIENCE, 0)]
            has_stalled = step >= PATIENCE and risen <= STALLED * spread
            goes_on &= np.where(rows == highest, not has_stalled, hopeful)
            goes_on &= rise > LOWEST_RISE * spread
        if not goes_on.all():
            if not goes_on.any():
                break
            own = Climb(*(part[goes_on] for part in own))
            rows = rows[goes_on]
            length, lower, upper = (a[goes_on] for a in (length, lower, upper))
            free, trial, moved = free[goes_on], trial[goes_on], moved[goes_on]
        value, gradient = function.gradients(trial)
        slope = (free * moved).sum(axis=1)
        rises = value > own.value + SUFFICIENT * slope
        updated = _bfgs_update(own.inverse_hessian, moved, own.gradient - gradient)
        found = Climb(trial, value, gradient, updated)
        if rises.all():
            own, length = found, np.ones(len(rows))
        else:
            # The top of the parabola through both values and the first slope, in units of the step.
            lacking = np.maximum(own.value + slope - value, SMALLEST)
            shorter = np.minimum(np.maximum(0.5 * slope / lacking, 0.1), 0.5)
            length = np.where(rises, 1.0, shorter * length)
            own = Climb(*(_chosen(rises, new, old) for new, old in zip(found, own, strict=True)))
        tops.x[rows], tops.value[rows] = own.x, own.value
        heights.append(np.max(tops.value))
    return tops


def _chosen(
    which: Bool[np.ndarray, " r"], new: Float[np.ndarray, "r ..."], old: Float[np.ndarray, "r ..."]
) -> Float[np.ndarray, "r ..."]:
    """The rows of `new` in `which`, otherwise those of `old`."""
    return np.where(which.reshape(-1, *(1,) * (old.ndim - 1)), new, old)


def _uphill(
    state: Climb, lower: Float[np.ndarray, "*r p"], upper: Float[np.ndarray, "*r p"]
) -> tuple[Float[np.ndarray, "r p"], Float[np.ndarray, "r p"]]:
    """The direction of the next step, and the gradient without what points out of the box."""
    x = state.x
    outwards = ((x <= lower) & (state.gradient < 0)) | ((x >= upper) & (state.gradient > 0))
    gradient = np.where(outwards, 0.0, state.gradient)
    direction = (state.inverse_hessian @ gradient[..., None])[..., 0]
    direction[outwards] = 0.0
    # Far from the maximum the estimate may point downhill: then follow the gradient.
    is_uphill = (direction * gradient).sum(axis=1) > 1e-10 * _lengths(direction, gradient)
    if not is_uphill.all():
        steepest = _rate(gradient, _widths(lower, upper), FIRST_STEP)[:, None] * gradient
        direction = np.where(is_uphill[:, None], direction, steepest)
    return direction, gradient


def _lengths(a: Float[np.ndarray, "r p"], b: Float[np.ndarray, "r p"]) -> Float[np.ndarray, " r"]:
    """The products of the lengths of two sets of vectors."""
    return np.sqrt((a * a).sum(axis=1)) * np.sqrt((b * b).sum(axis=1))


def _widths(
    lower: Float[np.ndarray, "*r p"], upper: Float[np.ndarray, "*r p"]
) -> Float[np.ndarray, "*r p"]:
    """Widths of boxes; a closed dimension has none, and takes no part in any step."""
    return np.where(upper > lower, upper - lower, np.inf)


def _rate(
    gradient: Float[np.ndarray, "r p"], width: Float[np.ndarray, "*r p"], fraction: float
) -> Float[np.ndarray, " r"]:
    """The step length along the gradient that moves at most a fraction of the box."""
    return fraction / np.maximum((np.abs(gradient) / width).max(axis=1), SMALLEST)


def _bfgs_update(
    inverse_hessian: Float[np.ndarray, "r p p"],
    moved: Float[np.ndarray, "r p"],
    bent: Float[np.ndarray, "r p"],
) -> Float[np.ndarray, "r p p"]:
    r"""$H \leftarrow (I - \rho s b^\top) H (I - \rho b s^\top) + \rho s s^\top$,
    $\rho = 1 / s^\top b$, where the function bends downwards along the step."""
    # A coordinate kept at its bound says nothing about the curvature along the others.
    bent = np.where(moved == 0.0, 0.0, bent)
    curvature = (moved * bent).sum(axis=1)
    is_concave = curvature > 1e-12 * _lengths(moved, bent)
    rho = is_concave / np.where(is_concave, curvature, 1.0)
    # The same as a sum of one outer product and its transpose.
    turned = (inverse_hessian @ bent[..., None])[..., 0]
    along = 0.5 * (1.0 + rho * (bent * turned).sum(axis=1))
    outer = moved[:, :, None] * (rho[:, None] * (along[:, None] * moved - turned))[:, None, :]
    return inverse_hessian + (outer + outer.transpose(0, 2, 1))
