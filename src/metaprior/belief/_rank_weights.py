r"""How well models rank the values of a run, and the ensemble weights that follow.

    symbol      meaning                                                     shape
    f           function values at the run's points, drawn from a model     (m, num)
    K, A        prior covariance there; with noise, A = K + sigma^2 I       (m, m)
    P           A^{-1}                                                      (m, m)

Feurer, Letham and Bakshy, "Scalable Meta-Learning for Bayesian Optimization", arXiv:1802.02219,
2018.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from metaprior.belief._conditioned import ConditionedProcesses
from metaprior.belief._linalg import cholesky
from metaprior.belief._random import Key, fold_in, normal, split

# Posterior covariances at points close to those of a past run are nearly singular. A thousandth
# of a standard deviation is far below the differences that a past task can rank.
DRAW_JITTER = 1e-6


def past_losses(
    past: ConditionedProcesses,
    x: Float[np.ndarray, "m d"],
    y: Float[np.ndarray, " m"],
    num: int,
    key: Key,
) -> Float[np.ndarray, "n num"]:
    """Ranking losses of `num` functions drawn from each model that has not seen the run."""
    losses = []
    for index in range(past.count):
        joint = past.joint(index, x)
        noise = row_noise(len(x), num, fold_in(key, index))
        f = joint.mean[:, None] + cholesky(joint.covariance, DRAW_JITTER) @ noise
        losses.append(misranked(lambda j, f=f: f, y, num))
    return np.stack(losses)


def target_losses(
    target: ConditionedProcesses,
    x: Float[np.ndarray, "m d"],
    y: Float[np.ndarray, " m"],
    num: int,
    key: Key,
) -> Float[np.ndarray, " num"]:
    """Ranking losses of `num` draws from the model of the run itself, each point left out once."""
    key_function, key_observation = split(key)
    noises = row_noise(len(x), num, key_function), row_noise(len(x), num, key_observation)
    return misranked(leave_one_out(target, *noises), y, num)


def leave_one_out(
    target: ConditionedProcesses,
    function_noise: Float[np.ndarray, "m num"],
    observation_noise: Float[np.ndarray, "m num"],
) -> Callable[[int], Float[np.ndarray, "m num"]]:
    r"""For each $j$, functions drawn from the posterior without observation $j$.

    With $\alpha = P (y - f_0 - \varepsilon)$ for a draw $f_0$ of the prior and
    $f = f_0 + K \alpha$, one factorisation serves all $m$ posteriors:

    $$ f_{-j}(x_k) = f(x_k) - (P K)_{jk}\, \alpha_j / P_{jj}. $$
    """
    seen, basis = target.seen, target.basis[0]
    covariance = target.processes.between(seen, seen)[0]
    drawn = cholesky(covariance) @ function_noise
    observed = drawn + np.sqrt(target.noise_variance[0, 0]) * observation_noise
    precision = basis.T @ basis
    coefficients = target.coefficients[0, 0][:, None] - precision @ observed
    f = seen.mean[0][:, None] + drawn + covariance @ coefficients
    influence = (precision @ covariance) / np.diagonal(precision)[:, None]
    return lambda j: f - influence[j][:, None] * coefficients[j][None, :]


def misranked(
    f: Callable[[int], Float[np.ndarray, "m num"]], y: Float[np.ndarray, " m"], num: int
) -> Float[np.ndarray, " num"]:
    r"""$\sum_{j,k} 1[(f_{-j}(x_j) < f_{-j}(x_k)) \oplus (y_j < y_k)]$ for each draw."""
    count = np.zeros(num)
    for j in range(len(y)):
        values = f(j)
        count += np.sum((values[j][None, :] < values) ^ (y[j] < y)[:, None], axis=0)
    return count


def rank_weights(
    past: Float[np.ndarray, "n num"],
    target: Float[np.ndarray, " num"],
    usable: Bool[np.ndarray, " n"],
    discard_quantile: float,
) -> tuple[Float[np.ndarray, " n"], float]:
    """Weights of the past models and of the target from their losses in the same draws.

    Against dilution of the weights by many poor models, a past model is discarded if the median
    of its losses is above a quantile of the target's. The others share each draw that they win or
    tie.
    """
    limit = np.quantile(target, discard_quantile)
    kept = usable & (np.median(past, axis=1) <= limit)
    losses = np.concatenate([np.where(kept[:, None], past, np.inf), target[None]])
    best = losses == np.min(losses, axis=0)
    weights = np.mean(best / np.sum(best, axis=0), axis=1)
    return weights[:-1], float(weights[-1])


def row_noise(length: int, num: int, key: Key) -> Float[np.ndarray, "length num"]:
    """Standard normal numbers of which each row depends on its index alone."""
    return np.stack([normal(fold_in(key, row), num) for row in range(length)])
