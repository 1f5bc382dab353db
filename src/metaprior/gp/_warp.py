r"""Input warping: one monotone curve per dimension, learned with everything else.

Functions often vary faster in one part of a dimension than in another, in the same way for all
tasks: a learning rate given on a linear scale, a depth that stops mattering. The curve

$$ w(x_j) = \sinh\big( e^{t_j} \operatorname{arsinh}(x_j) + s_j \big) - \sinh s_j $$

bends both tails by $t_j$ and skews by $s_j$; with zeros it is the identity, and 0 stays 0.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Warp(eqx.Module):
    """A curve for each dimension; `is_on` switches them on, and is not trained."""

    log_tail: Float[Array, " d"]
    skew: Float[Array, " d"]
    is_on: Bool[Array, ""]

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """Where the process sees the point `x`."""
        bent = jnp.sinh(jnp.exp(self.log_tail) * jnp.arcsinh(x) + self.skew) - jnp.sinh(self.skew)
        return jnp.where(self.is_on, bent, x)
