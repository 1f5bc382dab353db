"""Covariance functions: a map of single points, a formula for two of them, batched in one place.

Kernels compose: `k1 + k2` and `k1 * k2` are kernels. Numbers may be arrays or, in a configuration
such as `FPacohMap(kernel=Matern(smoothness=1.5) + Linear())`, plain Python numbers.
"""

import abc
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

Number: TypeAlias = Float[Array, ""] | float
# One number, or one per dimension (ARD).
Numbers: TypeAlias = Float[Array, " d"] | Float[np.ndarray, " d"] | Number
# An embedded point: an array, or the embeddings of the parts of a composed kernel.
Embedded: TypeAlias = PyTree[Float[Array, "..."]]


class AbstractKernel(eqx.Module):
    r"""$k(x, z) = \kappa(e(x), e(z))$: an embedding of each point and a formula for two of them.

    With this split a matrix evaluates the embedding, which may be a network, once per point rather
    than once per pair, forwards and backwards.
    """

    @abc.abstractmethod
    def embed(self, x: Float[Array, " d"]) -> Embedded:
        """Where the kernel sees the point `x`."""

    @abc.abstractmethod
    def between(self, a: Embedded, b: Embedded) -> Float[Array, ""]:
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

    def embed_batch(self, x: Float[Array, "batch n d"]) -> Embedded:
        """All points of a batch, embedded in one pass, so that networks are one matrix product."""
        embedded = jax.vmap(self.embed)(x.reshape(-1, x.shape[-1]))
        return jax.tree.map(lambda leaf: leaf.reshape(*x.shape[:2], *leaf.shape[1:]), embedded)

    def pairwise(self, a: Embedded, b: Embedded) -> Float[Array, "n m"]:
        """All covariances between two sets of embedded points, along leading axes."""
        return jax.vmap(lambda u: jax.vmap(lambda v: self.between(u, v))(b))(a)

    def __add__(self, other: "AbstractKernel") -> "SumKernel":
        return SumKernel(self, other) if isinstance(other, AbstractKernel) else NotImplemented

    def __mul__(self, other: "AbstractKernel") -> "ProductKernel":
        return ProductKernel(self, other) if isinstance(other, AbstractKernel) else NotImplemented


class SquaredExponential(AbstractKernel):
    r"""$k(x, z) = \nu \exp\{-\tfrac12 \sum_j (x_j - z_j)^2 / \ell_j^2\}$.

    `log_lengthscale` is a scalar, or one value per dimension.
    """

    log_lengthscale: Numbers = 0.0
    log_variance: Number = 0.0

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

    log_lengthscale: Numbers = 0.0
    log_variance: Number = 0.0
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
    computed. `log_period` is a scalar, or one value per dimension.
    """

    log_period: Numbers = 0.0
    log_lengthscale: Number = 0.0
    log_variance: Number = 0.0

    def embed(self, x):
        angle = 2 * jnp.pi * x * jnp.exp(-self.log_period)
        return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)]) * jnp.exp(-self.log_lengthscale)

    def between(self, a, b):
        # |circle(x) - circle(z)|^2 = 4 sin^2(pi (x - z) / p).
        return jnp.exp(self.log_variance - 0.5 * jnp.sum((a - b) ** 2))


class RationalQuadratic(AbstractKernel):
    r"""$k(x, z) = \sigma^2 \big( 1 + r^2 / (2 \alpha) \big)^{-\alpha}$ with
    $r^2 = \sum_j (x_j - z_j)^2 / \ell_j^2$: squared exponentials of many lengthscales, mixed.

    `log_lengthscale` is a scalar, or one value per dimension; `log_mixture` is $\ln \alpha$, and
    the larger it is, the closer the kernel comes to a squared exponential.
    """

    log_lengthscale: Numbers = 0.0
    log_variance: Number = 0.0
    log_mixture: Number = 0.0

    def embed(self, x):
        return x * jnp.exp(-self.log_lengthscale)

    def between(self, a, b):
        alpha = jnp.exp(self.log_mixture)
        half_square = 0.5 * jnp.sum((a - b) ** 2)
        return jnp.exp(self.log_variance - alpha * jnp.log1p(half_square / alpha))


class Linear(AbstractKernel):
    r"""$k(x, z) = \sum_j \sigma_j^2 \, x_j z_j$: linear functions through the origin.

    `log_variance` is a scalar, or one value per dimension; add a `Constant` for an intercept.
    """

    log_variance: Numbers = 0.0

    def embed(self, x):
        return x * jnp.exp(0.5 * self.log_variance)

    def between(self, a, b):
        return a @ b


class Constant(AbstractKernel):
    r"""$k(x, z) = \sigma^2$: constant functions. In a sum it is an unknown level, in a product a
    scale."""

    log_variance: Number = 0.0

    def embed(self, x):
        return x[:0]

    def between(self, a, b):
        return jnp.exp(self.log_variance)


class AbstractComposedKernel(AbstractKernel):
    """A kernel made of two, each of which embeds a point by itself."""

    left: eqx.AbstractVar[AbstractKernel]
    right: eqx.AbstractVar[AbstractKernel]

    def embed(self, x):
        return self.left.embed(x), self.right.embed(x)


class SumKernel(AbstractComposedKernel):
    r"""$k(x, z) = k_1(x, z) + k_2(x, z)$, of the sum of two independent functions."""

    left: AbstractKernel
    right: AbstractKernel

    def between(self, a, b):
        return self.left.between(a[0], b[0]) + self.right.between(a[1], b[1])


class ProductKernel(AbstractComposedKernel):
    r"""$k(x, z) = k_1(x, z) \, k_2(x, z)$: points are similar if both kernels say so."""

    left: AbstractKernel
    right: AbstractKernel

    def between(self, a, b):
        return self.left.between(a[0], b[0]) * self.right.between(a[1], b[1])


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
    log_scale: Number

    def embed(self, x):
        return self.base.embed(x)

    def between(self, a, b):
        return jnp.exp(self.log_scale) * self.base.between(a, b)


class StretchedKernel(AbstractKernel):
    r"""$k(x, z) = k_0(x / \ell, z / \ell)$, with a lengthscale for all or one per dimension."""

    base: AbstractKernel
    log_lengthscale: Numbers

    def embed(self, x):
        return self.base.embed(x * jnp.exp(-self.log_lengthscale))

    def between(self, a, b):
        return self.base.between(a, b)
