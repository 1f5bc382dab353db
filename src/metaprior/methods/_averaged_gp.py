r"""A non-transfer Gaussian process, averaged over its hyper-parameters by exact evidence.

What `FittedGP` fits to a run, this integrates out, so that its uncertainty is right for runs of any
length, including empty ones:

    what                    how
    lengthscale, noise      a grid, weighted by evidence
    level of the run        values are centred, which costs one of them; some doubt stays
    scale s^2 of the run    inverse-gamma for each of several rates, weighted by evidence

With $y \mid s^2 \sim N(0, s^2 R)$ for the $c$ centred values, of which $c - 1$ are free,
$s^2 \sim \mathrm{IG}(\alpha, \beta)$ and $q = y^\top R^{-1} y$, the evidence is proportional to

$$ |R|^{-1/2} \, \beta^\alpha \, (\beta + q/2)^{-\alpha - (c-1)/2}, $$

and the mean of $s^2$ given the run is $(\beta + q/2) / (\alpha + (c-1)/2 - 1)$.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Run, Standardiser, Tasks, fit_standardiser
from metaprior.gp import (
    Constant,
    ConstantMean,
    GaussianProcess,
    SquaredExponential,
    condition,
    float64,
)
from metaprior.methods._gp_surrogate import GPPosterior
from metaprior.methods._method import AbstractMethod, AbstractSurrogate, OnProgress
from metaprior.methods._mixture import MixturePosterior

# Lengthscales in the unit cube in units of sqrt(d); variances of noise and of what is left of the
# level after centring, relative to that of the function.
LENGTHSCALES = np.array([0.1, 0.2, 0.4, 0.8])
NOISES = np.array([1e-6, 1e-4, 1e-2])
LEVEL_VARIANCE = 1.0
# Shape, and rates in units of past runs: a run may vary far less than past ones did. A scale that
# is far larger needs no rate of its own: there the data outweigh any of these. Small rates are less
# likely, so that two values that happen to be equal do not prove a flat function.
SHAPE = 2.0
RATES = 10.0 ** np.array([0.0, -1.0, -2.0, -3.0, -4.0, -6.0])
RATE_WEIGHTS = np.sqrt(RATES) / np.sum(np.sqrt(RATES))


@dataclass(frozen=True)
class AveragedGP(AbstractMethod):
    """The averaged GP: its hyper-parameters are averaged by the evidence of the new run; only the
    level and the spread of values come from past runs."""

    @float64
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> "AveragedGPSurrogate":
        standardiser = fit_standardiser(tasks.x, tasks.y, tasks.mask, tasks.space)
        return AveragedGPSurrogate(standardiser.y_mean, standardiser.y_std)

    @float64
    def blank_surrogate(self, num_columns: int) -> "AveragedGPSurrogate":
        return AveragedGPSurrogate(jnp.zeros(()), jnp.ones(()))


class AveragedGPSurrogate(AbstractSurrogate):
    """A Gaussian process that takes only the level and the spread of values from past runs.

    - `y_mean`, `y_std`: of all past values together.
    """

    y_mean: Float[Array, ""]
    y_std: Float[Array, ""]

    def condition(self, run: Run) -> MixturePosterior:
        d, count = run.x.shape[1], jnp.sum(run.mask)
        y = (run.y - self.y_mean) / self.y_std
        centre = jnp.sum(jnp.where(run.mask, y, 0.0)) / jnp.maximum(count, 1)
        shape = SHAPE + 0.5 * jnp.maximum(count - 1, 0)

        level = Constant(jnp.log(LEVEL_VARIANCE))

        def member(lengthscale, noise_variance):
            kernel = SquaredExponential(jnp.log(lengthscale), jnp.zeros(())) + level
            process = GaussianProcess(ConstantMean(jnp.zeros(())), kernel, jnp.log(noise_variance))
            conditioned = condition(process, run.x, y - centre, run.mask)
            half_square = 0.5 * jnp.sum(conditioned.whitened**2)
            rates = RATES + half_square
            by_rate = jnp.log(RATE_WEIGHTS * RATES**SHAPE) - shape * jnp.log(rates)
            scale = jnp.sqrt(jax.nn.softmax(by_rate) @ rates / (shape - 1.0))
            standardiser = Standardiser(
                jnp.zeros(d),
                jnp.ones(d),
                self.y_mean + self.y_std * centre,
                self.y_std * scale,
            )
            in_units_of_scale = eqx.tree_at(
                lambda c: c.whitened, conditioned, conditioned.whitened / scale
            )
            # The evidence of the process is that at scale 1; constants are the same for all.
            evidence = conditioned.log_evidence + half_square + jax.nn.logsumexp(by_rate)
            return evidence, GPPosterior(in_units_of_scale, standardiser)

        grid = np.meshgrid(LENGTHSCALES * np.sqrt(d), NOISES)
        evidence, members = eqx.filter_vmap(member)(*(jnp.asarray(g.ravel()) for g in grid))
        return MixturePosterior(members, jax.nn.softmax(evidence))
