r"""A Gaussian process whose tasks differ in level and amplitude.

One data set's scores lie between 0.5 and 0.6, another's between 0.9 and 1. A prior with one mean
and one variance for all of them spends the first queries of a run on learning the level, or is
overconfident in a wrong one. Here a task's mean is $(1 + a)\, m(x) + c$ with random effects
$a \sim N(0, v_a)$, $c \sim N(0, v_c)$, which integrate out into two terms of the kernel:

$$ k(x, z) = k_0(x, z) + v_c + v_a\, m(x)\, m(z). $$
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from metaprior.gp._kernels import AbstractKernel, Embedded
from metaprior.gp._means import AbstractMean
from metaprior.gp._process import AbstractObservedProcess, GaussianProcess
from metaprior.gp._warp import Warp


class WarpedMean(AbstractMean):
    """A mean that sees warped points."""

    base: AbstractMean
    warp: Warp

    def __call__(self, x):
        return self.base(self.warp(x))


class EffectsKernel(AbstractKernel):
    """A kernel, a constant, and the product of the means at the two points, all of them warped."""

    base: AbstractKernel
    mean: AbstractMean
    warp: Warp
    offset_variance: Float[Array, ""]
    amplitude_variance: Float[Array, ""]

    def embed(self, x):
        warped = self.warp(x)
        return _joined(self.base.embed(warped), self.mean(warped))

    def between(self, a, b):
        (a, mean_a), (b, mean_b) = _split(a), _split(b)
        effects = self.offset_variance + self.amplitude_variance * mean_a * mean_b
        return self.base.between(a, b) + effects


def _joined(embedded: Embedded, mean: Float[Array, ""]) -> Embedded:
    """The embedding by the base kernel, with the mean."""
    *parts, last = jax.tree.leaves(embedded)
    # As one more number of the last part, for then compilers add up the others as they would
    # without it: priors learned before kernels composed are the same to the last bit.
    longer = jnp.append(last, mean)
    return jax.tree.unflatten(jax.tree.structure(embedded), [*parts, longer])


def _split(embedded: Embedded) -> tuple[Embedded, Float[Array, ""]]:
    """The embedding by the base kernel, and the mean."""
    *parts, last = jax.tree.leaves(embedded)
    return jax.tree.unflatten(jax.tree.structure(embedded), [*parts, last[:-1]]), last[-1]


class EffectsProcess(AbstractObservedProcess):
    """A Gaussian process with random effects of the task, over warped inputs.

    The variances are trained; `has_offset` and `has_amplitude` switch the effects on, and are not.
    Being numbers, they may differ between trainings that are done at once.
    """

    plain: GaussianProcess
    warp: Warp
    log_offset_variance: Float[Array, ""]
    log_amplitude_variance: Float[Array, ""]
    has_offset: Bool[Array, ""]
    has_amplitude: Bool[Array, ""]

    @property
    def mean(self) -> AbstractMean:
        return WarpedMean(self.plain.mean, self.warp)

    @property
    def log_noise_variance(self) -> Float[Array, ""]:
        return self.plain.log_noise_variance

    @property
    def kernel(self) -> EffectsKernel:
        return EffectsKernel(
            self.plain.kernel,
            self.plain.mean,
            self.warp,
            jnp.where(self.has_offset, jnp.exp(self.log_offset_variance), 0.0),
            jnp.where(self.has_amplitude, jnp.exp(self.log_amplitude_variance), 0.0),
        )

    def mean_and_embedded(self, x):
        def one(x):
            warped = self.warp(x)
            mean = self.plain.mean(warped)
            return mean, _joined(self.plain.kernel.embed(warped), mean)

        found = jax.vmap(one)(x.reshape(-1, x.shape[-1]))
        return jax.tree.map(lambda leaf: leaf.reshape(*x.shape[:2], *leaf.shape[1:]), found)
