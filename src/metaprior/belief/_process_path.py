"""A function drawn from a Gaussian process after a run: a mean with further centres."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from metaprior.belief._members import AbstractPath
from metaprior.belief._processes import EmbeddedPoints, GaussianProcesses

# At most this many covariances per block.
BLOCK_SIZE = 2**18


@dataclass(frozen=True)
class ProcessPath(AbstractPath):
    r"""$f(x) = m(x) + \sum_i c_i\, k(z_i, x)$, seen in the units of a run."""

    processes: GaussianProcesses
    centres: EmbeddedPoints
    coefficients: Float[np.ndarray, " n"]
    level: float
    unit: float

    def __call__(self, x):
        size = max(BLOCK_SIZE // max(len(self.coefficients), 32), 1)
        blocks = [self._values(x[start : start + size]) for start in range(0, len(x), size)]
        return np.concatenate([np.zeros(0), *blocks])

    def _values(self, x: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
        at = self.processes.embed(x)
        values = at.mean[0] + self.coefficients @ self.processes.between(self.centres, at)[0]
        return self.level + self.unit * values

    def slopes(self, x):
        at, tape = self.processes.embed_with_tape(x)
        coefficients = np.broadcast_to(
            self.coefficients[None, None, :, None], (1, 1, len(self.coefficients), len(x))
        )
        _, kernel_tape = self.processes.between_with_tape(self.centres, at)
        by_mean, by_features = self.processes.section_slopes(
            self.centres, kernel_tape, coefficients
        )
        by_x = self.processes.pullback(tape, 1.0 + by_mean, by_features)
        return self._values(x), self.unit * by_x[0, 0]
