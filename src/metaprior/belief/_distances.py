"""Squared distances between two sets of points, many of them side by side.

symbol      meaning                                                 shape
a, b        two sets of points per process                          (g, n, e), (g, k, e)
l           lengthscales, one for all features or one for each      (g, _)
"""

from functools import cached_property

import numpy as np
from jaxtyping import Float


def squared_distances(
    a: Float[np.ndarray, "g n e"],
    b: Float[np.ndarray, "g k e"],
    lengthscale: Float[np.ndarray, "g _"],
) -> Float[np.ndarray, "g n k"]:
    """Squared distances of all pairs in units of the lengthscales: see `Centres`."""
    return Centres(a, lengthscale).squared_distances(b)


class Centres:
    r"""Points `a` from which distances are asked for again and again.

    Squared distances are one product per process:

    $$ \sum_j (a_j - b_j)^2 / \ell_j^2 = \big( -2 a / \ell^2, |a / \ell|^2, 1 / \ell^2 \big) \cdot
       (b, 1, b^2) . $$

    They are off by the rounding of the largest, small ones as well.
    """

    def __init__(self, a: Float[np.ndarray, "g n e"], lengthscale: Float[np.ndarray, "g _"]):
        self._a = a
        self._precision = 1.0 / (lengthscale * lengthscale)[:, None]

    def squared_distances(self, b: Float[np.ndarray, "g k e"]) -> Float[np.ndarray, "g n k"]:
        (g, n, e), k = self._a.shape, b.shape[1]
        if is_repeated(b):
            # Points that are the same for all processes need a single product for all of them.
            left, b = self._as_they_are.reshape(1, g * n, 2 * e + 1), b[:1]
        else:
            left, b = self._centred, b - self._middle
        points, right = b.transpose(0, 2, 1), np.empty((len(b), 2 * e + 1, k))
        right[:, :e] = points
        right[:, e] = 1.0
        np.multiply(points, points, out=right[:, e + 1 :])
        squares = (left @ right).reshape(g, n, k)
        return np.maximum(squares, 0.0, out=squares)

    @cached_property
    def _middle(self) -> Float[np.ndarray, "g 1 e"]:
        """Features may be far from the origin, and the larger they are, the more is rounded."""
        return self._a.sum(axis=1, keepdims=True) / max(self._a.shape[1], 1)

    @cached_property
    def _as_they_are(self) -> Float[np.ndarray, "g n _"]:
        return self._factors(self._a)

    @cached_property
    def _centred(self) -> Float[np.ndarray, "g n _"]:
        return self._factors(self._a - self._middle)

    def _factors(self, a: Float[np.ndarray, "g n e"]) -> Float[np.ndarray, "g n _"]:
        """What the points contribute to the products."""
        g, n, e = a.shape
        factors, scaled = np.empty((g, n, 2 * e + 1)), self._precision * a
        np.multiply(scaled, -2.0, out=factors[:, :, :e])
        factors[:, :, e] = (scaled * a).sum(axis=2)
        factors[:, :, e + 1 :] = self._precision
        return factors


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
