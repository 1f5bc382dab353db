"""Squared distances between two sets of points, many of them side by side.

symbol      meaning                                                 shape
a, b        two sets of points per process                          (g, n, e), (g, k, e)
l           lengthscales, one for all features or one for each      (g, _)
"""

import numpy as np
from jaxtyping import Float


def squared_distances(
    a: Float[np.ndarray, "g n e"],
    b: Float[np.ndarray, "g k e"],
    lengthscale: Float[np.ndarray, "g _"],
) -> Float[np.ndarray, "g n k"]:
    r"""Squared distances of all pairs in units of the lengthscales, as one product per process:

    $$ \sum_j (a_j - b_j)^2 / \ell_j^2 = \big( -2 a / \ell^2, |a / \ell|^2, 1 / \ell^2 \big) \cdot
       (b, 1, b^2) . $$

    They are off by the rounding of the largest, small ones as well.
    """
    g, n, e = a.shape
    k = b.shape[1]
    precision = 1.0 / (lengthscale * lengthscale)[:, None]
    if is_repeated(b):
        b = b[:1]
    elif n:  # features may be far from the origin, and the larger they are, the more is rounded
        centre = a.sum(axis=1, keepdims=True) / n
        a, b = a - centre, b - centre
    left, right = np.empty((g, n, 2 * e + 1)), np.empty((len(b), 2 * e + 1, k))
    scaled, points = precision * a, b.transpose(0, 2, 1)
    np.multiply(scaled, -2.0, out=left[:, :, :e])
    left[:, :, e] = (scaled * a).sum(axis=2)
    left[:, :, e + 1 :] = precision
    right[:, :e] = points
    right[:, e] = 1.0
    np.multiply(points, points, out=right[:, e + 1 :])
    # Points that are the same for all processes need a single product for all of them.
    flat = left if len(b) == g else left.reshape(1, g * n, 2 * e + 1)
    squares = (flat @ right).reshape(g, n, k)
    return np.maximum(squares, 0.0, out=squares)


def is_repeated(points: Float[np.ndarray, "g k e"]) -> bool:
    """Whether they are those of one process, broadcast to several."""
    return points.strides[0] == 0


def squared_differences(
    a: Float[np.ndarray, "g n e"],
    b: Float[np.ndarray, "g k e"],
    lengthscale: Float[np.ndarray, "g _"],
) -> Float[np.ndarray, "g n k"]:
    """The same by differences: exact for points close to each other, and slower."""
    a, b = a / lengthscale[:, None, :], b / lengthscale[:, None, :]
    squares = np.zeros((*a.shape[:2], b.shape[1]))
    apart = np.empty_like(squares)
    # One feature after another: few numbers are moved, and few calls are made.
    columns, rows = a.transpose(2, 0, 1).copy()[..., None], b.transpose(2, 0, 1).copy()
    for column, row in zip(columns, rows[:, :, None], strict=True):
        np.subtract(column, row, out=apart)
        np.multiply(apart, apart, out=apart)
        squares += apart
    return squares
