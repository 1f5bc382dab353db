r"""A Gaussian process conditioned on a run of zero, one or many points.

symbol      meaning                                              shape
x, y        observed points and values, padded                   (n, d), (n,)
L           Cholesky factor of K + sigma^2 I, identity if padded (n, n)
w           L^{-1} (y - m), zero if padded                       (n,)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from metaprior.gp._gaussian import LOG_2_PI, Gaussian, mask_covariance
from metaprior.gp._kernels import Embedded
from metaprior.gp._linalg import cholesky, invert_factor, log_determinant
from metaprior.gp._process import AbstractObservedProcess

VARIANCE_FLOOR = 1e-12
# Posterior covariances of many nearby anchors are close to singular.
PATH_JITTER = 1e-6


class ConditionedProcess(eqx.Module):
    """The posterior of a Gaussian process, ready to be evaluated at many single points."""

    process: AbstractObservedProcess
    embedded: Embedded
    mask: Bool[Array, " n"]
    inverse_factor: Float[Array, "n n"]
    whitened: Float[Array, " n"]
    log_evidence: Float[Array, ""]

    def __call__(self, x: Float[Array, " d"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Mean and variance of $f(x)$, without noise."""
        process = self.process
        embedded = process.kernel.embed(x)
        shadow = self._shadow(embedded)
        mean = process.mean(x) + shadow @ self.whitened
        variance = process.kernel.between(embedded, embedded) - jnp.sum(shadow**2)
        # Rounding can leave a tiny negative number where the data determine f.
        return mean, jnp.maximum(variance, VARIANCE_FLOOR)

    def joint(self, x: Float[Array, "m d"]) -> Gaussian:
        """Joint distribution of the function values at `x`, without noise."""
        kernel = self.process.kernel
        shadow = jax.vmap(self._shadow)(jax.vmap(kernel.embed)(x))
        mean = jax.vmap(self.process.mean)(x) + shadow @ self.whitened
        return Gaussian(mean, kernel.matrix(x) - shadow @ shadow.T)

    def covariance(self, x: Float[Array, "m d"]) -> Float[Array, "m m"]:
        """Joint covariance of the function values at `x`, without noise; its diagonal is the
        variance at each point."""
        covariance = self.joint(x).covariance
        # Rounding can leave a tiny negative number where the data determine f.
        return covariance + jnp.diag(jnp.maximum(VARIANCE_FLOOR - jnp.diagonal(covariance), 0.0))

    def path(self, anchors: Float[Array, "m d"], *, key: PRNGKeyArray) -> "SampledPath":
        r"""A function drawn from the posterior at the anchors and interpolated between them.

        With $f_A = \mu_A + L_A \varepsilon$ the drawn values, the interpolant is the conditional
        mean $\mu(x) + k(x, A) K_A^{-1} (f_A - \mu_A)$, all under the posterior.
        """
        joint = self.joint(anchors)
        factor = cholesky(joint.covariance, PATH_JITTER)
        noise = jax.random.normal(key, joint.mean.shape, joint.mean.dtype)
        weights = solve_triangular(factor, noise, trans="T", lower=True)
        embedded = jax.vmap(self.process.kernel.embed)(anchors)
        return SampledPath(self, embedded, jax.vmap(self._shadow)(embedded), weights)

    def _shadow(self, embedded: Embedded) -> Float[Array, " n"]:
        r"""$L^{-1} k(X, x)$: what the data already say of the value at one point."""
        kernel = self.process.kernel
        covariance = jax.vmap(lambda seen: kernel.between(seen, embedded))(self.embedded)
        return self.inverse_factor @ jnp.where(self.mask, covariance, 0.0)


class SampledPath(eqx.Module):
    """One smooth function drawn from a posterior, evaluated at single points."""

    posterior: ConditionedProcess
    anchors: Embedded
    shadows: Float[Array, "m n"]
    weights: Float[Array, " m"]

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """Value of the drawn function at `x`."""
        process = self.posterior.process
        embedded = process.kernel.embed(x)
        shadow = self.posterior._shadow(embedded)
        prior = jax.vmap(lambda anchor: process.kernel.between(anchor, embedded))(self.anchors)
        covariance = prior - self.shadows @ shadow
        mean = process.mean(x) + shadow @ self.posterior.whitened
        return mean + covariance @ self.weights


def condition(
    process: AbstractObservedProcess,
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    mask: Bool[Array, " n"],
) -> ConditionedProcess:
    """The posterior given the observations selected by `mask`; with none it is the prior."""
    mean, embedded = jax.tree.map(lambda leaf: leaf[0], process.mean_and_embedded(x[None]))
    observed = process.observe(Gaussian(mean, process.kernel.pairwise(embedded, embedded)))
    factor = cholesky(mask_covariance(observed.covariance, mask))
    inverse_factor = invert_factor(factor)
    whitened = inverse_factor @ jnp.where(mask, y - observed.mean, 0.0)
    evidence = -0.5 * (jnp.sum(whitened**2) + log_determinant(factor) + jnp.sum(mask) * LOG_2_PI)
    return ConditionedProcess(process, embedded, mask, inverse_factor, whitened, evidence)
