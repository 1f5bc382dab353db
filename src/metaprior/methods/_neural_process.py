"""Neural processes: one network reads a run into a latent variable, another predicts from it.

Garnelo, Schwarz, Rosenbaum, Viola, Rezende, Eslami and Teh, "Neural Processes", arXiv:1807.01622
(2018). The networks and their training objective are in `_neural_process_model.py`.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Run, Standardiser, Tasks
from metaprior.meta import MetaData
from metaprior.methods._gradient import AbstractGradientMethod
from metaprior.methods._method import AbstractSurrogate, Moments, require_depth, traced
from metaprior.methods._mixture import AbstractParticlePosterior
from metaprior.methods._neural_process_model import Latent, Networks, NeuralProcessObjective

# What a fair random search over this method should cover.
SEARCH_RANGES = {
    "learning_rate": ("log-uniform", 1e-4, 1e-2),
    "learning_rate_decay": ("log-uniform", 0.8, 1.0),
    "weight_decay": ("log-uniform", 1e-5, 1e-1),
    "min_std": ("log-uniform", 1e-3, 1e-1),
    "width": ("choice", [32, 64, 128]),
    "depth": ("choice", [2, 3]),
    "latent_dim": ("choice", [4, 8, 16, 32]),
    "num_steps": ("choice", [1000, 4000, 16000]),
    "batch_size": ("choice", [4, 8, 16]),
}


class NeuralProcessPosterior(AbstractParticlePosterior):
    """One Gaussian for each of a few `latents`, the same ones at every point."""

    networks: Networks
    standardiser: Standardiser
    min_std: Float[Array, ""]
    latent: Latent
    latents: Float[Array, "k z"]

    def components(self, x):
        at, scale = self.standardiser.x(x), self.standardiser.y_std
        mean, std = jax.vmap(lambda z: self.networks.decode(at, z, self.min_std))(self.latents)
        mean = self.standardiser.y_mean + scale * mean
        # Given the latent variable the function is known, and what is left is noise.
        return Moments(mean, jnp.zeros_like(mean), (scale * std) ** 2)

    def functions(self, x):
        return self.components(x).mean

    def sample(self, x, num, *, key):
        return jax.vmap(lambda key: jax.vmap(self.path(x, key=key))(x))(jax.random.split(key, num))

    def path(self, anchors, *, key):
        # Every latent variable is a whole function: nothing needs to be interpolated.
        z = self.latent.at(jax.random.normal(key, self.latent.mean.shape))

        def function(x):
            mean, _ = self.networks.decode(self.standardiser.x(x), z, self.min_std)
            return self.standardiser.y_mean + self.standardiser.y_std * mean

        return function


class NeuralProcessSurrogate(AbstractSurrogate):
    """Trained networks, and the standard normal `nodes` at which the latent is integrated."""

    networks: Networks
    standardiser: Standardiser
    min_std: Float[Array, ""]
    nodes: Float[Array, "k z"]

    def condition(self, run: Run) -> NeuralProcessPosterior:
        encoded = self.networks.encode(self.standardiser.x(run.x), self.standardiser.y(run.y))
        latent = self.networks.infer(encoded, run.mask)
        latents = jax.vmap(latent.at)(self.nodes)
        return NeuralProcessPosterior(
            self.networks, self.standardiser, self.min_std, latent, latents
        )


@dataclass(frozen=True)
class NeuralProcess(AbstractGradientMethod):
    """The neural process. All numbers refer to standardised inputs and outputs.

    - `learning_rate`, `learning_rate_decay` (every 1000 steps), `weight_decay`: of AdamW.
    - `num_steps`, `batch_size`: training steps, and tasks in each.
    - `min_std`: least standard deviation of an observation given the latent variable.
    - `width`, `depth`: units in a hidden layer, and hidden layers of encoder and decoder; between
      them is one hidden layer.
    - `latent_dim`: dimension of the latent variable.
    - `num_latents`: how many of its values a prediction averages; even, for they come in pairs.
    """

    learning_rate: float = traced(3e-3)
    learning_rate_decay: float = traced(0.9)
    weight_decay: float = traced(1e-3)
    num_steps: int = 4000
    batch_size: int = 8
    min_std: float = traced(0.01)
    width: int = 64
    depth: int = 2
    latent_dim: int = 8
    num_latents: int = 32

    def __post_init__(self) -> None:
        if self.num_latents < 2 or self.num_latents % 2:
            raise ValueError(
                f"`num_latents` is {self.num_latents}; give an even number, at least 2."
            )
        require_depth(self.depth)

    def initial(self, num_columns: int, *, key: PRNGKeyArray) -> Networks:
        encoder, latent, decoder = jax.random.split(key, 3)
        width, depth, z = self.width, self.depth, self.latent_dim
        # Smooth units, since acquisitions climb gradients; bounded ones, since one outlier among
        # the observations should not drown the others in the mean of their representations.
        return Networks(
            eqx.nn.MLP(num_columns + 1, width, width, depth, jnp.tanh, key=encoder),
            jnp.zeros(width),
            eqx.nn.MLP(width, 2 * z, width, 1, jnp.tanh, key=latent),
            eqx.nn.MLP(num_columns + z, 2, width, depth, jnp.tanh, key=decoder),
        )

    def objective(self, tasks: Tasks, data: MetaData) -> NeuralProcessObjective:
        return NeuralProcessObjective(
            data,
            jnp.asarray(self.min_std),
            self.latent_dim,
            min(self.batch_size, tasks.num_tasks),
        )

    def surrogate(self, model: Networks, standardiser: Standardiser) -> NeuralProcessSurrogate:
        nodes = latent_nodes(self.num_latents, self.latent_dim)
        return NeuralProcessSurrogate(model, standardiser, jnp.asarray(self.min_std), nodes)


def latent_nodes(num: int, dim: int) -> Float[Array, "num dim"]:
    """Points that stand for a standard normal: pairs of opposites with unit variance.

    They are a quadrature rule rather than a random draw, hence the fixed key: predictions of one
    surrogate, and of equal surrogates, are the same every time.
    """
    half = jax.random.normal(jax.random.key(0), (num // 2, dim))
    half = half / jnp.broadcast_to(jnp.sqrt(jnp.mean(half**2, axis=0)), half.shape)
    return jnp.concatenate([half, -half])
