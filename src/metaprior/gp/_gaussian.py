r"""Multivariate Gaussians: log density and KL divergence with hand-written gradients.

    symbol      meaning                                 shape
    y, m        values and mean                         (n,)
    K           covariance, without jitter              (n, n)
    L           Cholesky factor of K + jitter           (n, n)

The gradients with respect to a covariance need only inverses of matrices that the forward pass has
factored already, so none flows through a Cholesky factorisation: that is where most of the time of
a meta-training step would go.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from metaprior.gp._linalg import JITTER, cholesky, invert_factor, log_determinant

LOG_2_PI = 1.8378770664093453


class Gaussian(NamedTuple):
    """A multivariate Gaussian given by mean and covariance; jitter is added when it is factored."""

    mean: Float[Array, " n"]
    covariance: Float[Array, "n n"]


def log_density(
    y: Float[Array, " n"],
    gaussian: Gaussian,
    mask: Bool[Array, " n"] | None = None,
    jitter: Float[Array, ""] | float = JITTER,
) -> Float[Array, ""]:
    r"""$\ln N(y; m, K)$ of the entries selected by `mask` (all of them by default).

    Entries outside the mask are replaced by independent standard normals at their mean, which
    changes neither the quadratic form nor the determinant.
    """
    residual = y - gaussian.mean
    covariance = gaussian.covariance
    if mask is not None:
        residual = jnp.where(mask, residual, 0.0)
        covariance = mask_covariance(covariance, mask)
    count = residual.shape[0] if mask is None else jnp.sum(mask)
    return _centred_log_density(residual, covariance, jitter) - 0.5 * count * LOG_2_PI


def mask_covariance(
    covariance: Float[Array, "n n"], mask: Bool[Array, " n"]
) -> Float[Array, "n n"]:
    """`covariance` with identity rows and columns outside the mask."""
    keep = mask[:, None] & mask[None, :]
    return jnp.where(keep, covariance, jnp.eye(covariance.shape[0]))


@jax.custom_vjp
def _centred_log_density(
    residual: Float[Array, " n"], covariance: Float[Array, "n n"], jitter=JITTER
):
    r"""$-\tfrac12 r^\top K^{-1} r - \tfrac12 \ln|K|$, with jitter on $K$."""
    factor = cholesky(covariance, jitter)
    whitened = solve_triangular(factor, residual, lower=True)
    return -0.5 * (jnp.sum(whitened**2) + log_determinant(factor))


def _centred_log_density_forward(residual, covariance, jitter):
    factor = cholesky(covariance, jitter)
    inverse_factor = invert_factor(factor)
    whitened = inverse_factor @ residual
    value = -0.5 * (jnp.sum(whitened**2) + log_determinant(factor))
    return value, (inverse_factor, whitened @ inverse_factor)


def _centred_log_density_backward(saved, cotangent):
    r"""$\partial / \partial r = -\alpha$ and
    $\partial / \partial K = \tfrac12 (\alpha \alpha^\top - K^{-1})$, with $\alpha = K^{-1} r$."""
    inverse_factor, alpha = saved
    precision = inverse_factor.T @ inverse_factor
    return (
        -cotangent * alpha,
        (0.5 * cotangent) * (alpha[:, None] * alpha[None, :] - precision),
        None,
    )


_centred_log_density.defvjp(_centred_log_density_forward, _centred_log_density_backward)


class Reference(NamedTuple):
    """A fixed Gaussian, factored once, that others are compared with."""

    mean: Float[Array, " n"]
    inverse_factor: Float[Array, "n n"]
    log_determinant: Float[Array, ""]
    jitter: Float[Array, ""]


def reference(gaussian: Gaussian, jitter: Float[Array, ""] | float = JITTER) -> Reference:
    """`gaussian` with `jitter` on its diagonal, ready for `kl_divergence`."""
    factor = cholesky(gaussian.covariance, jitter)
    return Reference(
        gaussian.mean, invert_factor(factor), log_determinant(factor), jnp.asarray(jitter)
    )


def kl_divergence(q: Gaussian, p: Reference) -> Float[Array, ""]:
    r"""$\mathrm{KL}(q \,\|\, p)$, the jitter of `p` added to the covariance of `q` as well.

    $$ \tfrac12 \big( \mathrm{tr}(K_p^{-1} K_q) + (m_q - m_p)^\top K_p^{-1} (m_q - m_p)
       - n + \ln|K_p| - \ln|K_q| \big) $$

    With jitter on one side only, most of the divergence between two smooth processes would
    measure jitter. Gradients flow to `q` alone: `p` is what a learned process is pulled towards.
    """
    p = jax.lax.stop_gradient(p)
    shift = p.inverse_factor @ (q.mean - p.mean)
    spread = _trace_minus_log_determinant(q.covariance, p.inverse_factor, p.jitter)
    return 0.5 * (jnp.sum(shift**2) + spread - q.mean.shape[0] + p.log_determinant)


@jax.custom_vjp
def _trace_minus_log_determinant(covariance, inverse_factor, jitter):
    r"""$\mathrm{tr}(K_p^{-1} K_q) - \ln|K_q|$, with $L_p^{-1}$ given; both $K$ with jitter."""
    factor = cholesky(covariance, jitter)
    return jnp.sum((inverse_factor @ factor) ** 2) - log_determinant(factor)


def _trace_minus_log_determinant_forward(covariance, inverse_factor, jitter):
    factor = cholesky(covariance, jitter)
    value = jnp.sum((inverse_factor @ factor) ** 2) - log_determinant(factor)
    return value, (factor, inverse_factor)


def _trace_minus_log_determinant_backward(saved, cotangent):
    r"""$\partial / \partial K_q = K_p^{-1} - K_q^{-1}$."""
    factor, inverse_factor = saved
    own = invert_factor(factor)
    return cotangent * (inverse_factor.T @ inverse_factor - own.T @ own), None, None


_trace_minus_log_determinant.defvjp(
    _trace_minus_log_determinant_forward, _trace_minus_log_determinant_backward
)


def sample(
    gaussian: Gaussian, num: int, *, key, jitter: Float[Array, ""] | float = JITTER
) -> Float[Array, "num n"]:
    """`num` independent joint samples."""
    factor = cholesky(gaussian.covariance, jitter)
    noise = jax.random.normal(key, (num, gaussian.mean.shape[0]), gaussian.mean.dtype)
    return gaussian.mean[None, :] + noise @ factor.T
