"""Posteriors that are their moments: a test says what mean and variances are, and nothing else."""

from metaprior.methods import AbstractGaussianPosterior


class MomentsOnly(AbstractGaussianPosterior):
    """A posterior of which nothing joint is asked; a subclass has `moments`."""

    def covariance(self, x):
        raise NotImplementedError

    def sample(self, x, num, *, key):
        raise NotImplementedError

    def path(self, anchors, *, key):
        raise NotImplementedError
