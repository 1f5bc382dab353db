r"""Scores $\nabla_h \ln p(h)$ of the values of a process: exact, or estimated from samples."""

import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.gp import AbstractDensityProcess, Jitter


class AbstractScore(eqx.Module):
    """The score of one distribution of `n` values, as a function of many of its draws."""

    @abc.abstractmethod
    def __call__(self, values: Float[Array, "m n"]) -> Float[Array, "m n"]:
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


class AbstractScoreEstimator(eqx.Module):
    """A way to estimate a score where only samples exist."""

    @abc.abstractmethod
    def fit(self, samples: Float[Array, "m n"], *, key: PRNGKeyArray) -> AbstractScore:
        """The estimated score of the distribution that the `samples` come from."""
