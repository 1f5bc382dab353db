r"""A Gaussian process fitted to the new run itself: the strong non-transfer baseline.

As BoTorch's default single-task model does, inputs live in the unit cube, outputs are standardised
by the run, and constant mean, per-dimension lengthscales (ARD), and noise are fitted by marginal
likelihood times weak priors that grow with the dimension (Hvarfner et al. 2024); the output
variance is fitted too.

    parameter               prior
    ln lengthscale_j        N(sqrt 2 + 0.5 ln d, 3)
    ln noise variance       N(-4, 1)
    ln variance             N(0, 1)
    mean                    flat
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from metaprior.data import Run, Standardiser, Tasks
from metaprior.gp import (
    AbstractKernel,
    ConstantMean,
    GaussianProcess,
    as_arrays,
    ascend,
    condition,
    float64,
)
from metaprior.methods._fixed_gp import run_mean_and_std, scaled_and_stretched
from metaprior.methods._gp_surrogate import GPPosterior
from metaprior.methods._method import AbstractMethod, AbstractSurrogate, OnProgress
from metaprior.methods._neural_gp import settle_kernel

LOWEST_NOISE_VARIANCE = 1e-6


@dataclass(frozen=True)
class FittedGP(AbstractMethod):
    r"""A GP whose hyper-parameters are fitted to each new run; past runs only name the space.

    - `num_steps`: quasi-Newton steps from each of a few starting points.
    - `kernel`: $k_0$ in $k(x, z) = \nu \, k_0(x / \ell, z / \ell)$, of which variance $\nu$ and
      lengthscales $\ell$ are fitted and the kernel's own numbers are kept, such as
      `Matern(smoothness=1.5)` of `metaprior.gp`; `None` is a squared exponential.
    """

    num_steps: int = 25
    kernel: AbstractKernel | None = None

    def __post_init__(self) -> None:
        settle_kernel(self)

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> "FittedGPSurrogate":
        return self.from_scratch(tasks.space.num_inputs)

    def blank_surrogate(self, num_columns: int) -> "FittedGPSurrogate":
        return self.from_scratch(num_columns)

    @float64
    def from_scratch(self, num_columns: int) -> "FittedGPSurrogate":
        """The surrogate for a space of that many columns: nothing is learned before the run."""
        kernel = None if self.kernel is None else as_arrays(self.kernel)
        return FittedGPSurrogate(num_columns, self.num_steps, kernel)


class FittedGPSurrogate(AbstractSurrogate):
    """Fits a Gaussian process to whatever run it is conditioned on."""

    num_columns: int = eqx.field(static=True)
    num_steps: int | Int[Array, ""]
    kernel: AbstractKernel | None = None

    def condition(self, run: Run) -> GPPosterior:
        mean, std = run_mean_and_std(run)
        d = self.num_columns
        standardiser = Standardiser(jnp.zeros(d), jnp.ones(d), mean, std)
        y = standardiser.y(run.y)
        process = fit_process(run.x, y, run.mask, num_steps=self.num_steps, kernel=self.kernel)
        return GPPosterior(condition(process, run.x, y, run.mask), standardiser)


def fit_process(
    x, y, mask, *, num_steps: int | Int[Array, ""], kernel: AbstractKernel | None = None
) -> GaussianProcess:
    """The process with the largest posterior density of its hyper-parameters."""
    d = x.shape[1]
    prior_mean, prior_std = hyper_parameter_prior(d)
    # mean, ln noise, ln variance, ln lengthscales
    lower = jnp.concatenate(
        [jnp.array([-3.0, np.log(LOWEST_NOISE_VARIANCE), -4.0]), jnp.full(d, -4.0)]
    )
    upper = jnp.concatenate([jnp.array([3.0, 1.0, 4.0]), jnp.full(d, 6.0)])

    def log_posterior(parameters: Float[Array, " p"]) -> Float[Array, ""]:
        penalty = 0.5 * jnp.sum(((parameters[1:] - prior_mean) / prior_std) ** 2)
        return _process(parameters, kernel).log_marginal_likelihood(x, y, mask) - penalty

    def fit(log_lengthscale, log_noise_variance):
        scales = jnp.stack([jnp.zeros(()), log_noise_variance, jnp.zeros(())])
        start = jnp.concatenate([scales, jnp.full(d, log_lengthscale)])
        return ascend(log_posterior, start, lower, upper, num_steps=num_steps)

    # Short and long waves without noise, and noise around something smooth: the usual modes.
    lengthscales, log_noise = jnp.array([0.2, 0.8, 0.8]), jnp.array([-6.0, -6.0, -1.0])
    found = jax.vmap(fit)(jnp.log(lengthscales) + 0.5 * jnp.log(d), log_noise)
    return _process(found.x[jnp.argmax(found.value)], kernel)


def hyper_parameter_prior(d: int) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Mean and standard deviation of ln noise, ln variance and the ln lengthscales."""
    lengthscale = np.sqrt(2.0) + 0.5 * np.log(d)
    return (
        np.array([-4.0, 0.0, *[lengthscale] * d]),
        np.array([1.0, 1.0, *[np.sqrt(3.0)] * d]),
    )


def _process(parameters: Float[Array, " p"], base: AbstractKernel | None) -> GaussianProcess:
    kernel = scaled_and_stretched(base, parameters[3:], parameters[2])
    return GaussianProcess(ConstantMean(parameters[0]), kernel, parameters[1])
