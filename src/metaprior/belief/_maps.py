"""Networks, constants and the identity as maps of points, many of them side by side.

    symbol      meaning                                                 shape
    z           points in standardised units, one set per map           (g, n, d)
    a           what the maps return                                    (g, n, o)
    cotangent   c linear functions of a, per map and point              (g, c, n, o)

`pullback` turns linear functions of the values into linear functions of the points: the chain rule,
by hand.
"""

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

Tape = Any


class AbstractMap(abc.ABC):
    """Maps of points to values, stacked along a leading axis."""

    @abc.abstractmethod
    def values(self, z: Float[np.ndarray, "g n d"]) -> Float[np.ndarray, "g n o"]:
        """The values at `z`."""

    @abc.abstractmethod
    def forward(self, z: Float[np.ndarray, "g n d"]) -> tuple[Float[np.ndarray, "g n o"], Tape]:
        """The values at `z`, and what `pullback` needs to know of the way there."""

    @abc.abstractmethod
    def pullback(
        self, tape: Tape, cotangent: Float[np.ndarray, "g c n o"]
    ) -> Float[np.ndarray, "g c n d"]:
        """Derivatives by the points, from derivatives by the values."""

    def pooled(
        self,
        tape: Tape,
        cotangent: Float[np.ndarray, "g n o"],
        factor: Float[np.ndarray, "g _ d"],
    ) -> Float[np.ndarray, "n d"]:
        """The sum over all maps of the derivatives of one function each, times `factor`."""
        return (factor * self.pullback(tape, cotangent[:, None])[:, 0]).sum(axis=0)


@dataclass(frozen=True)
class StackedNetwork(AbstractMap):
    r"""$h_{i+1} = \tanh(W_i h_i + b_i)$, the last layer linear unless `ends_bent`.

    - `weights`, `biases`: per layer, of shapes (g, outputs, inputs) and (g, outputs).
    """

    weights: tuple[Float[np.ndarray, "g _ _"], ...]
    biases: tuple[Float[np.ndarray, "g _"], ...]
    ends_bent: bool = False

    @property
    def num_outputs(self) -> int:
        """The length of what a network returns."""
        return self.weights[-1].shape[1]

    @cached_property
    def _layers(self) -> list[tuple[Float[np.ndarray, "g _ _"], Float[np.ndarray, "g 1 _"], bool]]:
        """Weights and biases as they are applied, and whether a tanh follows."""
        last = len(self.weights) - 1
        return [
            (weight.transpose(0, 2, 1).copy(), bias[:, None, :], i < last or self.ends_bent)
            for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True))
        ]

    def values(self, z):
        # No more than two layers are in memory at once: most of the time of a prediction is here,
        # and memory that is new to the process takes longer than what is computed in it.
        for layer in self._layers:
            z = _applied(z, *layer)
        return z

    def forward(self, z):
        hidden = []
        for layer in self._layers:
            z = _applied(z, *layer)
            hidden.append(z)
        return z, hidden

    def pullback(self, tape, cotangent):
        for i in range(len(self.weights) - 1, -1, -1):
            if self._layers[i][2]:
                slope = tape[i] * tape[i]
                cotangent = cotangent * np.subtract(1.0, slope, out=slope)[:, None]
            cotangent = cotangent @ self.weights[i][:, None]
        return cotangent


def _applied(
    z: Float[np.ndarray, "g n _"],
    weight: Float[np.ndarray, "g _ _"],
    bias: Float[np.ndarray, "g 1 _"],
    bends: bool,
) -> Float[np.ndarray, "g n _"]:
    """One layer of networks."""
    values = z @ weight
    values += bias
    return np.tanh(values, out=values) if bends else values


@dataclass(frozen=True)
class StackedConstant(AbstractMap):
    """The same value everywhere."""

    value: Float[np.ndarray, " g"]

    def values(self, z):
        values = np.empty((*z.shape[:2], 1))
        values[:] = self.value[:, None, None]
        return values

    def forward(self, z):
        return self.values(z), z.shape

    def pullback(self, tape, cotangent):
        return np.zeros((*cotangent.shape[:3], tape[2]))


@dataclass(frozen=True)
class Unchanged(AbstractMap):
    """The points themselves."""

    def values(self, z):
        return z

    def forward(self, z):
        return z, None

    def pullback(self, tape, cotangent):
        return cotangent


@dataclass(frozen=True)
class StackedWarp(AbstractMap):
    r"""$w(x_j) = \sinh(e^{t_j} \operatorname{arsinh} x_j + s_j) - \sinh s_j$ where `is_on`."""

    log_tail: Float[np.ndarray, "g d"]
    skew: Float[np.ndarray, "g d"]
    is_on: Bool[np.ndarray, " g"]

    def values(self, z):
        return self.forward(z)[0]

    def forward(self, z):
        tail, skew = np.exp(self.log_tail)[:, None, :], self.skew[:, None, :]
        is_on = self.is_on[:, None, None]
        inner = tail * np.arcsinh(z) + skew
        slope = np.where(is_on, np.cosh(inner) * tail / np.sqrt(1.0 + z**2), 1.0)
        return np.where(is_on, np.sinh(inner) - np.sinh(skew), z), slope

    def pullback(self, tape, cotangent):
        return cotangent * tape[:, None]
