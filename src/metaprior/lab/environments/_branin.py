"""Random Branin functions: two-dimensional, three nearly equal hills."""

from dataclasses import dataclass
from typing import ClassVar, final

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Real, Space
from metaprior.lab.environments._simulated import AbstractFormula, SimulatedFamily


@final
class BraninTask(AbstractFormula):
    r"""The negated Branin function on $[-5, 10] \times [0, 15]$.

    $$ f(x) = -\big( a (x_2 - b x_1^2 + c x_1 - r)^2 + s (1 - t) \cos x_1 + s \big) $$
    """

    space: ClassVar[Space] = Space(x1=Real(-5.0, 10.0), x2=Real(0.0, 15.0))

    a: Float[Array, ""] | float
    b: Float[Array, ""] | float
    c: Float[Array, ""] | float
    r: Float[Array, ""] | float
    s: Float[Array, ""] | float
    t: Float[Array, ""] | float

    def native(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        valley = x[1] - self.b * x[0] ** 2 + self.c * x[0] - self.r
        return -(self.a * valley**2 + self.s * (1.0 - self.t) * jnp.cos(x[0]) + self.s)


@final
@dataclass(frozen=True)
class Branin(SimulatedFamily[BraninTask]):
    r"""Random Branin functions: every parameter uniform around its usual value.

    $a \sim \mathcal U(0.5, 1.5)$, $b \sim \mathcal U(0.1, 0.15)$, $c \sim \mathcal U(1, 2)$,
    $r \sim \mathcal U(5, 7)$, $s \sim \mathcal U(8, 12)$, $t \sim \mathcal U(0.03, 0.05)$.
    """

    num_tasks: int = 20
    run_length: int = 20
    noise_std: float = 0.0

    name: ClassVar[str] = "branin"
    space: ClassVar[Space] = BraninTask.space

    def sample(self, *, key: PRNGKeyArray) -> BraninTask:
        low = jnp.array([0.5, 0.1, 1.0, 5.0, 8.0, 0.03])
        high = jnp.array([1.5, 0.15, 2.0, 7.0, 12.0, 0.05])
        a, b, c, r, s, t = jr.uniform(key, (6,), minval=low, maxval=high)
        return BraninTask(a, b, c, r, s, t)
