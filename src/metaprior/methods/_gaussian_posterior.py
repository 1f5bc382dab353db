"""Posteriors whose predictions at a single point are Gaussian."""

import jax.numpy as jnp
from jax.scipy import stats

from metaprior.methods._method import AbstractPosterior


class AbstractGaussianPosterior(AbstractPosterior):
    """A posterior that its moments describe completely at every point."""

    def log_density(self, x, y):
        moments = self.moments(x)
        return stats.norm.logpdf(y, moments.mean, jnp.sqrt(moments.variance))

    def cdf(self, x, y):
        moments = self.moments(x)
        return stats.norm.cdf(y, moments.mean, jnp.sqrt(moments.variance))
