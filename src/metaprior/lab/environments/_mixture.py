"""Random mixtures of bumps on an interval: the family of the paper's first figure."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from metaprior.data import Real, Space
from metaprior.lab.environments._simulated import AbstractFormula, SimulatedFamily


@final
class MixtureTask(AbstractFormula):
    r"""A weighted sum of a Cauchy, a Gaussian and a wide Cauchy bump on $[-10, 10]$.

    $$ f(x) = 2 w_1 p_1(x) + \tfrac32 w_2 p_2(x) + \tfrac95 w_3 p_3(x) + 1 $$
    $$ p_1 = \frac{1}{\pi (1 + (x - \mu_1)^2)}, \quad
       p_2 = \frac{e^{-(x - \mu_2)^2 / 8}}{\sqrt{2 \pi}}, \quad
       p_3 = \frac{1}{\pi (1 + (x - \mu_3)^2 / 4)} $$

    The paper prints $p_2$ in the third term too, which would leave its $p_3$ and $\mu_3$ unused.
    """

    space: ClassVar[Space] = Space(x=Real(-10.0, 10.0))

    weight: Float[ArrayLike, " 3"]
    location: Float[ArrayLike, " 3"]

    def native(self, x: Float[Array, " 1"]) -> Float[Array, ""]:
        square = (x - jnp.asarray(self.location)) ** 2
        bumps = jnp.stack(
            [
                2.0 / (jnp.pi * (1.0 + square[0])),
                1.5 / jnp.sqrt(2.0 * jnp.pi) * jnp.exp(-square[1] / 8.0),
                1.8 / (jnp.pi * (1.0 + square[2] / 4.0)),
            ]
        )
        return jnp.sum(jnp.asarray(self.weight) * bumps) + 1.0


@final
@dataclass(frozen=True)
class Mixture1d(SimulatedFamily[MixtureTask]):
    r"""Random mixtures: $w_i \sim \mathcal U(0.6, 1.4)$, $\mu_i \sim \mathcal N(m_i, 0.3^2)$.

    The centres $m$ are $(-2, 3, -8)$.
    """

    num_tasks: int = 10
    run_length: int = 10
    noise_std: float = 0.0

    name: ClassVar[str] = "mixture1d"
    space: ClassVar[Space] = MixtureTask.space

    def sample(self, *, key: PRNGKeyArray) -> MixtureTask:
        weight_key, location_key = jr.split(key)
        weight = jr.uniform(weight_key, (3,), minval=0.6, maxval=1.4)
        location = jnp.array([-2.0, 3.0, -8.0]) + 0.3 * jr.normal(location_key, (3,))
        return MixtureTask(weight, location)
