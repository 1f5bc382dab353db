r"""Quasi-Newton ascent inside a box, as one compiled loop that can be `vmap`ped over starts.

    symbol      meaning                                        shape
    x           current point, inside [lower, upper]           (d,)
    g           gradient of the function at x                  (d,)
    H           estimate of the inverse of minus the Hessian   (d, d)

Coordinates that sit on a bound with the gradient pointing outwards are held there for the step.
The step length is the best of a fixed ladder, all evaluated at once: no inner loop, so that a batch
of ascents stays in lock-step on a CPU and on an accelerator.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

STEP_LADDER = 2.0 ** np.array([1, 0, -1, -2, -3, -5, -7, -10])
# Below every gradient that matters, above what would overflow when divided by.
SMALLEST = 1e-200


class Ascent(NamedTuple):
    """Where an ascent stands."""

    x: Float[Array, " d"]
    value: Float[Array, ""]
    gradient: Float[Array, " d"]
    inverse_hessian: Float[Array, "d d"]


def ascend(
    function: Callable[[Float[Array, " d"]], Float[Array, ""]],
    start: Float[Array, " d"],
    lower: Float[Array, " d"],
    upper: Float[Array, " d"],
    *,
    num_steps: int | Int[Array, ""],
    first_step: float = 0.1,
) -> Ascent:
    """A local maximum of `function` in the box, never below its value at `start`.

    `first_step` is the length of the first trial step, as a fraction of the box.
    """
    value_and_gradient = jax.value_and_grad(function)
    # A closed dimension of the box has no width and takes no part in any step.
    width = jnp.where(upper > lower, upper - lower, jnp.inf)

    def step(_, state: Ascent) -> Ascent:
        held = ((state.x <= lower) & (state.gradient < 0)) | (
            (state.x >= upper) & (state.gradient > 0)
        )
        gradient = jnp.where(held, 0.0, state.gradient)
        direction = jnp.where(held, 0.0, state.inverse_hessian @ gradient)
        # Far from the maximum the estimate may point downhill: then follow the gradient.
        lengths = jnp.linalg.norm(direction) * jnp.linalg.norm(gradient)
        uphill = direction @ gradient > 1e-10 * lengths
        direction = jnp.where(uphill, direction, _rate(gradient, width, first_step) * gradient)
        trials = jnp.clip(
            state.x[None, :] + STEP_LADDER[:, None] * direction[None, :],
            lower[None, :],
            upper[None, :],
        )
        values = jax.vmap(function)(trials)
        best = jnp.argmax(jnp.where(jnp.isnan(values), -jnp.inf, values))
        improved = values[best] > state.value
        x = jnp.where(improved, trials[best], state.x)
        value, new_gradient = value_and_gradient(x)
        # A failed step means that the estimate is wrong: reset it to the gradient.
        inverse_hessian = jnp.where(
            improved,
            _bfgs_update(state.inverse_hessian, x - state.x, state.gradient - new_gradient),
            _rate(new_gradient, width, first_step / 10) * jnp.eye(x.shape[0]),
        )
        return Ascent(x, value, new_gradient, inverse_hessian)

    value, gradient = value_and_gradient(start)
    guess = _rate(gradient, width, first_step) * jnp.eye(start.shape[0])
    return jax.lax.fori_loop(0, num_steps, step, Ascent(start, value, gradient, guess))


def _rate(
    gradient: Float[Array, " d"], width: Float[Array, " d"], fraction: float
) -> Float[Array, ""]:
    """The step length along the gradient that moves at most a fraction of the box."""
    return fraction / jnp.maximum(jnp.max(jnp.abs(gradient) / width), SMALLEST)


def _bfgs_update(
    inverse_hessian: Float[Array, "d d"], moved: Float[Array, " d"], bent: Float[Array, " d"]
) -> Float[Array, "d d"]:
    r"""$H \leftarrow (I - \rho s b^\top) H (I - \rho b s^\top) + \rho s s^\top$,
    $\rho = 1 / s^\top b$, where the function bends downwards along the step."""
    # A coordinate kept at its bound says nothing about the curvature along the others.
    still: Array = jnp.equal(moved, 0.0)
    bent = jnp.where(still, 0.0, bent)
    curvature = moved @ bent
    concave = curvature > 1e-12 * jnp.linalg.norm(moved) * jnp.linalg.norm(bent)
    rho = 1.0 / jnp.where(concave, curvature, jnp.ones_like(curvature))
    left = jnp.eye(moved.shape[0]) - rho * jnp.outer(moved, bent)
    updated = left @ inverse_hessian @ left.T + rho * jnp.outer(moved, moved)
    return jnp.where(concave, updated, inverse_hessian)
