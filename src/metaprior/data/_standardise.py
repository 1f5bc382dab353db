"""Zero mean and unit variance, fitted on the meta-training data and on nothing else."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from metaprior.data._space import Space

# Below this spread, relative to the size of the numbers, a column is constant up to rounding.
_RELATIVE_SPREAD = 1e-10


class Standardiser(eqx.Module):
    """Shift and scale of inputs (unit cube) and outputs."""

    x_mean: Float[Array, " d"]
    x_std: Float[Array, " d"]
    y_mean: Float[Array, ""]
    y_std: Float[Array, ""]

    def x(self, x: Float[Array, "... d"]) -> Float[Array, "... d"]:
        """Inputs of the unit cube in standardised units."""
        return (x - jnp.broadcast_to(self.x_mean, x.shape)) / jnp.broadcast_to(self.x_std, x.shape)

    def y(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        """Outputs in standardised units."""
        return (y - self.y_mean) / self.y_std


def fit_standardiser(
    x: Float[np.ndarray, "n m d"],
    y: Float[np.ndarray, "n m"],
    mask: Bool[np.ndarray, "n m"],
    space: Space | None = None,
) -> Standardiser:
    """The standardiser of all observations selected by `mask`.

    A constant column, and a constant `y`, are shifted but not scaled.

    - `space`: columns of its conditional dimensions get the centre and scale of uniform ones, since
      data in which a dimension does not exist say nothing about its values.
    """
    x_mean, x_std = _mean_and_std(x[mask])
    if space is not None and space.conditions is not None:
        centre, scale = space.conditions.usual
        if space.codes is not None:
            centre, scale = space.codes.usual(centre, scale)
        x_mean = np.where(np.isnan(centre), x_mean, centre)
        x_std = np.where(np.isnan(scale), x_std, scale)
    y_mean, y_std = _mean_and_std(y[mask])
    # Arrays, since what is a single number would be converted by a program of its own.
    units = (np.asarray(value) for value in (x_mean, x_std, y_mean, y_std))
    return Standardiser(*map(jnp.asarray, units))


def blank_standardiser(num_columns: int) -> Standardiser:
    """The standardiser that changes nothing."""
    return Standardiser(
        jnp.zeros(num_columns), jnp.ones(num_columns), jnp.asarray(0.0), jnp.asarray(1.0)
    )


def _mean_and_std(values: Float[np.ndarray, "n ..."]):
    mean, std = values.mean(axis=0), values.std(axis=0)
    constant = std <= _RELATIVE_SPREAD * np.max(np.abs(values), axis=0, initial=0.0)
    return mean, np.where(constant, 1.0, std)
