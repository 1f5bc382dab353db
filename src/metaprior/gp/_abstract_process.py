"""Stochastic processes, and what each kind of them can offer.

Learning a prior needs to compare processes at finite sets of points. How well that can be done
depends on what they offer, and the kinds say it: every process can be sampled, some have a
density, and Gaussian ones have marginals in closed form.

Functions are seen through white noise of variance `jitter`, the resolution at which they are
compared: at points close to each other, the density of smooth functions is degenerate.
"""

import abc

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.gp._gaussian import Gaussian, log_density, sample
from metaprior.gp._linalg import JITTER

Jitter = Float[Array, ""] | float


class AbstractProcess(eqx.Module):
    """A random function, known by the values it takes at finitely many points."""

    @abc.abstractmethod
    def sample(
        self, x: Float[Array, "n d"], num: int, *, key: PRNGKeyArray, jitter: Jitter = JITTER
    ) -> Float[Array, "num n"]:
        """`num` independent draws of the values at `x`, differentiable in the process."""


class AbstractDensityProcess(AbstractProcess):
    """A process whose values at finitely many points have a density."""

    @abc.abstractmethod
    def log_density(
        self, x: Float[Array, "n d"], values: Float[Array, " n"], *, jitter: Jitter = JITTER
    ) -> Float[Array, ""]:
        """Log density of taking the `values` at `x`, differentiable in the values."""


class AbstractGaussianProcess(AbstractDensityProcess):
    """A process whose values at finitely many points are jointly Gaussian."""

    @abc.abstractmethod
    def marginal(self, x: Float[Array, "n d"]) -> Gaussian:
        """Joint distribution of the function values at `x`, without noise."""

    def sample(self, x, num, *, key, jitter=JITTER):
        return sample(self.marginal(x), num, key=key, jitter=jitter)

    def log_density(self, x, values, *, jitter=JITTER):
        return log_density(values, self.marginal(x), jitter=jitter)
