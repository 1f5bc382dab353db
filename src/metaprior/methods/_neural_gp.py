"""The Gaussian-process prior with neural mean and kernel that F-PACOH and PACOH learn."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from metaprior.gp import (
    AbstractKernel,
    EffectsProcess,
    FeatureKernel,
    GaussianProcess,
    NeuralMean,
    SquaredExponential,
    Warp,
    as_arrays,
    kernel_of,
    kernel_settings,
    networks,
)

WIDTH, DEPTH = 32, 3

Switch = Bool[Array, ""] | bool


def settle_kernel(method: Any) -> None:
    """Replace `method.kernel` by the same kernel in plain numbers, as a saved prior has it.

    So that methods compare equal, and a kernel that could not be saved is refused before training.
    """
    kernel = method.kernel
    if kernel is None:
        return
    if not isinstance(kernel, AbstractKernel):
        raise TypeError(
            f"`kernel` of {type(method).__name__} is {kernel!r}; give a kernel of `metaprior.gp`, "
            "such as Matern(), or None."
        )
    # Methods are frozen, and this is still their construction.
    object.__setattr__(method, "kernel", kernel_of(kernel_settings(kernel)))


def neural_gp(
    num_columns: int,
    feature_dim: int,
    kernel: AbstractKernel | None = None,
    *,
    key: PRNGKeyArray,
) -> GaussianProcess:
    r"""$\mathcal{GP}(m_\phi, k_\phi)$ before training: mean and kernel features are networks of
    three hidden layers of 32 tanh units; `kernel` is the base kernel on the features, a squared
    exponential if it is `None`."""
    mean, features = networks(
        num_columns, [1, feature_dim], WIDTH, DEPTH, jnp.tanh, keys=jax.random.split(key)
    )
    # Features of an untrained network vary by a few tenths over the domain; so does the kernel.
    start = SquaredExponential(jnp.log(0.5), jnp.log(1.0))
    base = start if kernel is None else as_arrays(kernel)
    return GaussianProcess(NeuralMean(mean), FeatureKernel(base, features), jnp.log(1e-2))


def with_effects(
    process: GaussianProcess, num_columns: int, offset: Switch, amplitude: Switch, warp: Switch
) -> EffectsProcess:
    """`process` for tasks that differ in level and in amplitude, over warped inputs, where these
    are switched on."""
    # In standardised units: half of the spread of all observations.
    start = jnp.log(0.25)
    straight = jnp.zeros(num_columns)
    has_offset, has_amplitude, is_warped = map(jnp.asarray, (offset, amplitude, warp))
    curves = Warp(straight, straight, is_warped)
    numbers = start, start, has_offset, has_amplitude
    # The checker counts among the fields what the class computes from them.
    return EffectsProcess(process, curves, *numbers)  # pyright: ignore[reportCallIssue]
