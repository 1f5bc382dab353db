r"""A prior over functions that is a distribution over the weights of a network.

symbol      meaning                                             name here
theta       all weights and biases of one network               Layers
h_theta     the function it computes                            evaluate
mu, s       mean and standard deviation of each weight          mean, exp(log_std)
z           weights in units of the prior: theta = mu + s z     whitened
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.gp import JITTER, AbstractProcess

# Noise variance before training, and weights of the first layer: steep enough that a few units
# can tell the two halves of a standardised domain apart.
INITIAL_NOISE_VARIANCE = 0.1
INPUT_SCALE = 2.0


class Layer(NamedTuple):
    """Weights and biases of one layer."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]


Layers = tuple[Layer, ...]


def evaluate(layers: Layers, x: Float[Array, "n d"]) -> Float[Array, " n"]:
    r"""$h_\theta$ at many points: tanh units in all layers but the last.

    $$ a_0 = x, \qquad a_{l+1} = \tanh\!\big( W_l a_l / \sqrt{\dim a_l} + b_l \big) $$

    Dividing by $\sqrt{\dim a_l}$ makes a weight of one layer matter as much as one of another, so
    that they can share a learning rate.
    """
    values = x
    for depth, (weight, bias) in enumerate(layers):
        inputs = values if depth == 0 else jnp.tanh(values)
        values = inputs @ weight.T / jnp.sqrt(weight.shape[1]) + bias[None, :]
    return values[:, 0]


class NetworkPrior(AbstractProcess):
    r"""$h_\theta$ with $\theta \sim N(\mu, \mathrm{diag}(s^2))$, observed as
    $y = h_\theta(x) + \varepsilon$, $\varepsilon \sim N(0, \sigma^2)$."""

    mean: Layers
    # Flat, since it is no weight matrix: weight decay must not pull it to 0.
    log_std: Float[Array, " p"]
    log_noise_variance: Float[Array, ""]

    @property
    def num_weights(self) -> int:
        """How many weights and biases a network has."""
        return self.log_std.shape[0]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        r"""$\sigma^2$, the variance of an observation given the function."""
        return jnp.exp(self.log_noise_variance)

    def function(self, whitened: Float[Array, " p"], x: Float[Array, "n d"]) -> Float[Array, " n"]:
        r"""$h_\theta(x)$ of the network with weights $\theta = \mu + s z$."""
        mean, unravel = ravel_pytree(self.mean)
        return evaluate(unravel(mean + jnp.exp(self.log_std) * whitened), x)

    def functions(
        self, whitened: Float[Array, "k p"], x: Float[Array, "n d"]
    ) -> Float[Array, "k n"]:
        """The values at `x` of one function for each row of `whitened`."""
        return jax.vmap(lambda z: self.function(z, x))(whitened)

    def sample(self, x, num, *, key, jitter=JITTER):
        key_weights, key_jitter = jax.random.split(key)
        values = self.functions(jax.random.normal(key_weights, (num, self.num_weights)), x)
        return values + jnp.sqrt(jitter) * jax.random.normal(key_jitter, values.shape)


def network_prior(
    num_columns: int,
    width: int,
    depth: int,
    std: Float[Array, ""] | float,
    *,
    key: PRNGKeyArray,
) -> NetworkPrior:
    """A prior around one random network, with `depth` hidden layers of `width` units.

    All weights have standard deviation `std`, in units of their usual size. It should be small:
    means of zero and wide weights would make the hidden units exchangeable, and a prior in which
    each unit may take any place has nowhere to write down what the tasks have in common.
    """
    sizes = [num_columns, *depth * [width], 1]
    mean, scale = [], []
    for inputs, outputs, key_layer in zip(
        sizes[:-1], sizes[1:], jax.random.split(key, depth + 1), strict=True
    ):
        key_weight, key_bias = jax.random.split(key_layer)
        usual = INPUT_SCALE if not mean else 1.0
        weight = usual * jax.random.normal(key_weight, (outputs, inputs))
        # Thresholds of hidden units are spread; the level of the function is not.
        bias = usual * jax.random.normal(key_bias, (outputs,)) * (outputs > 1)
        mean.append(Layer(weight, bias))
        scale.append(Layer(jnp.full(weight.shape, usual), jnp.full(bias.shape, usual)))
    log_std = jnp.log(std) + jnp.log(ravel_pytree(tuple(scale))[0])
    return NetworkPrior(tuple(mean), log_std, jnp.log(INITIAL_NOISE_VARIANCE))
