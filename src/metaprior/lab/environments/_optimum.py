"""The global maximum of smooth functions on the unit cube, to the precision of the arithmetic.

Regret is measured against it, so an error here would be a floor under every curve. The functions
are cheap, low-dimensional and differentiable: a dense set of points finds the hills, and Newton's
method, projected on the cube, climbs them. No randomness: the same tasks give the same optima.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.gp import float64

_LOG2_NUM_POINTS = 13
_NUM_STARTS = 24
_MAX_STEPS = 200

Task = Callable[[Array], Array]


class Optima(NamedTuple):
    """The maximum of each of `n` tasks and a point of the unit cube that attains it."""

    value: Float[np.ndarray, " n"]
    x: Float[np.ndarray, "n d"]


@float64
def find_optima(tasks: Any, d: int) -> Optima:
    """The global maxima of a stack of tasks, each a function of one point of the unit cube.

    - `tasks`: a module with a leading axis on every array; one slice maps `(d,)` to a scalar.
    - `d`: the dimension of the cube.
    """
    points, neighbours = _cover(d)
    values = np.asarray(_values(tasks, points))
    starts = np.stack([points[_hilltops(row, neighbours)] for row in values])
    x, value = _climb(tasks, starts)
    best = np.argmax(value, axis=1)
    rows = np.arange(len(best))
    return Optima(value[rows, best], x[rows, best])


@cache
def _cover(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Points that fill the cube evenly, and the indices of the nearest neighbours of each."""
    # Imported here: scipy.stats alone takes as long as JAX, and few users need an optimum.
    from scipy.spatial import KDTree
    from scipy.stats import qmc

    points = qmc.Sobol(d, scramble=False).random_base2(_LOG2_NUM_POINTS)
    _, nearest = KDTree(points).query(points, k=2 * d + 2)
    # The nearest point of all is the point itself.
    return points, np.asarray(nearest)[:, 1:]


def _hilltops(values: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Indices of the highest points that no neighbour exceeds, best first.

    The highest points alone would all sit on the broadest hill, which need not be the highest one.
    """
    tops = np.flatnonzero(values >= values[neighbours].max(axis=1))
    tops = tops[np.argsort(-values[tops], kind="stable")][:_NUM_STARTS]
    # Always the same number of starts, so that the climb is compiled for one shape.
    return np.resize(tops, _NUM_STARTS)


def _climb(tasks: Any, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Local maxima reached from `starts`, shape `(n, s, d)`, and their values.

    Newton's step on the coordinates that are free to move, with the curvature's absolute value so
    that it always points uphill, and damping $\lambda$ that shrinks after a step up and grows
    after a refused one:

    $$ x \leftarrow \mathrm{clip}\big(x + (|H| + \lambda I)^{-1} \nabla f(x),\ 0,\ 1\big). $$
    """
    x = starts
    value, gradient, hessian = _derivatives(tasks, x)
    damping = np.full(value.shape, 1e-3)
    for _ in range(_MAX_STEPS):
        step = _newton_step(x, gradient, hessian, damping)
        candidate = np.clip(x + step, 0.0, 1.0)
        if np.abs(candidate - x).max() < 1e-12:
            break
        new = _derivatives(tasks, candidate)
        better = new[0] > value
        x = np.where(better[..., None], candidate, x)
        value = np.where(better, new[0], value)
        gradient = np.where(better[..., None], new[1], gradient)
        hessian = np.where(better[..., None, None], new[2], hessian)
        damping = np.where(better, damping / 10, damping * 10)
    return x, value


def _newton_step(
    x: np.ndarray, gradient: np.ndarray, hessian: np.ndarray, damping: np.ndarray
) -> np.ndarray:
    """The damped Newton step that leaves coordinates alone which push against the cube's wall."""
    blocked = ((x <= 0) & (gradient < 0)) | ((x >= 1) & (gradient > 0))
    pair_blocked = blocked[..., :, None] | blocked[..., None, :]
    curvature, basis = np.linalg.eigh(np.where(pair_blocked, 0.0, hessian))
    uphill = np.where(blocked, 0.0, gradient)
    along = np.einsum("...ij,...i->...j", basis, uphill)
    # The floor is for exactly flat directions, where the gradient vanishes as well.
    along = along / np.maximum(np.abs(curvature) + damping[..., None], 1e-30)
    return np.einsum("...ij,...j->...i", basis, along)


@jax.jit
def _values(tasks: Any, points: Float[Array, "p d"]) -> Float[Array, "n p"]:
    # One task at a time: thousands of points are enough to keep the machine busy.
    return jax.lax.map(lambda task: jax.vmap(task)(points), tasks)


@jax.jit
def _all_derivatives(
    tasks: Any, x: Float[Array, "n s d"]
) -> tuple[Float[Array, "n s"], Float[Array, "n s d"], Float[Array, "n s d d"]]:
    def at_point(task: Task, u: Array) -> tuple[Array, Array, Array]:
        value, gradient = jax.value_and_grad(task)(u)
        return value, gradient, jax.hessian(task)(u)

    return jax.vmap(lambda task, row: jax.vmap(lambda u: at_point(task, u))(row))(tasks, x)


def _derivatives(tasks: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    value, gradient, hessian = _all_derivatives(tasks, jnp.asarray(x))
    return np.asarray(value), np.asarray(gradient), np.asarray(hessian)
