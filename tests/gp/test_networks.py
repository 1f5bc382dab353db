"""Networks before training: the same weights as those of equinox, to the last bit."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from metaprior.gp import networks


def test_networks_have_the_weights_of_equinox_bit_for_bit():
    keys = jax.random.split(jax.random.key(3))
    found = jax.jit(lambda keys: eqx.filter(networks(4, [1, 3], 8, 2, jnp.tanh, keys=keys), _array))
    expected = jax.jit(
        lambda keys: [
            eqx.filter(eqx.nn.MLP(4, num_out, 8, 2, jnp.tanh, key=key), _array)
            for num_out, key in zip([1, 3], keys, strict=True)
        ]
    )
    jax.tree.map(np.testing.assert_array_equal, found(keys), expected(keys))


def test_networks_can_be_called():
    network = networks(2, [3], 4, 1, jnp.tanh, keys=jax.random.key(0)[None])[0]
    first, last = network.layers
    x = np.array([0.2, -0.7])
    hidden = np.tanh(np.asarray(first.weight) @ x + np.asarray(first.bias))
    expected = np.asarray(last.weight) @ hidden + np.asarray(last.bias)
    np.testing.assert_allclose(network(jnp.asarray(x)), expected, rtol=1e-12)


def _array(leaf):
    return eqx.is_array(leaf)
