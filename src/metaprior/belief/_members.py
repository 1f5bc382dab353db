"""What several models of one kind believe about one run, side by side.

What they believe together is `_mixture`'s business. A member is Gaussian at every point, unless its
class says otherwise.

    symbol      meaning                                     shape
    x           points of the unit cube                     (k, d)
    K           number of members                           leading axis of everything
"""

import abc
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._frozen import FrozenProcesses
from metaprior.belief._linalg import LOG_2_PI, root

# Rounding can leave a tiny negative number where the data determine the function.
VARIANCE_FLOOR = 1e-12
# Posterior covariances of many nearby anchors are close to singular.
PATH_JITTER = 1e-6
# Derivatives of covariances by differences, where a model has no others.
DIFFERENCE = 1e-5
# So many points are compared with anchors at once where only joint distributions are known.
JOINT_ROWS = 64


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


class SmoothMoments(NamedTuple):
    r"""Moments, and the way back from them to the points.

    - `pullback`: from $a_k$ and $b_k$ at each point to the derivatives of
      $\sum_k (a_k \mu_k + b_k v_k)$ by the point.
    """

    moments: MemberMoments
    pullback: Callable[
        [Float[np.ndarray, "K k"], Float[np.ndarray, "K k"]], Float[np.ndarray, "k d"]
    ]


class Joint(NamedTuple):
    """Joint distribution of function values."""

    mean: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]


class Cross(NamedTuple):
    """Covariances of function values at points with those at anchors, under each member.

    - `pullback`: the derivatives by the points of linear functions of these covariances.
    """

    values: Float[np.ndarray, "K k a"]
    pullback: Callable[[Float[np.ndarray, "K c k a"]], Float[np.ndarray, "K c k d"]]


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

    def smooth_moments(self, x: Float[np.ndarray, "k d"]) -> SmoothMoments:
        """The same for derivatives of what is made of the moments; a class may know a shorter way
        than by the derivatives of each model."""
        moments, mean, variance = self.slopes(x)

        def pullback(by_mean, by_variance):  # annotated, it would take longer to define than to run
            total = np.einsum("Kk,Kkd->kd", by_mean, mean)
            return total + np.einsum("Kk,Kkd->kd", by_variance, variance)

        return SmoothMoments(moments, pullback)

    @abc.abstractmethod
    def joint(self, index: int, x: Float[np.ndarray, "k d"]) -> Joint:
        """Joint distribution of the function values at `x` under one model."""

    def joints(self, indices: Sequence[int], x: Float[np.ndarray, "k d"]) -> list[Joint]:
        """The same under several models; a class may work on them at once."""
        return [self.joint(index, x) for index in indices]

    def cross(self, x: Float[np.ndarray, "k d"], anchors: Float[np.ndarray, "a d"]) -> Cross:
        """How function values at `x` vary together with those at `anchors`, in the units of the
        run; by joint distributions and differences unless a class knows better."""

        def pullback(coefficients: Float[np.ndarray, "K c k a"]) -> Float[np.ndarray, "K c k d"]:
            steps = DIFFERENCE * np.eye(x.shape[1])
            columns = [
                (self._cross(x + step, anchors) - self._cross(x - step, anchors))
                / (2.0 * DIFFERENCE)
                for step in steps
            ]
            return np.stack([np.einsum("Kcka,Kka->Kck", coefficients, d) for d in columns], -1)

        return Cross(self._cross(x, anchors), pullback)

    def _cross(
        self, x: Float[np.ndarray, "k d"], anchors: Float[np.ndarray, "a d"]
    ) -> Float[np.ndarray, "K k a"]:
        values = np.zeros((self.count, len(x), len(anchors)))
        for start in range(0, len(x), JOINT_ROWS):
            block = x[start : start + JOINT_ROWS]
            for index in range(self.count):
                joint = self.joint(index, np.vstack([block, anchors]))
                own = joint.covariance[: len(block), len(block) :]
                values[index, start : start + len(block)] = own
        return values

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
        return joint.mean + noise @ root(joint.covariance[None])[0].T

    def samples(
        self,
        indices: Sequence[int],
        nums: Sequence[int],
        x: Float[np.ndarray, "k d"],
        rng: np.random.Generator,
    ) -> list[Float[np.ndarray, "num k"]]:
        """Joint samples under several models, so many of each; a class may work on them at once."""
        return [self.sample(i, x, num, rng) for i, num in zip(indices, nums, strict=True)]

    @abc.abstractmethod
    def path(
        self, index: int, anchors: Float[np.ndarray, "a d"], rng: np.random.Generator
    ) -> AbstractPath:
        """A function drawn from one model.

        A process known by its finite marginals only is drawn at the `anchors` and interpolated.
        """

    def frozen(self) -> FrozenProcesses | None:
        """The members as Gaussian processes before the run; `None` where they are no such
        processes."""
        return None
