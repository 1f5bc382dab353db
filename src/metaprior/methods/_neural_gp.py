"""The Gaussian-process prior with neural mean and kernel that F-PACOH and PACOH learn."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.gp import (
    EffectsProcess,
    FeatureKernel,
    GaussianProcess,
    NeuralMean,
    SquaredExponential,
    Warp,
)

WIDTH, DEPTH = 32, 3

Number = Float[Array, ""] | float


def neural_gp(num_columns: int, feature_dim: int, *, key: PRNGKeyArray) -> GaussianProcess:
    r"""$\mathcal{GP}(m_\phi, k_\phi)$ before training: mean and kernel features are networks of
    three hidden layers of 32 tanh units, with a squared-exponential kernel on the features."""
    key_mean, key_features = jax.random.split(key)
    mean = eqx.nn.MLP(num_columns, 1, WIDTH, DEPTH, jnp.tanh, key=key_mean)
    features = eqx.nn.MLP(num_columns, feature_dim, WIDTH, DEPTH, jnp.tanh, key=key_features)
    # Features of an untrained network vary by a few tenths over the domain; so does the kernel.
    base = SquaredExponential(jnp.log(0.5), jnp.log(1.0))
    return GaussianProcess(NeuralMean(mean), FeatureKernel(base, features), jnp.log(1e-2))


def with_effects(
    process: GaussianProcess, num_columns: int, offset: Number, amplitude: Number, warp: Number
) -> EffectsProcess:
    """`process` for tasks that differ in level and in amplitude, over warped inputs, where these
    are not 0."""
    # In standardised units: half of the spread of all observations.
    start = jnp.log(0.25)
    straight = jnp.zeros(num_columns)
    has_offset, has_amplitude, is_warped = (jnp.asarray(on) > 0 for on in (offset, amplitude, warp))
    curves = Warp(straight, straight, is_warped)
    numbers = start, start, has_offset, has_amplitude
    # The checker counts among the fields what the class computes from them.
    return EffectsProcess(process, curves, *numbers)  # pyright: ignore[reportCallIssue]
