r"""Bayesian linear regression on learned features, many of them side by side.

    symbol      meaning                                                shape
    Phi, y      features and values of the run                         (g, n, D), (g, n)
    w           weights, w ~ N(0, a I)                                 (D,)
    s           noise variance, with the jitter: y = Phi w + noise     ()
    U, S, V     singular vectors and values, Phi = U S V^T             (n, r), (r,), (D, D)

In the coordinates $u = V^\top w$ the posterior is diagonal:

$$ u_k \sim N\Big( \frac{a\, S_k\, q_k}{a S_k^2 + s}, \frac{a s}{a S_k^2 + s} \Big), \qquad
   q = U^\top y, $$

with $S_k = 0$ for what the run says nothing of. No number is a difference of larger ones, be there
more points or more features, and one factorisation serves all noises and scales.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._frozen import FrozenProcesses
from metaprior.belief._kernels import StackedLinear
from metaprior.belief._linalg import JITTER
from metaprior.belief._maps import StackedConstant, StackedNetwork, Unchanged
from metaprior.belief._members import (
    VARIANCE_FLOOR,
    AbstractMembers,
    AbstractPath,
    Joint,
    MemberMoments,
    MemberSlopes,
)
from metaprior.belief._mixture import Groups, equal_group
from metaprior.belief._processes import GaussianProcesses, pick
from metaprior.belief._refine import LogSpread, best_steps

BLOCK_ROWS = 1024


@dataclass(frozen=True)
class LearnedFeatures:
    """Networks on standardised inputs."""

    x_mean: Float[np.ndarray, "g d"]
    x_std: Float[np.ndarray, "g d"]
    network: StackedNetwork

    def __call__(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "g n D"]:
        return self.network.forward(self._standardised(x))[0]

    def slopes(
        self, x: Float[np.ndarray, "n d"], by_features: Float[np.ndarray, "g c n D"]
    ) -> Float[np.ndarray, "g c n d"]:
        """Derivatives by the points, from derivatives by the features."""
        _, tape = self.network.forward(self._standardised(x))
        return self.network.pullback(tape, by_features) / self.x_std[:, None, None, :]

    def _standardised(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "g n d"]:
        return (x[None] - self.x_mean[:, None, :]) / self.x_std[:, None, :]


@dataclass(frozen=True)
class LinearBelief(AbstractBelief):
    """Features and variances that were learned; the weights are the task's."""

    features: LearnedFeatures
    weight_variance: Float[np.ndarray, " g"]
    noise_variance: Float[np.ndarray, " g"]
    spread: LogSpread
    y_mean: Float[np.ndarray, " g"]
    y_std: Float[np.ndarray, " g"]

    def groups(self, x, y) -> Groups:
        features = self.features(x)
        residual = (y[None] - self.y_mean[:, None]) / self.y_std[:, None]
        num, dimension = features.shape[1:]
        # All of V is needed, also where there are fewer points than features.
        left, singular, right = np.linalg.svd(features, full_matrices=num < dimension)
        rank = singular.shape[1]
        projected = np.einsum("gnr,gn->gr", left[:, :, :rank], residual)
        beyond = residual - np.einsum("gnr,gr->gn", left[:, :, :rank], projected)
        noise, weight_variance = self._refined(singular, projected, beyond)
        total = weight_variance[:, None] * singular**2 + (noise + JITTER)[:, None]
        mean = weight_variance[:, None] * singular * projected / total
        unseen = np.broadcast_to(weight_variance[:, None], (len(noise), dimension - rank))
        seen = (weight_variance * (noise + JITTER))[:, None] / total
        return (
            equal_group(
                LinearMembers(
                    self.features,
                    right,
                    np.einsum("gr,grD->gD", mean, right[:, :rank]),
                    np.concatenate([seen, unseen], axis=1),
                    weight_variance,
                    noise,
                    self.y_mean,
                    self.y_std,
                )
            ),
        )

    def _refined(
        self,
        singular: Float[np.ndarray, "g r"],
        projected: Float[np.ndarray, "g r"],
        beyond: Float[np.ndarray, "g n"],
    ) -> tuple[Float[np.ndarray, " g"], Float[np.ndarray, " g"]]:
        """Noise and weight variance that suit the run best."""
        eigenvalues = self.weight_variance[:, None] * singular**2
        squares = projected**2
        num_zero = beyond.shape[1] - singular.shape[1]
        if num_zero > 0:
            # What no weights explain lies along one of the directions that features do not reach.
            eigenvalues = np.pad(eigenvalues, ((0, 0), (0, 1)))
            rest = np.sum(beyond**2, axis=1, keepdims=True)
            squares = np.concatenate([squares, rest], axis=1)
            num_zero -= 1
        noise_step, scale_step = best_steps(
            eigenvalues, squares, self.noise_variance, self.spread, num_zero
        )
        return self.noise_variance * np.exp(noise_step), self.weight_variance * np.exp(scale_step)


@dataclass(frozen=True)
class LinearMembers(AbstractMembers):
    """Beliefs about the weights of one task, by the diagonal posterior of their coordinates."""

    features: LearnedFeatures
    coordinates: Float[np.ndarray, "g D D"]
    weight_mean: Float[np.ndarray, "g D"]
    coordinate_variance: Float[np.ndarray, "g D"]
    weight_variance: Float[np.ndarray, " g"]
    noise_variance: Float[np.ndarray, " g"]
    level: Float[np.ndarray, " g"]
    unit: Float[np.ndarray, " g"]

    @property
    def count(self):
        return len(self.unit)

    def moments(self, x):
        starts = range(0, len(x), BLOCK_ROWS)
        blocks = [self._moments(self.features(x[s : s + BLOCK_ROWS])) for s in starts]
        noise = self.unit**2 * self.noise_variance
        if not blocks:
            empty = np.zeros((self.count, 0))
            return MemberMoments(empty, empty, noise)
        mean, variance = (np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True))
        return MemberMoments(mean, variance, noise)

    def _moments(
        self, features: Float[np.ndarray, "g k D"]
    ) -> tuple[Float[np.ndarray, "g k"], Float[np.ndarray, "g k"]]:
        mean = np.einsum("gkD,gD->gk", features, self.weight_mean)
        seen = features @ self.coordinates.transpose(0, 2, 1)
        variance = np.einsum("gkD,gD->gk", seen**2, self.coordinate_variance)
        unit = self.unit[:, None]
        floored = unit**2 * np.maximum(variance, VARIANCE_FLOOR)
        return self.level[:, None] + unit * mean, floored

    def slopes(self, x):
        features = self.features(x)
        seen = features @ self.coordinates.transpose(0, 2, 1)
        by_variance = 2.0 * (seen * self.coordinate_variance[:, None, :]) @ self.coordinates
        by_mean = np.broadcast_to(self.weight_mean[:, None, :], features.shape)
        by_x = self.features.slopes(x, np.stack([by_mean, by_variance], axis=1))
        unit = self.unit[:, None, None]
        noise = self.unit**2 * self.noise_variance
        moments = MemberMoments(*self._moments(features), noise)
        return MemberSlopes(moments, unit * by_x[:, 0], unit**2 * by_x[:, 1])

    def joint(self, index, x):
        own = pick(self, [index])
        features = own.features(x)[0]
        seen = features @ own.coordinates[0].T
        unit = own.unit[0]
        covariance = unit**2 * (seen * own.coordinate_variance) @ seen.T
        return Joint(own.level[0] + unit * features @ own.weight_mean[0], covariance)

    def path(self, index, anchors, rng):
        # Drawn weights are a whole function: there is nothing to interpolate.
        own = pick(self, [index])
        drawn = np.sqrt(own.coordinate_variance[0]) * rng.standard_normal(own.weight_mean.shape[1])
        weights = own.weight_mean[0] + drawn @ own.coordinates[0]
        return LinearPath(own.features, weights, own.level[0], own.unit[0])

    def frozen(self):
        """A linear function of features is a process whose kernel is linear in them."""
        zeros, ones = np.zeros(self.count), np.ones(self.count)
        by_feature = np.repeat(self.weight_variance[:, None], self.weight_mean.shape[1], axis=1)
        processes = GaussianProcesses(
            self.features.x_mean,
            self.features.x_std,
            Unchanged(),
            StackedConstant(zeros),
            self.features.network,
            StackedLinear(by_feature),
            zeros,
            zeros,
        )
        jitter = np.full(self.count, JITTER)
        return FrozenProcesses(
            (), processes, ones, self.noise_variance, jitter, self.level, self.unit
        )


@dataclass(frozen=True)
class LinearPath(AbstractPath):
    r"""$f(x) = \phi(x)^\top w$, seen in the units of a run."""

    features: LearnedFeatures
    weights: Float[np.ndarray, " D"]
    level: float
    unit: float

    def __call__(self, x):
        return self.level + self.unit * self.features(x)[0] @ self.weights

    def slopes(self, x):
        by_features = np.broadcast_to(self.weights, (1, 1, len(x), len(self.weights)))
        return self(x), self.unit * self.features.slopes(x, by_features)[0, 0]
