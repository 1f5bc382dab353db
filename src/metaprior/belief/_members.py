"""What several models of one kind believe about one run, side by side.

What they believe together is `_mixture`'s business. A member is Gaussian at every point, unless its
class says otherwise.

    symbol      meaning                                     shape
    x           points of the unit cube                     (k, d)
    K           number of members                           leading axis of everything
"""

import abc
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._linalg import LOG_2_PI, root

# Rounding can leave a tiny negative number where the data determine the function.
VARIANCE_FLOOR = 1e-12
# Posterior covariances of many nearby anchors are close to singular.
PATH_JITTER = 1e-6


class MemberMoments(NamedTuple):
    """Mean and variance of the function under each member, and the variance of the noise."""

    mean: Float[np.ndarray, "K k"]
    function_variance: Float[np.ndarray, "K k"]
    noise_variance: Float[np.ndarray, " K"]


class MemberSlopes(NamedTuple):
    """Moments, and the derivatives of mean and function variance by the point."""

    moments: MemberMoments
    mean: Float[np.ndarray, "K k d"]
    function_variance: Float[np.ndarray, "K k d"]


class Joint(NamedTuple):
    """Joint distribution of function values."""

    mean: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]


class AbstractPath(abc.ABC):
    """One smooth function drawn from a belief."""

    @abc.abstractmethod
    def __call__(self, x: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
        """Values of the drawn function."""

    @abc.abstractmethod
    def slopes(
        self, x: Float[np.ndarray, "k d"]
    ) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k d"]]:
        """Values and their derivatives by the point."""


class AbstractMembers(abc.ABC):
    """Models of one run, conditioned on it."""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """How many models there are."""

    @abc.abstractmethod
    def moments(self, x: Float[np.ndarray, "k d"]) -> MemberMoments:
        """What each model expects at `x`, in the units of the run."""

    @abc.abstractmethod
    def slopes(self, x: Float[np.ndarray, "k d"]) -> MemberSlopes:
        """The same with derivatives, for a few points."""

    @abc.abstractmethod
    def joint(self, index: int, x: Float[np.ndarray, "k d"]) -> Joint:
        """Joint distribution of the function values at `x` under one model."""

    def log_density(
        self, x: Float[np.ndarray, "k d"], y: Float[np.ndarray, " k"]
    ) -> Float[np.ndarray, "K k"]:
        """Log density of observing each value at its point, under each model."""
        mean, function_variance, noise_variance = self.moments(x)
        variance = function_variance + noise_variance[:, None]
        return -0.5 * ((y[None] - mean) ** 2 / variance + np.log(variance) + LOG_2_PI)

    def cdf(
        self, x: Float[np.ndarray, "k d"], y: Float[np.ndarray, " k"]
    ) -> Float[np.ndarray, "K k"]:
        """Probability of observing at most each value at its point, under each model."""
        from scipy.special import ndtr  # most runs never need it, and it is slow to import

        mean, function_variance, noise_variance = self.moments(x)
        return ndtr((y[None] - mean) / np.sqrt(function_variance + noise_variance[:, None]))

    def sample(
        self, index: int, x: Float[np.ndarray, "k d"], num: int, rng: np.random.Generator
    ) -> Float[np.ndarray, "num k"]:
        """Joint samples of the function values at `x` under one model."""
        joint = self.joint(index, x)
        noise = rng.standard_normal((num, len(x)))
        return joint.mean + noise @ root(joint.covariance).T

    @abc.abstractmethod
    def path(
        self, index: int, anchors: Float[np.ndarray, "a d"], rng: np.random.Generator
    ) -> AbstractPath:
        """A function drawn from one model.

        A process known by its finite marginals only is drawn at the `anchors` and interpolated.
        """
