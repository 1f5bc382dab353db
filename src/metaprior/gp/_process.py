"""A Gaussian process with observation noise: mean, kernel, noise."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from metaprior.gp._abstract_process import AbstractGaussianProcess
from metaprior.gp._gaussian import Gaussian, log_density
from metaprior.gp._kernels import AbstractKernel, Embedded
from metaprior.gp._means import AbstractMean


class AbstractObservedProcess(AbstractGaussianProcess):
    r"""$f \sim \mathcal{GP}(m, k)$, observed as $y = f(x) + \varepsilon$,
    $\varepsilon \sim N(0, \sigma^2)$; final classes say what mean, kernel and noise are."""

    mean: eqx.AbstractVar[AbstractMean]
    kernel: eqx.AbstractVar[AbstractKernel]
    log_noise_variance: eqx.AbstractVar[Float[Array, ""]]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        r"""$\sigma^2$, the variance of an observation given the function."""
        return jnp.exp(self.log_noise_variance)

    def marginal(self, x):
        return Gaussian(jax.vmap(self.mean)(x), self.kernel.matrix(x))

    def mean_and_embedded(
        self, x: Float[Array, "batch n d"]
    ) -> tuple[Float[Array, "batch n"], Embedded]:
        """The mean at all points of a batch, and where the kernel sees them.

        Override it if the two have a part in common: compilers merge what is computed twice, but
        not its gradients.
        """
        mean = jax.vmap(self.mean)(x.reshape(-1, x.shape[-1])).reshape(x.shape[:2])
        return mean, self.kernel.embed_batch(x)

    def observe(self, marginal: Gaussian) -> Gaussian:
        """Joint distribution of noisy observations of the values in `marginal`."""
        noise = self.noise_variance * jnp.eye(marginal.mean.shape[0])
        return Gaussian(marginal.mean, marginal.covariance + noise)

    def log_marginal_likelihood(
        self, x: Float[Array, "n d"], y: Float[Array, " n"], mask: Bool[Array, " n"]
    ) -> Float[Array, ""]:
        r"""$\ln p(y \mid x)$ of the observations selected by `mask`."""
        return log_density(y, self.observe(self.marginal(x)), mask)


class GaussianProcess(AbstractObservedProcess):
    """The process with this mean, kernel and noise."""

    mean: AbstractMean
    kernel: AbstractKernel
    log_noise_variance: Float[Array, ""]
