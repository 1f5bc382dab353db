"""Covariance functions: a map of single points, a formula for two of them, batched in one place."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class AbstractKernel(eqx.Module):
    r"""$k(x, z) = \kappa(e(x), e(z))$: an embedding of each point and a formula for two of them.

    Splitting a kernel so lets every matrix evaluate the embedding, which may be a network, once a
    point rather than once a pair, forwards and backwards.
    """

    @abc.abstractmethod
    def embed(self, x: Float[Array, " d"]) -> Float[Array, " e"]:
        """Where the kernel sees the point `x`."""

    @abc.abstractmethod
    def between(self, a: Float[Array, " e"], b: Float[Array, " e"]) -> Float[Array, ""]:
        """Covariance of the values at two embedded points."""

    def __call__(self, x: Float[Array, " d"], z: Float[Array, " d"]) -> Float[Array, ""]:
        """Covariance of $f(x)$ and $f(z)$."""
        return self.between(self.embed(x), self.embed(z))

    def gram(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """All pairwise covariances: entry `(i, j)` is `self(x[i], z[j])`."""
        return self.pairwise(jax.vmap(self.embed)(x), jax.vmap(self.embed)(z))

    def matrix(self, x: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """Covariance matrix of the values at the points `x`."""
        embedded = jax.vmap(self.embed)(x)
        return self.pairwise(embedded, embedded)

    def pairwise(self, a: Float[Array, "n e"], b: Float[Array, "m e"]) -> Float[Array, "n m"]:
        """All covariances between two sets of embedded points."""
        return jax.vmap(lambda u: jax.vmap(lambda v: self.between(u, v))(b))(a)


class SquaredExponential(AbstractKernel):
    r"""$k(x, z) = \nu \exp\{-\tfrac12 \sum_j (x_j - z_j)^2 / \ell_j^2\}$.

    `log_lengthscale` is a scalar, or one value a dimension.
    """

    log_lengthscale: Float[Array, " d"] | Float[Array, ""]
    log_variance: Float[Array, ""]

    def embed(self, x):
        return x * jnp.exp(-self.log_lengthscale)

    def between(self, a, b):
        return jnp.exp(self.log_variance - 0.5 * jnp.sum((a - b) ** 2))


class FeatureKernel(AbstractKernel):
    r"""$k(x, z) = k_0(\phi(x), \phi(z))$: a base kernel on learned features."""

    base: AbstractKernel
    features: eqx.nn.MLP

    def embed(self, x):
        return self.base.embed(self.features(x))

    def between(self, a, b):
        return self.base.between(a, b)


class ScaledKernel(AbstractKernel):
    r"""$k(x, z) = s \, k_0(x, z)$."""

    base: AbstractKernel
    log_scale: Float[Array, ""]

    def embed(self, x):
        return self.base.embed(x)

    def between(self, a, b):
        return jnp.exp(self.log_scale) * self.base.between(a, b)
