"""Networks before training, with all their random numbers drawn at once.

`equinox.nn.MLP` draws for every layer by itself, and each draw is a loop for the compiler to
optimise: seconds of compilation for a few thousand numbers. The first numbers of a long draw are
those of a short one, so one draw serves all layers, with the same weights to the last bit.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key


def networks(
    num_in: int,
    nums_out: list[int],
    width: int,
    depth: int,
    activation: Callable[[Array], Array],
    *,
    keys: Key[Array, " networks"],
) -> list[eqx.nn.MLP]:
    """A network for each number of outputs, with `depth` hidden layers of `width` units; the
    weights of a layer are uniform within one over the square root of the number of its inputs."""
    sizes = [num_in] + [width] * depth
    limits = jnp.asarray(1.0 / np.sqrt(sizes))
    blank = [
        eqx.filter_eval_shape(
            lambda key, out=num_out: eqx.nn.MLP(num_in, out, width, depth, activation, key=key),
            keys[0],
        )
        for num_out in nums_out
    ]
    largest = max(layer.weight.size for each in blank for layer in each.layers)

    def draw(key, limit):
        return jax.random.uniform(key, (largest,), minval=-limit, maxval=limit)

    # Keys and draws of each network, each layer, and its weights and biases.
    split = jax.vmap(jax.vmap(jax.random.split))(
        jax.vmap(lambda key: jax.random.split(key, depth + 1))(keys)
    )
    each_limit = jnp.broadcast_to(limits[None, :, None], split.shape)
    draws = jax.vmap(draw)(split.ravel(), each_limit.ravel()).reshape(*split.shape, largest)
    return [_filled(each, draws[i]) for i, each in enumerate(blank)]


def _filled(blank: eqx.nn.MLP, draws: Float[Array, "layers 2 largest"]) -> eqx.nn.MLP:
    """The network with the first numbers of the draws for weights and biases of each layer."""

    def parts(network: eqx.nn.MLP) -> list:
        return [part for layer in network.layers for part in (layer.weight, layer.bias)]

    numbers = [
        draw[: part.size].reshape(part.shape)
        for part, draw in zip(parts(blank), draws.reshape(-1, draws.shape[-1]), strict=True)
    ]
    return eqx.tree_at(parts, blank, numbers)
