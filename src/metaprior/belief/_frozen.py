r"""Members as Gaussian processes that have not seen the run, for hosts that condition themselves.

$$ y = \text{level} + \text{unit}\, (f(x) + \varepsilon), \qquad
   f \sim \mathrm{GP}(m, s\, k), \quad \varepsilon \sim N(0, \text{noise}) : $$

conditioned on the run they are the members again. What the run has said of their noise, scale,
level and unit is a part of them and stays.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from metaprior.belief._processes import GaussianProcesses
from metaprior.belief._view import AbstractView


@dataclass(frozen=True)
class FrozenProcesses:
    """One process per member.

    - `views`: what brings points to the cube that the processes know, first to last.
    - `jitter`: what is added to the noise when a covariance is factored.
    """

    views: tuple[AbstractView, ...]
    processes: GaussianProcesses
    scale: Float[np.ndarray, " K"]
    noise_variance: Float[np.ndarray, " K"]
    jitter: Float[np.ndarray, " K"]
    level: Float[np.ndarray, " K"]
    unit: Float[np.ndarray, " K"]
