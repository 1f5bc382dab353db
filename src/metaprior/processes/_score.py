r"""Scores $\nabla_h \ln p(h)$ of the values of a process: exact, or estimated from samples."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.gp import AbstractDensityProcess, Gaussian, Jitter, Reference, log_determinant
from metaprior.processes._whitening import Whitening, population_moments, whitening


class AbstractScore(eqx.Module):
    """The score of one distribution of `n` values, as a function of many of its draws."""

    @abc.abstractmethod
    def __call__(self, values: Float[Array, "k n"]) -> Float[Array, "k n"]:
        """The score at each of the rows of `values`."""


class DensityScore(AbstractScore):
    """The exact score of a process with a density, by automatic differentiation."""

    process: AbstractDensityProcess
    x: Float[Array, "n d"]
    jitter: Jitter

    def __call__(self, values):
        def log_density(row):
            return self.process.log_density(self.x, row, jitter=self.jitter)

        return jax.vmap(jax.grad(log_density))(values)


class EstimatedScore(AbstractScore):
    r"""The score of a Gaussian and a correction, in the coordinates $z$ that whiten the Gaussian.

    $$ \nabla_h \ln p(h) \approx L^{-\top} \big( -z + r(z) \big), \qquad z = L^{-1} (h - m) $$

    Far from all samples, where a correction fades away, the score of the Gaussian remains, and
    leads back to them.
    """

    coordinates: Whitening
    whitened_correction: AbstractScore

    def __call__(self, values):
        return self.coordinates.pull_back(-self.coordinates(values)) + self.correction(values)

    def correction(self, values: Float[Array, "k n"]) -> Float[Array, "k n"]:
        """What the score is, less the score of the Gaussian."""
        return self.coordinates.pull_back(self.whitened_correction(self.coordinates(values)))

    def gaussian(self, jitter: Float[Array, ""]) -> Reference:
        """The Gaussian, which contains the `jitter` already, as one to be compared with."""
        mean, inverse_factor = self.coordinates.mean, self.coordinates.inverse_factor
        return Reference(mean, inverse_factor, -log_determinant(inverse_factor), jitter)


class AbstractScoreEstimator(eqx.Module):
    """A way to estimate a score where only samples exist."""

    @abc.abstractmethod
    def fit_correction(
        self, whitened: Float[Array, "k n"], *, key: PRNGKeyArray | None
    ) -> AbstractScore:
        r"""The estimated $r(z)$ in the score $-z + r(z)$ of samples with mean 0 and covariance 1,
        or nearly so: it is 0 if they are Gaussian."""

    def fit(
        self,
        samples: Float[Array, "k n"],
        *,
        key: PRNGKeyArray | None,
        moments: Gaussian | None = None,
    ) -> EstimatedScore:
        """The estimated score of the distribution that the `samples` come from.

        - `moments`: mean and covariance (with all jitter in it) of that distribution, if they are
          known; otherwise they are estimated as well.

        No gradient flows through an estimate.
        """
        if moments is None and samples.shape[0] < 2:
            raise ValueError(
                f"A score cannot be estimated from {samples.shape[0]} sample; give 2 or more, or "
                "the `moments` of their distribution."
            )
        samples, moments = jax.lax.stop_gradient((samples, moments))
        coordinates = whitening(population_moments(samples) if moments is None else moments)
        return EstimatedScore(coordinates, self.fit_correction(coordinates(samples), key=key))


class MomentMatching(AbstractScoreEstimator):
    """The score of the Gaussian with the moments of the samples, and no correction."""

    def fit_correction(self, whitened, *, key):
        return Zero()


class Zero(AbstractScore):
    """No slope anywhere."""

    def __call__(self, values):
        return jnp.zeros_like(values)
