"""Surrogates and answers whose numbers can be worked out by hand."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.data import Real, Run, Space, Tasks
from metaprior.learning._exam import Answers
from metaprior.methods import AbstractSurrogate, Moments
from tests.moments_only import MomentsOnly

SPACE = Space(a=Real(0, 1))


class Level(MomentsOnly):
    """The same Gaussian everywhere, but for a slope along the first column."""

    mean: Float[Array, ""]
    slope: Float[Array, ""]
    variance: Float[Array, ""]

    def moments(self, x):
        return Moments(self.mean + self.slope * x[0], self.variance, jnp.zeros_like(self.variance))


class LastSeen(AbstractSurrogate):
    """Expects what it saw last, and 0 before that, plus `shift`; surer with every point."""

    shift: Float[Array, "*batch"]

    def condition(self, run: Run) -> Level:
        last = jnp.where(run.length > 0, run.y[jnp.maximum(run.length - 1, 0)], 0.0)
        return Level(self.shift + last, jnp.asarray(0.0), 1.0 / (1.0 + run.length))


class Slope(AbstractSurrogate):
    """Expects `slope` times the point, whatever it has seen."""

    slope: Float[Array, "*batch"]

    def condition(self, run: Run) -> Level:
        return Level(jnp.asarray(0.0), self.slope, jnp.asarray(1.0))


def tasks_of(*values: list[float]) -> Tasks:
    """Runs of these values, at points that are an equal distance apart."""
    runs = [(np.linspace(0.0, 1.0, len(v))[:, None], v) for v in values]
    return Tasks.from_runs(runs, space=SPACE)


def answers_of(log_density, cdf=None, error=None, counts=None) -> Answers:
    """Answers with a log density; what is not given is unremarkable."""
    log_density = np.asarray(log_density, float)
    return Answers(
        log_density,
        np.full(log_density.shape, 0.5) if cdf is None else np.asarray(cdf, float),
        np.zeros(log_density.shape) if error is None else np.asarray(error, float),
        np.ones(log_density.shape, bool) if counts is None else np.asarray(counts, bool),
    )
