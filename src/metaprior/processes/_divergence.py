r"""The functional KL divergence, by the best route that two processes offer.

symbol      meaning                                             name here
q, p        the process that is learned, what it is pulled to   own, target
h           values drawn from q, as functions of noise          values
phi         what q is made of

The gradient of a divergence needs no density, only scores (the paper's appendix on gradients of
the KL divergence):

    d/dphi KL(q || p) = E[ (dh/dphi)^T (grad ln q(h) - grad ln p(h)) ].

The parts of the two scores that are linear in h are those of Gaussians. Their contribution depends
on q through its mean and covariance only and is the gradient of a closed form, free of sampling
noise; samples are left with what is not Gaussian.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.gp import (
    AbstractDensityProcess,
    AbstractGaussianProcess,
    AbstractProcess,
    Gaussian,
    Jitter,
    Reference,
    cholesky,
    kl_divergence,
    reference,
)
from metaprior.processes._score import (
    AbstractScore,
    AbstractScoreEstimator,
    DensityScore,
    EstimatedScore,
    MomentMatching,
)
from metaprior.processes._spectral import SpectralStein
from metaprior.processes._whitening import sample_moments

# The resolution at which F-PACOH compares functions.
RESOLUTION = 1e-4
SPECTRAL = SpectralStein()


class Samples(NamedTuple):
    """Draws from a process at `n` points, differentiable in what the process is made of.

    `moments` are the mean and covariance of the distribution of `values` (its jitter included),
    differentiable as well, or None where they are unknown.
    """

    values: Float[Array, "k n"]
    moments: Gaussian | None = None


class Scored(NamedTuple):
    """A fixed process at some points, known by its score, that others are compared with."""

    score: AbstractScore
    jitter: Float[Array, ""]


Target = Reference | Scored


def target_of(
    process: AbstractProcess,
    x: Float[Array, "n d"],
    *,
    jitter: Jitter,
    estimator: AbstractScoreEstimator,
    num_samples: int,
    key: PRNGKeyArray,
) -> Target:
    """The most precise description that `process` offers of itself at `x`: its Gaussian marginal,
    the score of its density, or an estimated score of `num_samples` draws.

    Either carries the jitter, the resolution at which others are compared with it.
    """
    if isinstance(process, AbstractGaussianProcess):
        return reference(process.marginal(x), jitter)
    if isinstance(process, AbstractDensityProcess):
        return Scored(DensityScore(process, x, jitter), jnp.asarray(jitter))
    key_sample, key_fit = jax.random.split(key)
    samples = process.sample(x, num_samples, key=key_sample, jitter=jitter)
    return Scored(estimator.fit(samples, key=key_fit), jnp.asarray(jitter))


def divergence(
    own: Gaussian | Samples,
    target: Target,
    *,
    estimator: AbstractScoreEstimator,
    noise: Float[Array, "k n"] | None = None,
    key: PRNGKeyArray | None = None,
) -> Float[Array, ""]:
    r"""A scalar whose gradient estimates that of $\mathrm{KL}(q \,\|\, p)$.

    - `own`: $q$, a Gaussian (to which the jitter of the target is added) or samples.
    - `target`: $p$. Gradients flow to $q$ alone.
    - `estimator`: estimates the score of `own` if that is `Samples`, with `key` if it is random.
    - `noise`: standard normal numbers, which make samples of a Gaussian `own` if the target is not
      Gaussian. Each is used twice, with both signs.

    Between Gaussians it is the divergence itself. Otherwise **only its gradient has a meaning**:
    its value is the divergence between the Gaussians with the same means and covariances, or 0
    where the target has a density but no known moments.
    """
    if isinstance(own, Gaussian) and isinstance(target, Reference):
        return kl_divergence(own, target)
    if isinstance(own, Gaussian):
        own, estimator = _draw(own, target.jitter, noise), MomentMatching()
    values = jax.lax.stop_gradient(own.values)
    # On the samples themselves, their own moments fulfil the identities that a score has to
    # fulfil: a stretched sample has a stretched covariance, without sampling noise.
    moments = sample_moments(own.values) if own.moments is None else own.moments
    score = estimator.fit(values, key=key, moments=moments)
    if isinstance(target, Reference):
        gaussian, correction = target, score.correction(values)
    elif isinstance(target.score, EstimatedScore):
        gaussian = target.score.gaussian(target.jitter)
        correction = score.correction(values) - target.score.correction(values)
    else:
        return _along(own.values, score(values) - target.score(values))
    # The divergence adds the jitter to a covariance, which that of samples contains already.
    jitter = gaussian.jitter * jnp.eye(values.shape[1])
    smooth = Gaussian(moments.mean, moments.covariance - jitter)
    return kl_divergence(smooth, gaussian) + _along(own.values, correction)


def functional_kl(
    q: AbstractProcess,
    p: AbstractProcess,
    x: Float[Array, "n d"],
    *,
    key: PRNGKeyArray,
    jitter: Jitter = RESOLUTION,
    num_samples: int = 200,
    estimator: AbstractScoreEstimator = SPECTRAL,
) -> Float[Array, ""]:
    r"""A scalar whose gradient with respect to `q` is that of $\mathrm{KL}(q(h_X) \| p(h_X))$, the
    divergence of the values at the points `x`.

    In closed form if both processes are Gaussian; otherwise from samples of `q`, and of `p` if it
    has no density. See `divergence` for what its value means then.

    - `jitter`: variance of the white noise that both processes are seen through.
    - `num_samples`: number of draws from each process that has to be sampled.
    - `estimator`: estimates the score of a process without a density.

    It can be differentiated and compiled, and runs in the precision that JAX is set to; smooth
    processes need double precision (`jax.enable_x64`).
    """
    key_target, key_own, key_fit = jax.random.split(key, 3)
    target = target_of(
        p, x, jitter=jitter, estimator=estimator, num_samples=num_samples, key=key_target
    )
    if isinstance(q, AbstractGaussianProcess):
        own = q.marginal(x)
        noise = jax.random.normal(key_own, ((num_samples + 1) // 2, x.shape[0]))
    else:
        own = Samples(q.sample(x, num_samples, key=key_own, jitter=jitter))
        noise = None
    return divergence(own, target, estimator=estimator, noise=noise, key=key_fit)


def _draw(gaussian: Gaussian, jitter: Jitter, noise: Float[Array, "k n"] | None) -> Samples:
    """Samples of a Gaussian, with their moments."""
    if noise is None:
        raise ValueError(
            "The divergence of a Gaussian from a process that is not Gaussian needs samples; give "
            "`noise`, standard normal numbers of shape (number of samples, number of points)."
        )
    mean, covariance = gaussian
    deviations = jnp.concatenate([noise, -noise]) @ cholesky(covariance, jitter).T
    moments = Gaussian(mean, covariance + jitter * jnp.eye(mean.shape[0]))
    return Samples(mean[None, :] + deviations, moments)


def _along(values: Float[Array, "k n"], direction: Float[Array, "k n"]) -> Float[Array, ""]:
    r"""Zero, with the gradient $\frac1k \sum_i (\partial h_i / \partial \phi)^\top d_i$."""
    motion = values - jax.lax.stop_gradient(values)
    return jnp.sum(motion * jax.lax.stop_gradient(direction)) / values.shape[0]
