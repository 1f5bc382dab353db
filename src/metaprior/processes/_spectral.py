r"""The spectral Stein gradient estimator (Shi, Sun and Zhu, 2018): samples to a score.

symbol      meaning                                             shape
z_i         whitened samples, i = 1..k                          (k, n)
K, D        their kernel matrix and squared distances           (k, k)
b           lengthscale of the kernel                           ()
u_j, l_j    eigenvectors and eigenvalues of K                   (k,), ()
psi_j       eigenfunctions, sqrt(k) / l_j sum_i u_ij K(., z_i)
r           the score, less that of a standard normal           (n,)

Integration by parts turns coefficients of the unknown into averages over samples:

    E[psi_j(z) r(z)] = E[psi_j(z) z - grad psi_j(z)].
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.processes._score import AbstractScore, AbstractScoreEstimator


class SpectralStein(AbstractScoreEstimator):
    r"""An estimate of the score in the leading eigenfunctions of a kernel.

    $$ r(z) = \sum_{j \le J} w_j \beta_j \psi_j(z), \qquad
       \beta_j = \frac1k \sum_i \big( \psi_j(z_i) \, z_i - \nabla \psi_j(z_i) \big) $$

    The original expands the whole score, $-z + r(z)$, and has all $w_j = 1$. Expanding what
    differs from a Gaussian leaves the score of a Gaussian, not zero, wherever the eigenfunctions
    have nothing to say; on the samples, with all eigenfunctions, both are the same. And
    coefficients that do not stand out from their sampling noise $\nu_j / k$ are shrunk to zero,
    $w_j = \max(0, 1 - c \, \nu_j / (k \|\beta_j\|^2))$: with fewer samples than there are
    quadratic functions of $n$ values, most of them do not.

    - `bandwidth_factor`: lengthscale of the squared-exponential kernel, in units of the typical
      distance between samples (the median, over samples, of the mean distance to all others).
    - `eigenvalue_share`: as many of the leading eigenfunctions are kept as make up this share
      of the sum of all eigenvalues.
    - `noise_factor`: $c$ above.

    The defaults are a compromise between Gaussian processes at 20 points, where 50 samples must
    not be over-interpreted, and two-peaked distributions of 1, 2 and 5 values.
    """

    bandwidth_factor: float = 0.5
    eigenvalue_share: float = 0.95
    noise_factor: float = 3.0

    def fit_correction(self, whitened, *, key):
        squared = squared_distances(whitened, whitened)
        # Nearly the median of all distances, without sorting k^2 numbers.
        typical = jnp.median(jnp.mean(jnp.sqrt(squared), axis=1))
        bandwidth = self.bandwidth_factor * typical
        gram = jnp.exp(-0.5 * squared / bandwidth**2)
        values, vectors = jnp.linalg.eigh(gram)
        larger = jnp.cumsum(values[::-1])[::-1] - values
        kept = larger < self.eigenvalue_share * jnp.sum(values)
        # Of samples that coincide some eigenvalues are zero, up to rounding.
        inverse = jnp.where(kept, 1.0, 0.0) / jnp.maximum(values, 1e-10 * values[-1])
        # Row l is the sum over all i of the gradient, with respect to z_i, of K(z_i, z_l).
        gradients = (jnp.sum(gram, axis=1)[:, None] * whitened - gram @ whitened) / bandwidth**2
        # Rows are sqrt(k) beta_j.
        coefficients = vectors.T @ whitened - inverse[:, None] * (vectors.T @ gradients)
        noise = _coefficient_noise(whitened, squared * gram, vectors, inverse, bandwidth)
        size = jnp.sum(coefficients**2, axis=1)
        signal = jnp.maximum(size - self.noise_factor * noise, 0.0) / jnp.maximum(size, 1e-300)
        weights = signal * inverse
        return KernelExpansion(whitened, vectors @ (weights[:, None] * coefficients), bandwidth)


def _coefficient_noise(whitened, spread, vectors, inverse, bandwidth) -> Float[Array, " k"]:
    r"""$\nu_j = \mathbb{E} \| \psi_j(z) z - \nabla \psi_j(z) \|^2$ for all $j$, of a Gaussian $z$.

    Integrated by parts, so that it needs no gradient of each eigenfunction at each sample:

    $$ \nu_j = \mathbb{E} \big[ \psi_j^2 \|z\|^2 - \psi_j (z^\top \nabla + \Delta) \psi_j \big]
       = \sum_i u_{ij}^2 \|z_i\|^2 + \frac{n}{b^2}
         + \Big( \frac{1}{2 b^2} - \frac{1}{b^4} \Big) \frac{u_j^\top (K \circ D) u_j}{\ell_j} $$

    It is $n$ for a constant, and more by one for each degree of a polynomial.
    """
    n = whitened.shape[1]
    lengths = jnp.sum(whitened**2, axis=1)
    distances = inverse * jnp.sum(vectors * (spread @ vectors), axis=0)
    slope = n / bandwidth**2 + (0.5 / bandwidth**2 - 1.0 / bandwidth**4) * distances
    return jnp.maximum(lengths @ vectors**2 + slope, n)


class KernelExpansion(AbstractScore):
    r"""$\sum_i w_i \exp\{-\tfrac12 \|z - z_i\|^2 / b^2\}$ with vectors $w_i$."""

    centres: Float[Array, "k n"]
    weights: Float[Array, "k n"]
    bandwidth: Float[Array, ""]

    def __call__(self, values):
        squared = squared_distances(values, self.centres)
        return jnp.exp(-0.5 * squared / self.bandwidth**2) @ self.weights


def squared_distances(a: Float[Array, "k n"], b: Float[Array, "l n"]) -> Float[Array, "k l"]:
    """Squared Euclidean distances between all rows of `a` and all rows of `b`."""
    lengths = jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1)[None, :]
    return jnp.maximum(lengths - 2 * (a @ b.T), 0.0)
