r"""How well models rank the values of a run, and the ensemble weights that follow.

    symbol      meaning                                                     shape
    f           function values at the run's points, drawn from a model     (m,)
    K, A        prior covariance there; with noise, A = K + sigma^2 I       (m, m)
    P           A^{-1}                                                      (m, m)

Feurer, Letham and Bakshy, "Scalable Meta-Learning for Bayesian Optimization", arXiv:1802.02219,
2018.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from metaprior.gp import ConditionedProcess, cholesky, mask_covariance

# Posterior covariances at points close to those of a past run are nearly singular. A thousandth
# of a standard deviation is far below the differences that a past task can rank.
DRAW_JITTER = 1e-6


# Draws of a function at the m points of a run, given the point they are judged at.
JudgedDraws = Callable[[Int[Array, ""]], Float[Array, "m num"]]


def row_noise(length: int, num: int, *, key: PRNGKeyArray) -> Float[Array, "length num"]:
    """Standard normal numbers of which each row depends on its index alone, so that the capacity
    of a run does not change what is drawn for its points."""
    keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(jnp.arange(length))
    return jax.vmap(lambda k: jax.random.normal(k, (num,)))(keys)


def past_losses(
    model: ConditionedProcess,
    x: Float[Array, "m d"],
    y: Float[Array, " m"],
    mask: Bool[Array, " m"],
    num: int,
    *,
    key: PRNGKeyArray,
) -> Float[Array, " num"]:
    """Ranking losses of `num` functions drawn from a model that has not seen the run `x, y`."""
    joint = model.joint(x)
    factor = cholesky(mask_covariance(joint.covariance, mask), DRAW_JITTER)
    f = joint.mean[:, None] + factor @ row_noise(x.shape[0], num, key=key)
    return misranked(lambda j: f, y, mask, num)


def target_losses(
    model: ConditionedProcess,
    x: Float[Array, "m d"],
    y: Float[Array, " m"],
    mask: Bool[Array, " m"],
    num: int,
    *,
    key: PRNGKeyArray,
) -> Float[Array, " num"]:
    """Ranking losses of `num` draws from the model of the run itself, each point left out once."""
    key_function, key_observation = jax.random.split(key)
    function_noise = row_noise(x.shape[0], num, key=key_function)
    observation_noise = row_noise(x.shape[0], num, key=key_observation)
    f = leave_one_out(model, x, mask, function_noise, observation_noise)
    return misranked(f, y, mask, num)


def leave_one_out(
    model: ConditionedProcess,
    x: Float[Array, "m d"],
    mask: Bool[Array, " m"],
    function_noise: Float[Array, "m num"],
    observation_noise: Float[Array, "m num"],
) -> JudgedDraws:
    r"""For each $j$, functions drawn from the posterior without observation $j$.

    A posterior draw is a prior draw corrected by what it gets wrong (Matheron's rule),
    $f = f_0 + K \alpha$ with $\alpha = P (y - f_0 - \varepsilon)$. Without observation $j$, the
    coefficients are $\alpha - P_{\cdot j}\, \alpha_j / P_{jj}$: they solve all equations but
    the $j$-th and leave point $j$ unused. So one factorisation serves all $m$ posteriors:

    $$ f_{-j}(x_k) = f(x_k) - (P K)_{jk}\, \alpha_j / P_{jj}. $$

    The noises are standard normal; with zeros the draws are the posterior means.
    """
    process, inverse_factor = model.process, model.inverse_factor
    prior = process.marginal(x)
    covariance = mask_covariance(prior.covariance, mask)
    drawn = cholesky(covariance) @ function_noise
    observed = drawn + jnp.sqrt(process.noise_variance) * observation_noise
    shift = model.whitened[:, None] - inverse_factor @ jnp.where(mask[:, None], observed, 0.0)
    coefficients = inverse_factor.T @ shift
    precision = inverse_factor.T @ inverse_factor
    f = prior.mean[:, None] + drawn + covariance @ coefficients
    influence = (precision @ covariance) / jnp.diagonal(precision)[:, None]
    return lambda j: f - influence[j][:, None] * coefficients[j][None, :]


def misranked(
    f: JudgedDraws, y: Float[Array, " m"], mask: Bool[Array, " m"], num: int
) -> Float[Array, " num"]:
    r"""$\sum_{j,k} 1[(f_{-j}(x_j) < f_{-j}(x_k)) \oplus (y_j < y_k)]$ for each draw.

    A loop over $j$ keeps the memory small and the draws in the innermost axis, where a CPU
    compares many at once.
    """

    def add(count, j):
        values = f(j)
        wrong = (values[j][None, :] < values) ^ (y[j] < y)[:, None]
        return count + jnp.sum(wrong & (mask & mask[j])[:, None], axis=0, dtype=jnp.int32), None

    count, _ = jax.lax.scan(add, jnp.zeros(num, jnp.int32), jnp.arange(y.shape[0]))
    return count.astype(y.dtype)


def rank_weights(
    past: Float[Array, "n num"],
    target: Float[Array, " num"],
    usable: Bool[Array, " n"],
    discard_quantile: Float[Array, ""],
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Weights of the past models and of the target from their losses in the same draws.

    Against dilution of the weights by many poor models, a past model is discarded if the median
    of its losses is above a quantile of the target's: the deterministic rule of the paper's first
    version. The others share each draw that they win or tie.
    """
    limit = jnp.quantile(target, discard_quantile)
    kept = usable & (jnp.median(past, axis=1) <= limit)
    losses = jnp.concatenate([jnp.where(kept[:, None], past, jnp.inf), target[None, :]])
    best = losses == jnp.min(losses, axis=0)[None, :]
    weights = jnp.mean(best / jnp.sum(best, axis=0)[None, :], axis=1)
    return weights[:-1], weights[-1]
