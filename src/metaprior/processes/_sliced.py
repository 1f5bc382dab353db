r"""Sliced score matching (Song, Garg, Shi and Ermon, 2019): a score that is a network.

symbol      meaning                                             shape
z_i         whitened samples, i = 1..k                          (k, n)
v_i         random directions, E[v v^T] = 1                     (k, n)
s           a candidate for the score of their distribution     (n,) -> (n,)
r           what it differs by from that of a normal, s(z) + z  (n,) -> (n,)
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from metaprior.processes._score import AbstractScore, AbstractScoreEstimator


def sliced_score_matching_loss(
    score: Callable[[Float[Array, "k n"]], Float[Array, "k n"]],
    samples: Float[Array, "k n"],
    directions: Float[Array, "k n"],
) -> Float[Array, ""]:
    r"""An estimate, up to a constant, of half the expected squared error of `score`.

    $$ \frac1k \sum_i \Big( v_i^\top \nabla s(z_i) \, v_i + \tfrac12 \| s(z_i) \|^2 \Big) $$

    The variance-reduced form: for directions with $\mathbb{E}[v v^\top] = I$ the expectation of
    $(v^\top s)^2$ is known. `score` maps each row by itself.
    """
    value, slope = jax.jvp(score, (samples,), (directions,))
    return jnp.mean(jnp.sum(directions * slope, axis=1) + 0.5 * jnp.sum(value**2, axis=1))


class SlicedScoreMatching(AbstractScoreEstimator):
    r"""An estimate $s(z) = -z + a \, r(z)$ of the score with a network $r$, trained on the samples.

    Training begins at $r = 0$, the score of a Gaussian. On finitely many samples the objective
    falls without end, so a quarter of them is left out and says how much of the network to
    believe: $0 \le a \le 1$ minimises the objective there.

    - `width`, `depth`: size of the network.
    - `num_steps`, `learning_rate`, `weight_decay`: of the training by Adam, each step on all
      samples that are not left out.
    """

    width: int = eqx.field(static=True, default=64)
    depth: int = eqx.field(static=True, default=1)
    num_steps: int = eqx.field(static=True, default=200)
    learning_rate: float = 3e-3
    weight_decay: float = 0.1

    def fit_correction(self, whitened, *, key):
        if key is None:
            raise ValueError("Sliced score matching draws random directions; give a `key`.")
        num, n = whitened.shape
        if num < 4:
            raise ValueError(
                f"Sliced score matching got {num} samples and leaves a quarter of them out to test "
                "itself on; give 4 or more."
            )
        key_rows, key_network, key_steps, key_test = jax.random.split(key, 4)
        samples = jax.random.permutation(key_rows, whitened)
        kept = num - num // 4
        network = self._train(
            zero_network(n, self.width, self.depth, key=key_network), samples[:kept], key=key_steps
        )
        return NetworkCorrection(network, _share_to_believe(network, samples[kept:], key=key_test))

    def _train(self, network: PyTree, samples: Float[Array, "k n"], *, key: PRNGKeyArray):
        import optax

        optimiser = optax.adamw(self.learning_rate, weight_decay=self.weight_decay)

        def loss(network, directions):
            return sliced_score_matching_loss(lambda z: -z + network(z), samples, directions)

        def step(carry, key):
            network, state = carry
            directions = jax.random.rademacher(key, samples.shape, samples.dtype)
            updates, state = optimiser.update(jax.grad(loss)(network, directions), state, network)
            return (optax.apply_updates(network, updates), state), None

        keys = jax.random.split(key, self.num_steps)
        (network, _), _ = jax.lax.scan(step, (network, optimiser.init(network)), keys)
        return network


class Network(AbstractScore):
    """A network with tanh units, applied to each row; all its leaves are arrays."""

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    def __call__(self, values):
        *hidden, (weight, bias) = zip(self.weights, self.biases, strict=True)
        for inner_weight, inner_bias in hidden:
            values = jnp.tanh(values @ inner_weight + inner_bias[None, :])
        return values @ weight + bias[None, :]


def zero_network(n: int, width: int, depth: int, *, key: PRNGKeyArray) -> Network:
    """A network from `n` to `n` values that is zero before training."""
    sizes = [n] + depth * [width]
    hidden = [
        jax.random.normal(key, (inputs, outputs)) / jnp.sqrt(inputs)
        for key, inputs, outputs in zip(
            jax.random.split(key, depth), sizes, sizes[1:], strict=False
        )
    ]
    weights = (*hidden, jnp.zeros((width, n)))
    return Network(weights, tuple(jnp.zeros(weight.shape[1]) for weight in weights))


class NetworkCorrection(AbstractScore):
    """A share of what a network says."""

    network: Network
    share: Float[Array, ""]

    def __call__(self, values):
        return self.share * self.network(values)


def _share_to_believe(
    network: Network, samples: Float[Array, "k n"], *, key: PRNGKeyArray
) -> Float[Array, ""]:
    r"""The $a$ in $[0, 1]$ for which $-z + a \, r(z)$ has the least loss on the samples.

    The loss is quadratic in $a$, so that $a = \sum_i g_i / \sum_i \|r(z_i)\|^2$ with
    $g = z^\top r(z) - v^\top \nabla r(z) \, v$. One standard error of the numerator is taken off
    it: what may be chance is not believed.
    """
    directions = jax.random.rademacher(key, samples.shape, samples.dtype)
    value, slope = jax.jvp(network, (samples,), (directions,))
    gains = jnp.sum(samples * value - directions * slope, axis=1)
    gain = jnp.sum(gains) - jnp.std(gains) * jnp.sqrt(gains.shape[0])
    size = jnp.sum(value**2)
    return jnp.clip(gain / jnp.where(size > 0, size, 1.0), 0.0, 1.0)
