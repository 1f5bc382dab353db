"""Processes known by a sampling function only: simulators, and families of functions."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.gp import JITTER, AbstractProcess


class SampledProcess(AbstractProcess):
    """A process given by a function that draws from it.

    `draw(x, key)` returns the values of one random function at all the points `x`; the same key
    must mean the same function. It is traced by JAX.
    """

    draw: Callable[[Float[Array, "n d"], PRNGKeyArray], Float[Array, " n"]] = eqx.field(static=True)

    def sample(self, x, num, *, key, jitter=JITTER):
        key_function, key_noise = jax.random.split(key)
        values = jax.vmap(lambda key: self.draw(x, key))(jax.random.split(key_function, num))
        return values + jnp.sqrt(jitter) * jax.random.normal(key_noise, values.shape, values.dtype)


def random_sinusoids(frequency: float = 1.0, amplitude: float = 1.0) -> SampledProcess:
    r"""$h(x) = a \sqrt2 \sin(2 \pi f \, v^\top x + \varphi)$ with a random direction $v$, uniform
    phase $\varphi$ and normal amplitude: waves of one frequency and no density in closed form."""

    def draw(x, key):
        key_direction, key_phase, key_amplitude = jax.random.split(key, 3)
        direction = jax.random.normal(key_direction, (x.shape[1],), x.dtype)
        direction = direction / jnp.linalg.norm(direction)
        phase = jax.random.uniform(key_phase, maxval=2 * jnp.pi)
        height = amplitude * jnp.sqrt(2.0) * jax.random.normal(key_amplitude)
        return height * jnp.sin(2 * jnp.pi * frequency * (x @ direction) + phase)

    return SampledProcess(draw)
