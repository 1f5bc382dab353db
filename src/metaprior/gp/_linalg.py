"""The one place that factors matrices, with the one jitter policy.

Covariances are factored in standardised units, where kernel variances are of order one, so the
jitter is absolute. It is far below any noise a run could show and far above the rounding errors of
a double-precision Cholesky factorisation of a few hundred points.

A factorisation that fails gives NaN, which spreads to every result derived from it. Nothing is
retried: compiled code cannot raise, so the public entry points call `require_finite` on what
they return, which names the cause.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

JITTER = 1e-8


def cholesky(
    covariance: Float[Array, "n n"], jitter: Float[Array, ""] | float = JITTER
) -> Float[Array, "n n"]:
    """Lower Cholesky factor of `covariance + jitter * I`."""
    n = covariance.shape[0]
    return jnp.linalg.cholesky(covariance + jitter * jnp.eye(n), symmetrize_input=False)


def invert_factor(factor: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""$L^{-1}$ of a lower triangular $L$.

    Predictions at many points and hand-written gradients need products with $L^{-1}$ over and
    over; with the inverse at hand they are plain matrix products.
    """
    return solve_triangular(factor, jnp.eye(factor.shape[0]), lower=True)


def log_determinant(factor: Float[Array, "n n"]) -> Float[Array, ""]:
    r"""$\ln |L L^\top|$ from the Cholesky factor $L$."""
    return 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))


def require_finite(values, what: str) -> None:
    """Raise if a result contains NaN or infinity, with the usual causes."""
    if not np.all(np.isfinite(np.asarray(values))):
        raise FloatingPointError(
            f"{what} is not finite: a covariance matrix was not positive definite or the "
            "optimisation diverged; check for extreme values in y, lower the learning rate, "
            "or raise the noise."
        )
