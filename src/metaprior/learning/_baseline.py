"""The baseline that a learned prior is compared with on held-out runs: a fitted GP."""

import equinox as eqx
import jax.numpy as jnp

from metaprior.gp import float64
from metaprior.methods import AbstractSurrogate, FittedGP


@float64
def fitted_gp(num_columns: int, num_steps: int) -> AbstractSurrogate:
    """A fitted GP, stacked alone; how many steps its fit takes needs no compilation of its own."""
    fitted = FittedGP().from_scratch(num_columns)
    return eqx.tree_at(lambda surrogate: surrogate.num_steps, fitted, jnp.asarray([num_steps]))
