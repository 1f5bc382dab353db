"""Gaussian processes that learn nothing from past runs: the baselines.

`FixedGP` is the paper's: zero mean, squared-exponential kernel, set hyper-parameters.
`SelfStandardisedGP` is the same in units of the new run, for when there are no past runs.
"""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Run, Standardiser, Tasks, blank_standardiser, fit_standardiser
from metaprior.gp import (
    AbstractKernel,
    ConstantMean,
    GaussianProcess,
    ScaledKernel,
    Spread,
    SquaredExponential,
    StretchedKernel,
    as_arrays,
    condition,
    float64,
)
from metaprior.methods._gp_surrogate import GPPosterior, GPSurrogate
from metaprior.methods._method import AbstractMethod, AbstractSurrogate, OnProgress, traced
from metaprior.methods._neural_gp import settle_kernel

# What a fair random search should cover.
SEARCH_RANGES = {
    "lengthscale": ("log-uniform", 0.05, 2.0),
    "variance": ("log-uniform", 0.1, 10.0),
    "noise_variance": ("log-uniform", 1e-6, 1e-1),
}


@dataclass(frozen=True)
class FixedGP(AbstractMethod):
    r"""Zero mean and $k(x, z) = \nu \, k_0(x / \ell, z / \ell)$, all hyper-parameters set.

    Variance and noise variance refer to outputs, the lengthscale to inputs standardised by the
    meta-training data: the scale of the numbers is all that is taken from past runs. The
    lengthscale is in units of $\sqrt d$, since distances in a $d$-dimensional space grow like that.

    - `kernel`: $k_0$, such as `Matern(smoothness=1.5)` of `metaprior.gp`; `None` is a squared
      exponential.
    """

    lengthscale: float = traced(0.2)
    variance: float = traced(1.0)
    noise_variance: float = traced(1e-4)
    kernel: AbstractKernel | None = None

    def __post_init__(self) -> None:
        settle_kernel(self)

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> GPSurrogate:
        return self._surrogate(fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space))

    @float64
    def blank_surrogate(self, num_columns: int) -> GPSurrogate:
        return self._surrogate(blank_standardiser(num_columns))

    def _surrogate(self, standardiser: Standardiser) -> GPSurrogate:
        process = self.process(standardiser.x_mean.shape[0])
        return GPSurrogate(process, standardiser, Spread(jnp.asarray(0.0), jnp.asarray(0.0)))

    def process(self, num_columns: int) -> GaussianProcess:
        """The fixed prior, in standardised units."""
        lengthscale = self.lengthscale * jnp.sqrt(num_columns)
        kernel = scaled_and_stretched(
            self.kernel, jnp.log(lengthscale), jnp.log(jnp.asarray(self.variance))
        )
        return GaussianProcess(ConstantMean(jnp.asarray(0.0)), kernel, jnp.log(self.noise_variance))

    @float64
    def from_scratch(self, num_columns: int) -> "SelfStandardisedGPSurrogate":
        """A surrogate for a first run, when there are no past runs to standardise by.

        Inputs are scaled as a uniform distribution on the unit cube would be; outputs are
        standardised by the run itself.
        """
        return SelfStandardisedGPSurrogate(self.process(num_columns), num_columns)


@dataclass(frozen=True)
class SelfStandardisedGP(AbstractMethod):
    """`FixedGP` in units of each new run; past runs only name the space."""

    lengthscale: float = traced(0.2)
    variance: float = traced(1.0)
    noise_variance: float = traced(1e-4)

    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> "SelfStandardisedGPSurrogate":
        return self.blank_surrogate(tasks.space.num_inputs)

    def blank_surrogate(self, num_columns: int) -> "SelfStandardisedGPSurrogate":
        fixed = FixedGP(self.lengthscale, self.variance, self.noise_variance)
        return fixed.from_scratch(num_columns)


class SelfStandardisedGPSurrogate(AbstractSurrogate):
    """A fixed Gaussian process on a run standardised by itself."""

    process: GaussianProcess
    num_columns: int = eqx.field(static=True)

    def condition(self, run: Run) -> GPPosterior:
        mean, std = run_mean_and_std(run)
        uniform_std = jnp.sqrt(1.0 / 12.0)
        standardiser = Standardiser(
            jnp.full(self.num_columns, 0.5), jnp.full(self.num_columns, uniform_std), mean, std
        )
        x, y = standardiser.x(run.x), standardiser.y(run.y)
        return GPPosterior(condition(self.process, x, y, run.mask), standardiser)


def scaled_and_stretched(
    base: AbstractKernel | None,
    log_lengthscale: Float[Array, "*d"],
    log_variance: Float[Array, ""],
) -> AbstractKernel:
    r"""$k(x, z) = \nu \, k_0(x / \ell, z / \ell)$; without a `base`, of a squared exponential."""
    if base is None:
        return SquaredExponential(log_lengthscale, log_variance)
    return ScaledKernel(StretchedKernel(as_arrays(base), log_lengthscale), log_variance)


def run_mean_and_std(run: Run) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Mean and standard deviation of the observations; (0, 1) or (y, 1) where they say nothing."""
    count = jnp.maximum(run.length, 1)
    mean = jnp.sum(jnp.where(run.mask, run.y, 0.0)) / count
    variance = jnp.sum(jnp.where(run.mask, (run.y - mean) ** 2, 0.0)) / count
    spread = variance > (1e-10 * mean) ** 2
    return mean, jnp.where(spread, jnp.sqrt(jnp.where(spread, variance, 1.0)), 1.0)
