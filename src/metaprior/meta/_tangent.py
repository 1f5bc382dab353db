r"""A network as a linear function of its weights, and what observations say about them.

symbol      meaning                                             name here
z           weights in units of the prior, z ~ N(0, I)          whitened
h(z)        values of the network at the observed points        prior.function
c + J z     the linear function that touches h at some weights  offset, jacobian
s           noise variance                                      noise_variance
a           a draw of the prior                                 anchor

For a linear function everything is Gaussian: $y \sim N(c, J J^\top + s I)$, and a draw from the
posterior of $z$ is a draw $a$ from the prior, moved to explain observations that a draw $e$ of the
noise has been added to (Matheron's rule):

$$ z = a + J^\top (J J^\top + s I)^{-1} (y + e - c - J a). $$
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float

from metaprior.gp import Gaussian, cholesky
from metaprior.meta._network_prior import NetworkPrior

# Fractions of a Gauss-Newton step, of which the best is taken; standing still is always one.
STEP_LENGTHS = np.array([0.0, 0.03, 0.1, 0.25, 0.5, 1.0])


class Observations(NamedTuple):
    """A run in standardised units; points and values outside the mask are zero."""

    x: Float[Array, "m d"]
    y: Float[Array, " m"]
    mask: Bool[Array, " m"]

    def plus(self, noise: Float[Array, " m"]) -> "Observations":
        """The same points with `noise` added to their values."""
        return Observations(self.x, jnp.where(self.mask, self.y + noise, 0.0), self.mask)


class Tangent(NamedTuple):
    """The linear function; rows outside the mask are zero and carry no information."""

    offset: Float[Array, " m"]
    jacobian: Float[Array, "m p"]

    def marginal(self, noise_variance: Float[Array, ""]) -> Gaussian:
        """The joint distribution of the observations."""
        noise = noise_variance * jnp.eye(self.offset.shape[0])
        return Gaussian(self.offset, self.jacobian @ self.jacobian.T + noise)

    def explain(
        self, y: Float[Array, " m"], anchor: Float[Array, " p"], noise_variance: Float[Array, ""]
    ) -> Float[Array, " p"]:
        r"""$a + J^\top (J J^\top + s I)^{-1} (y - c - J a)$: the weights that minimise
        $|y - c - J z|^2 / s + |z - a|^2$."""
        offset, covariance = self.marginal(noise_variance)
        surprise = y - offset - self.jacobian @ anchor
        return anchor + cho_solve((cholesky(covariance), True), surprise) @ self.jacobian


def tangent(prior: NetworkPrior, observed: Observations, whitened: Float[Array, " p"]) -> Tangent:
    """The linear function that touches the network at the given weights."""

    def at(x, seen):
        value, slope = jax.value_and_grad(lambda z: prior.function(z, x[None, :])[0])(whitened)
        return seen * value, seen * slope

    values, jacobian = jax.vmap(at)(observed.x, observed.mask)
    return Tangent(values - jacobian @ whitened, jacobian)


def descend(
    prior: NetworkPrior,
    observed: Observations,
    anchor: Float[Array, " p"],
    noise_variances: Float[Array, " steps"],
) -> Float[Array, "steps p"]:
    r"""Gauss-Newton steps from the anchor towards $\min_z |y - h(z)|^2 / s + |z - a|^2$: the
    weights after each of them.

    Every step has its own noise variance $s$: descending from large ones to small ones, a network
    finds the large features of the observations before the small ones.
    """

    def step(z, noise_variance):
        target = tangent(prior, observed, z).explain(observed.y, anchor, noise_variance)

        def cost(z):
            missed = jnp.where(observed.mask, observed.y - prior.function(z, observed.x), 0.0)
            return jnp.sum(missed**2) / noise_variance + jnp.sum((z - anchor) ** 2)

        candidates = z[None, :] + STEP_LENGTHS[:, None] * (target - z)[None, :]
        z = candidates[jnp.argmin(jax.vmap(cost)(candidates))]
        return z, z

    return jax.lax.scan(step, anchor, noise_variances)[1]
