"""Beliefs of methods that have no form in NumPy: neural processes, network priors, and methods or
kernels of other packages.

Everything is compiled, for run lengths and numbers of points that are padded to few sizes.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.belief import (
    AbstractBelief,
    AbstractMembers,
    AbstractPath,
    Groups,
    Joint,
    MemberMoments,
    MemberSlopes,
    Settings,
    equal_group,
    guard_around,
    method_name,
)
from metaprior.data import Run, run_of
from metaprior.gp import float64
from metaprior.methods._method import AbstractPosterior, AbstractSurrogate, Moments

logger = logging.getLogger(__name__)

# Points are computed in blocks of one of these sizes.
SMALLEST_BLOCK, LARGEST_BLOCK = 16, 1024


def compiled_belief(
    settings: Settings, arrays: Mapping[str, np.ndarray], surrogate: AbstractSurrogate
) -> AbstractBelief:
    """The belief of a surrogate; the guard of `Guarded` around it stays NumPy."""
    _note(method_name(settings))
    if settings["name"] == "Guarded":
        return guard_around(settings, arrays, CompiledBelief(surrogate.unguarded))
    return CompiledBelief(surrogate)


@cache
def _note(name: str) -> None:
    logger.warning("%s has no NumPy form: its predictions are compiled when first used.", name)


@dataclass(frozen=True)
class CompiledBelief(AbstractBelief):
    """A surrogate as a belief."""

    surrogate: AbstractSurrogate

    @float64
    def groups(self, x, y) -> Groups:
        return (equal_group(CompiledMember(_condition(self.surrogate, _run(x, y)))),)

    @float64
    def trust(self, x, y) -> float | None:
        return float(_trust(self.surrogate, _run(x, y))) if self.surrogate.judges else None

    def settled(self, trust):
        return self if trust is None else CompiledBelief(self.surrogate.settled(trust))


@dataclass(frozen=True)
class CompiledMember(AbstractMembers):
    """A posterior as the one member of a belief; it need not be Gaussian."""

    posterior: AbstractPosterior = field(repr=False)

    @property
    def count(self):
        return 1

    def moments(self, x):
        mean, function_variance, noise_variance = self._at(_moments, x)
        return MemberMoments(mean[None], function_variance[None], _one_noise(noise_variance))

    def slopes(self, x):
        found = self._at(_slopes, x)
        moments = MemberMoments(
            found.moments.mean[None],
            found.moments.function_variance[None],
            _one_noise(found.moments.noise_variance),
        )
        return MemberSlopes(moments, found.mean[None], found.function_variance[None])

    def log_density(self, x, y):
        return self._at(_log_density, x, y)[None]

    def cdf(self, x, y):
        return self._at(_cdf, x, y)[None]

    @float64
    def joint(self, index, x):
        covariance = np.asarray(_covariance(self.posterior, jnp.asarray(x)))
        return Joint(self.moments(x).mean[0], covariance)

    @float64
    def sample(self, index, x, num, rng):
        return np.asarray(_sample(self.posterior, jnp.asarray(x), num, _key(rng)))

    @float64
    def path(self, index, anchors, rng):
        return CompiledPath(self.posterior, jnp.asarray(anchors), _key(rng))

    @float64
    def _at(self, function, *columns: np.ndarray):
        """`function` of every point, and its value if it is given, in padded blocks."""
        return _in_blocks(lambda *block: function(self.posterior, *block), *columns)


@dataclass(frozen=True)
class CompiledPath(AbstractPath):
    """A function drawn from a posterior, drawn again from its key wherever it is evaluated."""

    posterior: AbstractPosterior
    anchors: Float[Array, "a d"]
    key: PRNGKeyArray

    @float64
    def __call__(self, x):
        values, _ = self.slopes(x)
        return values

    @float64
    def slopes(self, x):
        return _in_blocks(lambda block: _path(self.posterior, self.anchors, self.key, block), x)


class Slopes(NamedTuple):
    """Moments at many points, and the derivatives of mean and function variance."""

    moments: Moments
    mean: Float[Array, "k d"]
    function_variance: Float[Array, "k d"]


def _in_blocks(function, *columns: np.ndarray):
    """`function` of the rows of `columns`, padded with copies of the first row, as NumPy."""
    count = len(columns[0])
    size = SMALLEST_BLOCK
    while size < min(count, LARGEST_BLOCK):
        size *= 2
    parts = []
    for start in range(0, max(count, 1), size):
        block = [column[start : start + size] for column in columns]
        length = len(block[0])
        padded = [np.pad(b, [(0, size - length)] + [(0, 0)] * (b.ndim - 1)) for b in block]
        found = function(*(jnp.asarray(b) for b in padded))
        parts.append(jax.tree.map(lambda leaf, n=length: np.asarray(leaf)[:n], found))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _one_noise(noise_variance: Float[np.ndarray, " k"]) -> Float[np.ndarray, " 1"]:
    """A member has one noise variance."""
    return np.array([np.mean(noise_variance)]) if len(noise_variance) else np.zeros(1)


def _run(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> Run:
    # One spare row, so that a run and the same run with one pending query share a size.
    return run_of(x, y, spare=1)


def _key(rng: np.random.Generator) -> PRNGKeyArray:
    return jax.random.key(int(rng.integers(2**31)))


@eqx.filter_jit
def _condition(surrogate: AbstractSurrogate, run: Run) -> AbstractPosterior:
    return surrogate.condition(run)


@eqx.filter_jit
def _trust(surrogate: AbstractSurrogate, run: Run) -> Float[Array, ""]:
    return surrogate.trust(run)


@eqx.filter_jit
def _moments(posterior: AbstractPosterior, x: Float[Array, "k d"]) -> Moments:
    return jax.vmap(posterior.moments)(x)


@eqx.filter_jit
def _slopes(posterior: AbstractPosterior, x: Float[Array, "k d"]) -> Slopes:
    mean = jax.vmap(jax.grad(lambda point: posterior.moments(point).mean))(x)
    variance = jax.vmap(jax.grad(lambda point: posterior.moments(point).function_variance))(x)
    return Slopes(jax.vmap(posterior.moments)(x), mean, variance)


@eqx.filter_jit
def _log_density(posterior: AbstractPosterior, x: Float[Array, "k d"], y: Float[Array, " k"]):
    return jax.vmap(posterior.log_density)(x, y)


@eqx.filter_jit
def _cdf(posterior: AbstractPosterior, x: Float[Array, "k d"], y: Float[Array, " k"]):
    return jax.vmap(posterior.cdf)(x, y)


@eqx.filter_jit
def _covariance(posterior: AbstractPosterior, x: Float[Array, "k d"]):
    return posterior.covariance(x)


@eqx.filter_jit
def _sample(posterior: AbstractPosterior, x: Float[Array, "k d"], num: int, key: PRNGKeyArray):
    return posterior.sample(x, num, key=key)


@eqx.filter_jit
def _path(
    posterior: AbstractPosterior,
    anchors: Float[Array, "a d"],
    key: PRNGKeyArray,
    x: Float[Array, "k d"],
):
    return jax.vmap(jax.value_and_grad(posterior.path(anchors, key=key)))(x)
