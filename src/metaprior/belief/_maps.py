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
    def forward(self, z: Float[np.ndarray, "g n d"]) -> tuple[Float[np.ndarray, "g n o"], Tape]:
        """The values at `z`, and what `pullback` needs to know of the way there."""

    @abc.abstractmethod
    def pullback(
        self, tape: Tape, cotangent: Float[np.ndarray, "g c n o"]
    ) -> Float[np.ndarray, "g c n d"]:
        """Derivatives by the points, from derivatives by the values."""


@dataclass(frozen=True)
class StackedNetwork(AbstractMap):
    r"""$h_{i+1} = \tanh(W_i h_i + b_i)$, the last layer linear unless `ends_bent`."""

    weights: tuple[Float[np.ndarray, "g o i"], ...]
    biases: tuple[Float[np.ndarray, "g o"], ...]
    ends_bent: bool = False

    @cached_property
    def _forwards(self) -> list[tuple[Float[np.ndarray, "g i o"], Float[np.ndarray, "g 1 o"]]]:
        transposed = (np.ascontiguousarray(w.transpose(0, 2, 1)) for w in self.weights)
        return [(w, b[:, None, :]) for w, b in zip(transposed, self.biases, strict=True)]

    def forward(self, z):
        values, hidden = z, []
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(self._forwards):
            values = values @ weight
            values += bias
            if i < last or self.ends_bent:
                np.tanh(values, out=values)
                hidden.append(values)
        return values, hidden

    def pullback(self, tape, cotangent):
        last = len(self.weights) - 1
        for i in range(last, -1, -1):
            if i < last or self.ends_bent:
                cotangent = cotangent * (1.0 - tape[i] ** 2)[:, None]
            cotangent = cotangent @ self.weights[i][:, None]
        return cotangent


@dataclass(frozen=True)
class StackedConstant(AbstractMap):
    """The same value everywhere."""

    value: Float[np.ndarray, " g"]

    def forward(self, z):
        return np.broadcast_to(self.value[:, None, None], (*z.shape[:2], 1)), z.shape

    def pullback(self, tape, cotangent):
        return np.zeros((*cotangent.shape[:3], tape[2]))


@dataclass(frozen=True)
class Unchanged(AbstractMap):
    """The points themselves."""

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

    def forward(self, z):
        tail, skew = np.exp(self.log_tail)[:, None, :], self.skew[:, None, :]
        is_on = self.is_on[:, None, None]
        inner = tail * np.arcsinh(z) + skew
        slope = np.where(is_on, np.cosh(inner) * tail / np.sqrt(1.0 + z**2), 1.0)
        return np.where(is_on, np.sinh(inner) - np.sinh(skew), z), slope

    def pullback(self, tape, cotangent):
        return cotangent * tape[:, None]
