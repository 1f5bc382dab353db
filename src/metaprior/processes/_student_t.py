r"""Student-t processes: Gaussian processes whose overall scale is itself uncertain.

symbol      meaning                                             name here
nu          degrees of freedom, more than 2                     degrees_of_freedom
m, K        mean and covariance of the values                   marginal of `process`
n           number of values                                    values.shape[0]
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from metaprior.gp import JITTER, AbstractDensityProcess, GaussianProcess, cholesky


class StudentTProcess(AbstractDensityProcess):
    r"""A process with heavier tails than the Gaussian `process` of the same mean and covariance.

    $$ h = m + \sqrt{\frac{\nu - 2}{u}} \, L \varepsilon, \qquad
       u \sim \chi^2_\nu, \quad \varepsilon \sim N(0, I), \quad L L^\top = K $$

    A whole draw is large or small together, so a task of unusual amplitude is no surprise. The
    jitter belongs to $K$ and is scaled with it.
    """

    process: GaussianProcess
    degrees_of_freedom: Float[Array, ""] | float

    def __check_init__(self):
        nu = self.degrees_of_freedom
        if isinstance(nu, (int, float)) and not nu > 2:
            raise ValueError(
                f"A Student-t process with {nu} degrees of freedom has no covariance; give more "
                "than 2."
            )

    def sample(self, x, num, *, key, jitter=JITTER):
        mean, covariance = self.process.marginal(x)
        key_noise, key_scale = jax.random.split(key)
        noise = jax.random.normal(key_noise, (num, mean.shape[0]), mean.dtype)
        nu = self.degrees_of_freedom
        # Half a chi-square variable of nu degrees is a gamma variable of shape nu / 2.
        u = 2 * jax.random.gamma(key_scale, nu / 2, (num, 1), mean.dtype)
        return mean[None, :] + jnp.sqrt((nu - 2) / u) * (noise @ cholesky(covariance, jitter).T)

    def log_density(self, x, values, *, jitter=JITTER):
        mean, covariance = self.process.marginal(x)
        factor = cholesky(covariance, jitter)
        distance = jnp.sum(solve_triangular(factor, values - mean, lower=True) ** 2)
        nu, n = self.degrees_of_freedom, values.shape[0]
        return (
            gammaln((nu + n) / 2)
            - gammaln(nu / 2)
            - 0.5 * n * jnp.log((nu - 2) * jnp.pi)
            - jnp.sum(jnp.log(jnp.diagonal(factor)))
            - 0.5 * (nu + n) * jnp.log1p(distance / (nu - 2))
        )
