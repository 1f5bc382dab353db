"""The one place of this package that factors matrices, with the jitter policy of `metaprior.gp`.

Covariances are factored in standardised units, where kernel variances are of order one, so the
jitter is absolute: far below any noise a run could show, far above the rounding errors of a
factorisation. Nothing is retried: a factorisation that fails is an error that names its cause.

Matrices are small and many. A BLAS that splits each of them among threads spends its time waiting
for these: on a busy machine of two cores the eigenvectors of 35 matrices of 30 x 30 took 30 to 1600
ms with two threads, and 2 ms with one.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock

import numpy as np
from jaxtyping import Float

JITTER = 1e-8
LOG_2_PI = 1.8378770664093453
# Sizes of matrices from which, and up to which, one thread is faster than several: below the first,
# LAPACK takes another route.
SMALLEST_SPLIT, LARGEST_SMALL = 26, 256


def eigen(
    covariance: Float[np.ndarray, "g n n"],
) -> tuple[Float[np.ndarray, "g n"], Float[np.ndarray, "g n n"]]:
    """Eigenvalues, none of them negative, and eigenvectors (in columns) of covariances."""
    _require_finite(covariance)
    with _threads_for(covariance.shape[-1]):
        values, vectors = np.linalg.eigh(covariance)
    # Rounding can leave tiny negative numbers where points determine each other.
    return np.maximum(values, 0.0), vectors


def cholesky(
    covariance: Float[np.ndarray, "*g n n"], jitter: float = JITTER
) -> Float[np.ndarray, "*g n n"]:
    """Lower Cholesky factors of `covariance + jitter * I`."""
    _require_finite(covariance)
    n = covariance.shape[-1]
    try:
        return np.linalg.cholesky(covariance + jitter * np.eye(n))
    except np.linalg.LinAlgError as error:
        raise FloatingPointError(
            f"A covariance matrix of {n} points is not positive definite: they lie too close to "
            "each other for the noise of the process; drop repeated points or raise the noise."
        ) from error


def invert_factor(factor: Float[np.ndarray, "*g n n"]) -> Float[np.ndarray, "*g n n"]:
    r"""$L^{-1}$ of lower triangular $L$: many predictions need products with it."""
    if factor.shape[-1] == 0:
        return factor
    from scipy.linalg import lapack  # refined processes never need it, and it is slow to import

    flat = factor.reshape(-1, *factor.shape[-2:])
    inverses = [lapack.dtrtri(one, lower=1)[0] for one in flat]  # pyright: ignore[reportAttributeAccessIssue]
    return np.stack(inverses).reshape(factor.shape)


def root(covariance: Float[np.ndarray, "g n n"]) -> Float[np.ndarray, "g n n"]:
    r"""$R$ with $R R^\top$ the covariance, which may be singular: for drawing samples."""
    values, vectors = eigen(covariance)
    return vectors * np.sqrt(values)[:, None, :]


def _threads_for(size: int) -> AbstractContextManager:
    """A single thread for matrices that are too small for more."""
    return _one_thread() if SMALLEST_SPLIT <= size <= LARGEST_SMALL else nullcontext()


class _OneThread:
    """The BLAS keeps to one thread while any part of the program is inside.

    The limit is that of the whole process: the first to enter sets it, and the last to leave takes
    it back, whichever threads they are in.
    """

    def __init__(self):
        from threadpoolctl import ThreadpoolController  # short runs never need it

        self._controller = ThreadpoolController()
        self._lock = Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_one_thread = cache(_OneThread)


def _require_finite(covariance: Float[np.ndarray, "..."]) -> None:
    if not np.isfinite(covariance).all():
        raise FloatingPointError(
            "A covariance matrix is not finite: the prior holds numbers that overflow; learn it "
            "again with a lower learning rate, or check for extreme values in y."
        )


def require_finite(values: Float[np.ndarray, "..."], what: str) -> None:
    """Raise if a prediction contains NaN or infinity, with the usual causes."""
    if not np.all(np.isfinite(values)):
        raise FloatingPointError(
            f"{what} is not finite: a covariance matrix was not positive definite, or the prior "
            "was trained until it diverged; check for extreme values in y, or learn the prior "
            "again with a lower learning rate."
        )
