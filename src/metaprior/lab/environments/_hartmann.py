"""Random Hartmann functions in six dimensions: four bumps whose heights vary."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from metaprior.data import Real, Space
from metaprior.lab.environments._simulated import AbstractFormula, SimulatedFamily

# Kept as NumPy: a JAX array made at import would be fixed to the precision of that moment.
_STEEPNESS = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_CENTRE = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


@final
class HartmannTask(AbstractFormula):
    r"""The negated Hartmann function on $[0, 1]^6$; the usual $\alpha$ has the maximum 1.

    $$ f(x) = \frac{1}{3.322368} \sum_{i=1}^4 \alpha_i
       \exp\Big( -\sum_{j=1}^6 A_{ij} (x_j - P_{ij})^2 \Big) $$
    """

    space: ClassVar[Space] = Space(
        x1=Real(0.0, 1.0),
        x2=Real(0.0, 1.0),
        x3=Real(0.0, 1.0),
        x4=Real(0.0, 1.0),
        x5=Real(0.0, 1.0),
        x6=Real(0.0, 1.0),
    )

    alpha: Float[ArrayLike, " 4"]

    def native(self, x: Float[Array, " 6"]) -> Float[Array, ""]:
        exponent = jnp.sum(jnp.asarray(_STEEPNESS) * (x[None, :] - jnp.asarray(_CENTRE)) ** 2, 1)
        return jnp.sum(jnp.asarray(self.alpha) * jnp.exp(-exponent)) / 3.322368


@final
@dataclass(frozen=True)
class Hartmann6(SimulatedFamily[HartmannTask]):
    r"""Random Hartmann functions.

    $\alpha_1 \sim \mathcal U(0.5, 1.5)$, $\alpha_2 \sim \mathcal U(0.6, 1.4)$,
    $\alpha_3 \sim \mathcal U(2, 3)$, $\alpha_4 \sim \mathcal U(2.8, 3.6)$.
    """

    num_tasks: int = 30
    run_length: int = 100
    noise_std: float = 0.0

    name: ClassVar[str] = "hartmann6"
    space: ClassVar[Space] = HartmannTask.space

    def sample(self, *, key: PRNGKeyArray) -> HartmannTask:
        low = jnp.array([0.5, 0.6, 2.0, 2.8])
        high = jnp.array([1.5, 1.4, 3.0, 3.6])
        return HartmannTask(jr.uniform(key, (4,), minval=low, maxval=high))
