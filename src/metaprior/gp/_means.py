"""Mean functions of a Gaussian process: single points in, one value out."""

import abc

import equinox as eqx
from jaxtyping import Array, Float


class AbstractMean(eqx.Module):
    """The prior expectation of $f$ at a single point."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """Prior expectation of $f(x)$."""


class ConstantMean(AbstractMean):
    """$m(x) = c$."""

    value: Float[Array, ""]

    def __call__(self, x):
        return self.value


class NeuralMean(AbstractMean):
    """$m(x)$ is a network with one output."""

    network: eqx.nn.MLP

    def __call__(self, x):
        return self.network(x)[0]
