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
from jaxtyping import Array, Float

STEP_LADDER = 2.0 ** np.array([1, 0, -1, -2, -3, -5, -7, -10])


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
    num_steps: int,
    first_step: float = 0.1,
) -> Ascent:
    """A local maximum of `function` in the box, never below its value at `start`.

    `first_step` is the length of the first trial step, as a fraction of the box.
    """
    value_and_gradient = jax.value_and_grad(function)

    def free(x, gradient):
        held = ((x <= lower) & (gradient < 0)) | ((x >= upper) & (gradient > 0))
        return ~held

    def step(_, state: Ascent) -> Ascent:
        mask = free(state.x, state.gradient)
        gradient = jnp.where(mask, state.gradient, 0.0)
        direction = jnp.where(mask, state.inverse_hessian @ gradient, 0.0)
        # Far from the maximum the estimate may point downhill: then follow the gradient.
        uphill = direction @ gradient > 1e-10 * jnp.linalg.norm(direction) * jnp.linalg.norm(
            gradient
        )
        direction = jnp.where(uphill, direction, _scaled(gradient, lower, upper, first_step))
        trials = jnp.clip(state.x + STEP_LADDER[:, None] * direction, lower, upper)
        values = jax.vmap(function)(trials)
        best = jnp.argmax(jnp.where(jnp.isnan(values), -jnp.inf, values))
        improved = values[best] > state.value
        x = jnp.where(improved, trials[best], state.x)
        value, new_gradient = value_and_gradient(x)
        moved = x - state.x
        bent = state.gradient - new_gradient
        inverse_hessian = _bfgs_update(state.inverse_hessian, moved, bent)
        # A step that failed means that the estimate misleads: start it again from the gradient.
        reset = _first_inverse_hessian(new_gradient, lower, upper, first_step / 10)
        inverse_hessian = jnp.where(improved, inverse_hessian, reset)
        return Ascent(x, value, new_gradient, inverse_hessian)

    value, gradient = value_and_gradient(start)
    first = Ascent(
        start, value, gradient, _first_inverse_hessian(gradient, lower, upper, first_step)
    )
    return jax.lax.fori_loop(0, num_steps, step, first)


def _scaled(gradient, lower, upper, fraction):
    """The gradient direction, its largest component a fraction of the box."""
    relative = jnp.max(jnp.abs(gradient) / (upper - lower))
    return gradient * fraction / jnp.maximum(relative, 1e-300)


def _first_inverse_hessian(gradient, lower, upper, fraction):
    relative = jnp.max(jnp.abs(gradient) / (upper - lower))
    return jnp.eye(gradient.shape[0]) * (fraction / jnp.maximum(relative, 1e-300))


def _bfgs_update(inverse_hessian, moved, bent):
    r"""$H \leftarrow (I - \rho s b^\top) H (I - \rho b s^\top) + \rho s s^\top$,
    $\rho = 1 / s^\top b$, where the function bends downwards along the step."""
    curvature = moved @ bent
    concave = curvature > 1e-12 * jnp.linalg.norm(moved) * jnp.linalg.norm(bent)
    rho = 1.0 / jnp.where(concave, curvature, 1.0)
    left = jnp.eye(moved.shape[0]) - rho * jnp.outer(moved, bent)
    updated = left @ inverse_hessian @ left.T + rho * jnp.outer(moved, moved)
    return jnp.where(concave, updated, inverse_hessian)
