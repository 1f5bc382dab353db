r"""The networks of a neural process, and the bound they are trained on.

Garnelo, Schwarz, Rosenbaum, Viola, Rezende, Eslami and Teh, "Neural Processes", arXiv:1807.01622
(2018), section 2.

symbol      meaning                                             name here
D_i         all observations of task i                          whole
C_i         the context: a part of them                         context
r           representation of a set of observations             summary
z           latent variable of a task                           latent, z
T_i         number of observations of task i                    length
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy import stats
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from metaprior.meta import AbstractObjective, MetaData, TaskBatch


class Latent(NamedTuple):
    r"""$\mathcal N(\mu, \mathrm{diag}\, \sigma^2)$, a belief about the latent variable."""

    mean: Float[Array, " z"]
    std: Float[Array, " z"]

    def at(self, noise: Float[Array, " z"]) -> Float[Array, " z"]:
        """The draw that standard normal `noise` stands for."""
        return self.mean + self.std * noise


def latent_divergence(q: Latent, p: Latent) -> Float[Array, ""]:
    r"""$\mathrm{KL}(q \,\|\, p) = \sum_j \ln \frac{p_\sigma}{q_\sigma}
    + \frac{q_\sigma^2 + (q_\mu - p_\mu)^2}{2 p_\sigma^2} - \frac12$."""
    shift = ((q.mean - p.mean) / p.std) ** 2
    return jnp.sum(jnp.log(p.std / q.std) + 0.5 * ((q.std / p.std) ** 2 + shift - 1))


class Networks(eqx.Module):
    r"""Everything that is learned: $r_i = h(x_i, y_i)$, $q(z \mid r)$ and $p(y \mid x, z)$.

    `empty` is the summary of no observations, for which the mean over them is not defined.
    """

    encoder: eqx.nn.MLP
    empty: Float[Array, " r"]
    latent: eqx.nn.MLP
    decoder: eqx.nn.MLP

    def encode(self, x: Float[Array, "m d"], y: Float[Array, " m"]) -> Float[Array, "m r"]:
        """Representation of each single observation."""
        return jax.vmap(self.encoder)(jnp.concatenate([x, y[:, None]], axis=1))

    def infer(self, encoded: Float[Array, "m r"], chosen: Bool[Array, " m"]) -> Latent:
        """Belief about the task after the `chosen` observations, in whatever order they came."""
        count = jnp.sum(chosen)
        total = jnp.sum(jnp.where(chosen[:, None], encoded, 0.0), axis=0)
        summary = jnp.where(count > 0, total / jnp.maximum(count, 1), self.empty)
        mean, raw_std = jnp.split(self.latent(summary), 2)
        # Bounded on both sides: no belief is ever certain, none is wider than the first guess.
        return Latent(mean, 0.1 + 0.9 * jax.nn.sigmoid(raw_std))

    def decode(self, x: Float[Array, " d"], z: Float[Array, " z"], min_std: Float[Array, ""]):
        """Mean and standard deviation of an observation at `x` of the task that `z` stands for."""
        mean, raw_std = self.decoder(jnp.concatenate([x, z]))
        return mean, min_std + (1 - min_std) * jax.nn.softplus(raw_std)


class SplitBatch(NamedTuple):
    """A mini-batch of tasks, a context of each, and the noise that draws its latent variable."""

    tasks: TaskBatch
    context: Bool[Array, "batch m"]
    noise: Float[Array, "batch z"]


class NeuralProcessObjective(AbstractObjective):
    r"""Negative evidence lower bound of whole tasks given random parts of them.

    $$ J = \frac1n \sum_{i=1}^n \frac{1}{T_i} \Big[
       -\mathbb{E}_{z \sim q(z \mid D_i)} \sum_t \ln p(y_{i,t} \mid x_{i,t}, z)
       + \mathrm{KL}\big( q(z \mid D_i) \,\|\, q(z \mid C_i) \big) \Big] $$

    with $C_i$ a random subset of $D_i$ of a size uniform on $0, \dots, T_i - 1$: from empty
    contexts the networks learn what to predict before a run has begun.
    """

    data: MetaData
    min_std: Float[Array, ""]
    latent_dim: int = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)

    def draw(self, *, key: PRNGKeyArray) -> SplitBatch:
        capacity, size = self.data.y.shape[1], self.batch_size
        key_uniform, key_noise = jax.random.split(key)
        uniform = jax.random.uniform(key_uniform, (2 * size + size * capacity,))
        which, sizes, scores = jnp.split(uniform, [size, 2 * size])
        tasks = self.data.draw(which, self.held_out)
        context = jax.vmap(choose_context)(tasks.mask, sizes, scores.reshape(size, capacity))
        return SplitBatch(tasks, context, jax.random.normal(key_noise, (size, self.latent_dim)))

    def loss(self, model: Networks, batch: SplitBatch):
        def one_task(tasks: TaskBatch, context, noise):
            encoded = model.encode(tasks.x, tasks.y)
            whole = model.infer(encoded, tasks.mask)
            z = whole.at(noise)
            mean, std = jax.vmap(lambda x: model.decode(x, z, self.min_std))(tasks.x)
            each = stats.norm.logpdf(tasks.y, mean, std)
            length = jnp.sum(tasks.mask)
            fit = -jnp.sum(jnp.where(tasks.mask, each, 0.0)) / length
            return fit, latent_divergence(whole, model.infer(encoded, context)) / length

        terms = jax.vmap(one_task)(batch.tasks, batch.context, batch.noise)
        fit, complexity = jax.tree.map(jnp.mean, terms)
        return fit + complexity, {"fit": fit, "complexity": complexity}


def choose_context(
    mask: Bool[Array, " m"], size: Float[Array, ""], scores: Float[Array, " m"]
) -> Bool[Array, " m"]:
    """A random subset of the rows in `mask`, never all; `size` and `scores` are uniform draws."""
    wanted = jnp.floor(size * jnp.sum(mask))
    # Rows in the order of random scores, padding last: the first few are the context.
    place = jnp.argsort(jnp.argsort(jnp.where(mask, scores, 2.0)))
    return place < wanted
