"""A learned prior and its posterior, in the user's units."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from metaprior.data import Points, Space, direction_sign, run_of
from metaprior.gp import float64, require_finite
from metaprior.methods import AbstractMethod, AbstractPosterior, AbstractSurrogate
from metaprior.words import Summary, counted, listed

if TYPE_CHECKING:
    from metaprior.learning import Findings

# Predictions are made in blocks of this size, so that few shapes are compiled.
BLOCK = 256


@dataclass(frozen=True)
class Prior:
    """A prior over functions, learned from past runs.

    - `space`, `direction`: of the runs it was learned from, and of the runs it can be used on.
    - `method`: the configuration that learned it.
    - `surrogate`: what was learned, for compiled code.
    - `history`: terms of the training objective, one value per step; for an ensemble, one row per
      member.
    - `trained_on`: what it was learned from, for the model card.
    - `findings`: what was measured on held-out runs; `None` if nothing was.
    """

    space: Space
    direction: str
    method: AbstractMethod
    surrogate: AbstractSurrogate
    history: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    trained_on: dict[str, Any] = field(default_factory=dict)
    findings: "Findings | None" = field(default=None, repr=False)

    @float64
    def condition(self, points: Points, values: Iterable[Any]) -> "Posterior":
        """The posterior after observing `values` at `points`; empty lists give the prior itself."""
        x = self.space.encode(points)
        y = oriented_values(values, len(x), self.direction)
        return Posterior(self, _condition(self.surrogate, run_of(x, y)), len(y))

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_html()

    def save(self, folder: str | Path) -> Path:
        """Write the prior to a folder: arrays, description, and a model card to read."""
        from metaprior.store import save_prior

        return save_prior(self, folder)

    def _summary(self) -> Summary:
        named = zip(self.space.names, self.space.dimensions, strict=True)
        trained_on = ", ".join(f"{name} {value}" for name, value in self.trained_on.items())
        return Summary(
            f"Prior to {self.direction}",
            [
                ("space", listed([f"{name}={dimension}" for name, dimension in named], 4)),
                ("method", repr(self.method)),
                ("trained on", trained_on or "no record"),
                ("held-out findings", "yes" if self.findings else "none"),
            ],
        )


@dataclass(frozen=True)
class Posterior:
    """A prior conditioned on a run; everything in the user's units and sign.

    - `num_observed`: how many observations the run has.
    """

    prior: Prior
    posterior: AbstractPosterior = field(repr=False)
    num_observed: int = 0

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_html()

    @float64
    def predict(
        self, points: Points, *, noiseless: bool = False
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Mean and standard deviation of an observation at each point; with `noiseless`, of the
        function itself."""
        moments = self._at(_moments, points)
        variance = moments.function_variance
        if not noiseless:
            variance = variance + moments.noise_variance
        mean = self._sign * moments.mean
        require_finite(mean, "The predicted mean")
        return mean, np.sqrt(variance)

    @float64
    def log_density(self, points: Points, values: Iterable[Any]) -> Float[np.ndarray, " m"]:
        """Log density of observing each value at its point."""
        return self._at(_log_density, points, values)

    @float64
    def cdf(self, points: Points, values: Iterable[Any]) -> Float[np.ndarray, " m"]:
        """Probability of observing at most each value at its point."""
        below = self._at(_cdf, points, values)
        return below if self._sign > 0 else 1.0 - below

    @float64
    def sample(self, points: Points, num: int, *, seed: int) -> Float[np.ndarray, "num m"]:
        """Joint samples of the function at the points."""
        x = self.prior.space.encode(points)
        samples = _sample(self.posterior, jnp.asarray(x), num, jax.random.key(seed))
        return self._sign * np.asarray(samples)

    @float64
    def covariance(self, points: Points) -> Float[np.ndarray, "m m"]:
        """Joint covariance of the function at the points, without noise."""
        x = self.prior.space.encode(points)
        covariance = np.asarray(_covariance(self.posterior, jnp.asarray(x)))
        require_finite(covariance, "The covariance")
        return covariance

    def _summary(self) -> Summary:
        names = listed(list(self.prior.space.names), 8)
        return Summary(
            f"Posterior after {counted(self.num_observed, 'observation')}",
            [("space", names), ("method", repr(self.prior.method))],
        )

    @property
    def _sign(self) -> float:
        return direction_sign(self.prior.direction)

    def _at(self, function, points: Points, values=None):
        """`function` of every point (and value), computed in padded blocks."""
        x = self.prior.space.encode(points)
        columns = [x]
        if values is not None:
            columns.append(oriented_values(values, len(x), self.prior.direction))
        blocks = []
        for start in range(0, max(len(x), 1), BLOCK):
            block = [column[start : start + BLOCK] for column in columns]
            missing = BLOCK - len(block[0])
            padded = [np.pad(b, [(0, missing)] + [(0, 0)] * (b.ndim - 1)) for b in block]
            result = function(self.posterior, *(jnp.asarray(b) for b in padded))
            blocks.append(jax.tree.map(lambda r, m=missing: np.asarray(r)[: BLOCK - m], result))
        return jax.tree.map(lambda *parts: np.concatenate(parts), *blocks)


def oriented_values(values: Iterable[Any], count: int, direction: str) -> Float[np.ndarray, " m"]:
    """Observed values as a checked array in which larger is better."""
    y = np.asarray(values, float).reshape(-1)
    if len(y) != count:
        raise ValueError(f"Got {count} points but {len(y)} values; give one value per point.")
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        raise ValueError(
            f"The value in row {bad[0]} is {y[bad[0]]}; drop the row, or fix it, before "
            "conditioning on it."
        )
    return direction_sign(direction) * y


@eqx.filter_jit
def _condition(surrogate, run):
    return surrogate.condition(run)


@eqx.filter_jit
def _moments(posterior, x):
    return jax.vmap(posterior.moments)(x)


@eqx.filter_jit
def _log_density(posterior, x, y):
    return jax.vmap(posterior.log_density)(x, y)


@eqx.filter_jit
def _cdf(posterior, x, y):
    return jax.vmap(posterior.cdf)(x, y)


@eqx.filter_jit
def _covariance(posterior, x):
    return posterior.covariance(x)


@eqx.filter_jit
def _sample(posterior, x, num, key):
    return posterior.sample(x, num, key=key)
