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


class Matern(AbstractKernel):
    r"""Matérn kernel, for functions that are less smooth than a squared exponential draws.

    With $r^2 = \sum_j (x_j - z_j)^2 / \ell_j^2$ and $s = \sqrt{2\nu} \, r$:

    $$ k(x, z) = \sigma^2 e^{-s} \times \begin{cases}
       1 & \nu = 1/2 \\ 1 + s & \nu = 3/2 \\ 1 + s + s^2 / 3 & \nu = 5/2 \end{cases} $$

    `smoothness` is $\nu$; draws have $\nu - 1/2$ derivatives.
    """

    log_lengthscale: Float[Array, " d"] | Float[Array, ""]
    log_variance: Float[Array, ""]
    smoothness: float = eqx.field(static=True, default=2.5)

    def __check_init__(self):
        if self.smoothness not in _MATERN_POLYNOMIALS:
            raise ValueError(
                f"The smoothness of a Matern kernel is {self.smoothness}; give 0.5, 1.5 or 2.5."
            )

    def embed(self, x):
        return x * jnp.exp(-self.log_lengthscale)

    def between(self, a, b):
        squared = 2 * self.smoothness * jnp.sum((a - b) ** 2)
        # The square root has no derivative at 0, and the kernel (for nu > 1/2) does: it is 0.
        apart = squared > 0
        scaled = jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1.0)), 0.0)
        polynomial = _MATERN_POLYNOMIALS[self.smoothness](scaled)
        return jnp.exp(self.log_variance - scaled) * polynomial


_MATERN_POLYNOMIALS = {
    0.5: lambda s: 1.0,
    1.5: lambda s: 1.0 + s,
    2.5: lambda s: 1.0 + s + s**2 / 3,
}


class Periodic(AbstractKernel):
    r"""$k(x, z) = \sigma^2 \exp\{-2 \sum_j \sin^2(\pi (x_j - z_j) / p_j) / \ell^2\}$.

    The same as a squared exponential on circles of circumference $p_j$, which is how it is
    computed. `log_period` is a scalar, or one value a dimension.
    """

    log_period: Float[Array, " d"] | Float[Array, ""]
    log_lengthscale: Float[Array, ""]
    log_variance: Float[Array, ""]

    def embed(self, x):
        angle = 2 * jnp.pi * x * jnp.exp(-self.log_period)
        return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)]) * jnp.exp(-self.log_lengthscale)

    def between(self, a, b):
        # |circle(x) - circle(z)|^2 = 4 sin^2(pi (x - z) / p).
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
