"""Surrogates and posteriors of methods whose prior is a Gaussian process."""

from metaprior.data import Run, Standardiser
from metaprior.gp import (
    AbstractObservedProcess,
    ConditionedProcess,
    Spread,
    condition,
    refine,
    sample,
)
from metaprior.methods._method import AbstractGaussianPosterior, AbstractSurrogate, Moments


class GPPosterior(AbstractGaussianPosterior):
    """A conditioned Gaussian process in standardised units, seen in the units of the run."""

    conditioned: ConditionedProcess
    standardiser: Standardiser

    def moments(self, x):
        mean, variance = self.conditioned(self.standardiser.x(x))
        scale = self.standardiser.y_std
        return Moments(
            self.standardiser.y_mean + scale * mean,
            scale**2 * variance,
            scale**2 * self.conditioned.process.noise_variance,
        )

    def covariance(self, x):
        return self.standardiser.y_std**2 * self.conditioned.covariance(self.standardiser.x(x))

    def sample(self, x, num, *, key):
        joint = self.conditioned.joint(self.standardiser.x(x))
        return self.standardiser.y_mean + self.standardiser.y_std * sample(joint, num, key=key)

    def path(self, anchors, *, key):
        path = self.conditioned.path(self.standardiser.x(anchors), key=key)
        standardiser = self.standardiser
        return lambda x: standardiser.y_mean + standardiser.y_std * path(standardiser.x(x))


class GPSurrogate(AbstractSurrogate):
    """A Gaussian process prior in the standardised units of the meta-training data.

    `spread` says how far the noise and the output scale of a new run may be from the learned
    ones (see `metaprior.gp.refine`); with zeros they are the learned ones.
    """

    process: AbstractObservedProcess
    standardiser: Standardiser
    spread: Spread

    def condition(self, run: Run) -> GPPosterior:
        x, y = self.standardiser.x(run.x), self.standardiser.y(run.y)
        process = refine(self.process, x, y, run.mask, self.spread)
        return GPPosterior(condition(process, x, y, run.mask), self.standardiser)
