"""Camelback functions under a random sinusoid: one landscape, tilted differently in each task."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from metaprior.data import Real, Space
from metaprior.lab.environments._simulated import AbstractFormula, SimulatedFamily


@final
class CamelbackTask(AbstractFormula):
    r"""The six-hump camelback, cut off below $-2.5$, plus a sinusoid, on $[-2, 2] \times [-1, 2]$.

    $$ f(x) = g(x) + a \sin(\omega_1 (x_1 - \rho_1)) \sin(\omega_2 (x_2 - \rho_2)) $$
    $$ g(x) = \max\big( -(4 - 2.1 x_1^2 + x_1^4 / 3) x_1^2 - x_1 x_2 - (4 x_2^2 - 4) x_2^2,
       \ -2.5 \big) $$
    """

    space: ClassVar[Space] = Space(x1=Real(-2.0, 2.0), x2=Real(-1.0, 2.0))

    a: Float[Array, ""] | float
    omega: Float[ArrayLike, " 2"]
    rho: Float[ArrayLike, " 2"]

    def native(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        first, second = x[0] ** 2, x[1] ** 2
        humps = (
            -(4.0 - 2.1 * first + first**2 / 3.0) * first
            - x[0] * x[1]
            - (4.0 * second - 4.0) * second
        )
        waves = jnp.sin(jnp.asarray(self.omega) * (x - jnp.asarray(self.rho)))
        return jnp.maximum(humps, -2.5) + self.a * waves[0] * waves[1]


@final
@dataclass(frozen=True)
class Camelback(SimulatedFamily[CamelbackTask]):
    r"""Camelback with sinusoidal noise.

    $a \sim \mathcal U(0.3, 0.5)$, $\omega_i \sim \mathcal U(0.5, 1)$,
    $\rho_i \sim \mathcal N(0, 0.3^2)$.
    """

    num_tasks: int = 20
    run_length: int = 20
    noise_std: float = 0.0

    name: ClassVar[str] = "camelback"
    space: ClassVar[Space] = CamelbackTask.space

    def sample(self, *, key: PRNGKeyArray) -> CamelbackTask:
        a_key, omega_key, rho_key = jr.split(key, 3)
        a = jr.uniform(a_key, minval=0.3, maxval=0.5)
        omega = jr.uniform(omega_key, (2,), minval=0.5, maxval=1.0)
        return CamelbackTask(a, omega, 0.3 * jr.normal(rho_key, (2,)))
