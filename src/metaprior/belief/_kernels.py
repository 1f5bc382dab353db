r"""Covariance functions of features, many of them side by side, with derivatives by hand.

    symbol      meaning                                                 shape
    a, b        features of two sets of points                          (g, n, e), (g, k, e)
    k(a, b)     covariances                                             (g, n, k)
    c           coefficients of linear functions of the covariances     (g, c, n, k)

The formulas are those of `metaprior.gp`, where a kernel belongs to one process and sees one point.
"""

import abc
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from metaprior.belief._distances import Centres, squared_differences, squared_distances
from metaprior.belief._maps import Tape


class AbstractStackedKernel(abc.ABC):
    """Kernels stacked along a leading axis."""

    @abc.abstractmethod
    def forward(
        self, a: Float[np.ndarray, "g n e"], b: Float[np.ndarray, "g k e"]
    ) -> tuple[Float[np.ndarray, "g n k"], Tape]:
        """All covariances, and what `pullback` needs to know of them."""

    def values(
        self, a: Float[np.ndarray, "g n e"], b: Float[np.ndarray, "g k e"]
    ) -> Float[np.ndarray, "g n k"]:
        """All covariances."""
        return self.forward(a, b)[0]

    @abc.abstractmethod
    def pullback(
        self, tape: Tape, coefficients: Float[np.ndarray, "g c n k"]
    ) -> Float[np.ndarray, "g c k e"]:
        r"""Derivatives of $\sum_i c_i\, k(a_i, b)$ by $b$."""

    def pooled(
        self, tape: Tape, coefficients: Float[np.ndarray, "g n k"]
    ) -> Float[np.ndarray, "g k e"]:
        """The same for one function per process, where only their sum is asked for: what is due to
        processes that see the same features may be given to one of them."""
        return self.pullback(tape, coefficients[:, None])[:, 0]

    def pinned(self, a: Float[np.ndarray, "g n e"]) -> "AbstractStackedKernel":
        """The kernel for calls whose first points are always `a`: what these need is kept."""
        return self

    @property
    def is_stationary(self) -> bool:
        """Whether $k(a, a)$ is the same everywhere."""
        return False

    @abc.abstractmethod
    def diagonal(self, a: Float[np.ndarray, "g n e"]) -> Float[np.ndarray, "g n"]:
        """$k(a, a)$ at each point."""

    @abc.abstractmethod
    def diagonal_slopes(self, a: Float[np.ndarray, "g n e"]) -> Float[np.ndarray, "g n e"]:
        """Derivatives of $k(a, a)$ by $a$."""


class AbstractStationaryKernel(AbstractStackedKernel):
    """A kernel with the same variance everywhere."""

    variance: Float[np.ndarray, " g"]

    @property
    def is_stationary(self):
        return True

    def diagonal(self, a):
        return np.repeat(self.variance[:, None], a.shape[1], axis=1)

    def diagonal_slopes(self, a):
        return np.zeros_like(a)


class AbstractRadialKernel(AbstractStationaryKernel):
    r"""$k = \nu\, h(r^2)$ with $r^2 = \sum_j (a_j - b_j)^2 / \ell_j^2$; final classes say $h$.

    - `lengthscale`: one for all features or one for each.
    """

    lengthscale: Float[np.ndarray, "g _"]

    @abc.abstractmethod
    def profile(
        self, squares: Float[np.ndarray, "g n k"]
    ) -> tuple[Float[np.ndarray, "g n k"], Float[np.ndarray, "g n k"]]:
        r"""$h$ and $-2 h'$ of the squared distances, which may be overwritten."""

    def correlation(self, squares: Float[np.ndarray, "g n k"]) -> Float[np.ndarray, "g n k"]:
        r"""$h$ alone; the squared distances may be overwritten."""
        return self.profile(squares)[0]

    @property
    def is_sharp(self) -> bool:
        """Whether the covariance falls from its peak like $r$ rather than $r^2$: there the rounding
        of a small $r^2$ would be seen."""
        return False

    def pinned(self, a):
        if self.is_sharp:
            return self
        return PinnedKernel(self, self.variance, Centres(a, self.lengthscale))

    def values(self, a, b):
        return self.values_at(self._squares(a, b))

    def forward(self, a, b):
        values, steepness = self.forward_at(self._squares(a, b))
        return values, (a, b, steepness)

    def values_at(self, squares: Float[np.ndarray, "g n k"]) -> Float[np.ndarray, "g n k"]:
        """The covariances at squared distances, which may be overwritten."""
        values = self.correlation(squares)
        values *= self.variance[:, None, None]
        return values

    def forward_at(
        self, squares: Float[np.ndarray, "g n k"]
    ) -> tuple[Float[np.ndarray, "g n k"], Float[np.ndarray, "g n k"]]:
        r"""The same, and $-2 \nu h'$."""
        values, steepness = self.profile(squares)
        variance = self.variance[:, None, None]
        values *= variance
        if steepness is not values:
            steepness *= variance
        return values, steepness

    def _squares(
        self, a: Float[np.ndarray, "g n e"], b: Float[np.ndarray, "g k e"]
    ) -> Float[np.ndarray, "g n k"]:
        distances = squared_differences if self.is_sharp else squared_distances
        return distances(a, b, self.lengthscale)

    def pullback(self, tape, coefficients):
        r"""$\sum_i c_i\, \nu\, (-2 h')\, (a_i - b) / \ell^2$."""
        a, b, steepness = tape
        weighted = coefficients * steepness[:, None]
        pulled = weighted.transpose(0, 1, 3, 2) @ a[:, None]
        pulled -= weighted.sum(axis=2)[..., None] * b[:, None]
        pulled /= (self.lengthscale**2)[:, None, None, :]
        return pulled


@dataclass(frozen=True)
class PinnedKernel(AbstractStationaryKernel):
    """A radial kernel for calls whose first points are always the same."""

    base: AbstractRadialKernel
    variance: Float[np.ndarray, " g"]
    centres: Centres

    def values(self, a, b):
        return self.base.values_at(self.centres.squared_distances(b))

    def forward(self, a, b):
        values, steepness = self.base.forward_at(self.centres.squared_distances(b))
        return values, (a, b, steepness)

    def pullback(self, tape, coefficients):
        return self.base.pullback(tape, coefficients)


@dataclass(frozen=True)
class StackedSquaredExponential(AbstractRadialKernel):
    r"""$h(r^2) = e^{-r^2 / 2}$."""

    lengthscale: Float[np.ndarray, "g _"]
    variance: Float[np.ndarray, " g"]

    def profile(self, squares):
        squares *= -0.5
        np.exp(squares, out=squares)
        return squares, squares


@dataclass(frozen=True)
class StackedMatern(AbstractRadialKernel):
    r"""With $s = \sqrt{2 \nu}\, r$ and `smoothness` $\nu$: $h = e^{-s}$ for $\nu = 1/2$,
    $(1 + s)\, e^{-s}$ for $3/2$, and $(1 + s + s^2 / 3)\, e^{-s}$ for $5/2$."""

    lengthscale: Float[np.ndarray, "g _"]
    variance: Float[np.ndarray, " g"]
    smoothness: float

    @property
    def is_sharp(self):
        return self.smoothness == 0.5

    def profile(self, squares):
        s, decay = self._decay(squares)
        if self.smoothness == 0.5:
            # There is no derivative at 0, where the sharpest peak is: 0 stands for it.
            apart = s > 0.0
            return decay, np.where(apart, decay / np.where(apart, s, 1.0), 0.0)
        if self.smoothness == 1.5:
            s += 1.0
            return s * decay, 3.0 * decay
        steepness = s + 1.0
        steepness *= decay
        # What is left is s^2 e^{-s} / 3.
        s *= s
        s *= decay
        s *= 1.0 / 3.0
        s += steepness
        steepness *= 5.0 / 3.0
        return s, steepness

    def correlation(self, squares):
        s, decay = self._decay(squares)
        if self.smoothness == 0.5:
            return decay
        bracket = s + 1.0
        if self.smoothness == 2.5:
            s *= s
            s *= 1.0 / 3.0
            bracket += s
        bracket *= decay
        return bracket

    def _decay(
        self, squares: Float[np.ndarray, "g n k"]
    ) -> tuple[Float[np.ndarray, "g n k"], Float[np.ndarray, "g n k"]]:
        """s, in place of the squared distances, and its exponential."""
        squares *= 2.0 * self.smoothness
        s = np.sqrt(squares, out=squares)
        decay = np.negative(s)
        return s, np.exp(decay, out=decay)


@dataclass(frozen=True)
class StackedRationalQuadratic(AbstractRadialKernel):
    r"""$h(r^2) = (1 + r^2 / 2 \alpha)^{-\alpha}$, with `mixture` $\alpha$."""

    lengthscale: Float[np.ndarray, "g _"]
    variance: Float[np.ndarray, " g"]
    mixture: Float[np.ndarray, " g"]

    def profile(self, squares):
        alpha = self.mixture[:, None, None]
        base = 0.5 * squares / alpha
        values = np.exp(-alpha * np.log1p(base))
        return values, values / (1.0 + base)


@dataclass(frozen=True)
class StackedPeriodic(AbstractStationaryKernel):
    """A squared exponential on circles of circumference `period`."""

    period: Float[np.ndarray, "g _"]
    lengthscale: Float[np.ndarray, " g"]
    variance: Float[np.ndarray, " g"]

    def forward(self, a, b):
        circle = StackedSquaredExponential(self.lengthscale[:, None], self.variance)
        angle = self._angle(b)
        values, tape = circle.forward(_on_circles(self._angle(a)), _on_circles(angle))
        return values, (circle, tape, angle)

    def pullback(self, tape, coefficients):
        circle, inner, angle = tape
        by_sine, by_cosine = np.split(circle.pullback(inner, coefficients), 2, axis=3)
        by_angle = by_sine * np.cos(angle)[:, None] - by_cosine * np.sin(angle)[:, None]
        return by_angle * (2.0 * np.pi / self.period)[:, None, None, :]

    def _angle(self, a: Float[np.ndarray, "g n e"]) -> Float[np.ndarray, "g n e"]:
        return 2.0 * np.pi * a / self.period[:, None, :]


@dataclass(frozen=True)
class StackedLinear(AbstractStackedKernel):
    r"""$k = \sum_j \sigma_j^2\, a_j b_j$."""

    variance: Float[np.ndarray, "g _"]

    def forward(self, a, b):
        scaled = a * self.variance[:, None, :]
        return scaled @ b.transpose(0, 2, 1), scaled

    def pullback(self, tape, coefficients):
        return coefficients.transpose(0, 1, 3, 2) @ tape[:, None]

    def diagonal(self, a):
        return np.sum(self.variance[:, None, :] * a**2, axis=2)

    def diagonal_slopes(self, a):
        return 2.0 * self.variance[:, None, :] * a


@dataclass(frozen=True)
class StackedConstantKernel(AbstractStationaryKernel):
    """The same covariance everywhere."""

    variance: Float[np.ndarray, " g"]

    def forward(self, a, b):
        shape = (*a.shape[:2], b.shape[1])
        return np.broadcast_to(self.variance[:, None, None], shape), b.shape

    def pullback(self, tape, coefficients):
        return np.zeros((*coefficients.shape[:2], *tape[1:]))


@dataclass(frozen=True)
class StackedSum(AbstractStackedKernel):
    """The sum of two kernels."""

    left: AbstractStackedKernel
    right: AbstractStackedKernel

    def pinned(self, a):
        return StackedSum(self.left.pinned(a), self.right.pinned(a))

    @property
    def is_stationary(self):
        return self.left.is_stationary and self.right.is_stationary

    def values(self, a, b):
        return self.left.values(a, b) + self.right.values(a, b)

    def forward(self, a, b):
        (left, left_tape), (right, right_tape) = self.left.forward(a, b), self.right.forward(a, b)
        return left + right, (left_tape, right_tape)

    def pullback(self, tape, coefficients):
        left, right = tape
        return self.left.pullback(left, coefficients) + self.right.pullback(right, coefficients)

    def pooled(self, tape, coefficients):
        left, right = tape
        return self.left.pooled(left, coefficients) + self.right.pooled(right, coefficients)

    def diagonal(self, a):
        return self.left.diagonal(a) + self.right.diagonal(a)

    def diagonal_slopes(self, a):
        return self.left.diagonal_slopes(a) + self.right.diagonal_slopes(a)


@dataclass(frozen=True)
class StackedProduct(AbstractStackedKernel):
    """The product of two kernels."""

    left: AbstractStackedKernel
    right: AbstractStackedKernel

    def forward(self, a, b):
        (left, left_tape), (right, right_tape) = self.left.forward(a, b), self.right.forward(a, b)
        return left * right, (left, left_tape, right, right_tape)

    def pullback(self, tape, coefficients):
        left, left_tape, right, right_tape = tape
        by_left = self.left.pullback(left_tape, coefficients * right[:, None])
        return by_left + self.right.pullback(right_tape, coefficients * left[:, None])

    def diagonal(self, a):
        return self.left.diagonal(a) * self.right.diagonal(a)

    def diagonal_slopes(self, a):
        by_left = self.left.diagonal_slopes(a) * self.right.diagonal(a)[..., None]
        return by_left + self.right.diagonal_slopes(a) * self.left.diagonal(a)[..., None]


@dataclass(frozen=True)
class StackedStretch(AbstractStackedKernel):
    r"""$k(a, b) = k_0(a / \ell, b / \ell)$."""

    base: AbstractStackedKernel
    lengthscale: Float[np.ndarray, "g _"]

    def forward(self, a, b):
        return self.base.forward(self._stretched(a), self._stretched(b))

    def pullback(self, tape, coefficients):
        return self.base.pullback(tape, coefficients) / self.lengthscale[:, None, None, :]

    def diagonal(self, a):
        return self.base.diagonal(self._stretched(a))

    def diagonal_slopes(self, a):
        return self.base.diagonal_slopes(self._stretched(a)) / self.lengthscale[:, None, :]

    def _stretched(self, a: Float[np.ndarray, "g n e"]) -> Float[np.ndarray, "g n e"]:
        return a / self.lengthscale[:, None, :]


def _on_circles(angle: Float[np.ndarray, "g n e"]) -> Float[np.ndarray, "g n _"]:
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=2)
