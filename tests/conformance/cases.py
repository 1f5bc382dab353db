"""The methods under test, one line each, and the small family of tasks they are tried on.

The space is mixed, so that everything is checked for reals, integers and categories at once, and
every training and every run has one shape: a method compiles once for the whole suite.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import metaprior as mp
from metaprior.data import Run, run_of
from metaprior.methods import (
    AbstractMethod,
    AbstractPosterior,
    AbstractSurrogate,
    FPacohMap,
    Moments,
    known_methods,
)


@dataclass(frozen=True)
class Case:
    """How a method is tried, and where it is allowed to be less than exact.

    - `settings`: what makes its training small; every other setting is the default.
    - `seeded`: whether the key of a training decides what is learned.
    - `units_from_past`: whether the prior, before any data, is in the units of the past runs.
    - `contracts`: whether data make it surer at every observed point, on average over them only,
      or not at all.
    - `affine_tolerance`: how far predictions may move, in standard deviations, when all values
      change their unit.
    - `slow`: whether its checks are among the slow tests.
    - `num_latents`: moments are averages over so many draws, while samples are fresh ones.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    seeded: bool = True
    units_from_past: bool = True
    contracts: Literal["everywhere", "on average", "no"] = "everywhere"
    affine_tolerance: float = 1e-5
    num_latents: int | None = None
    slow: bool = False


# Batches smaller than the number of tasks, so that the seed decides what is drawn.
QUICK = {"num_steps": 150, "learning_rate": 1e-2, "batch_size": 4}

CASES = {
    "FPacohMap": Case(QUICK),
    "FPacohVI": Case(QUICK | {"num_priors": 4, "num_functions": 4}, slow=True),
    "FPacohBNN": Case(
        QUICK | {"width": 8, "num_samples": 16, "num_measurements": 8},
        contracts="on average",
        slow=True,
    ),
    "PacohMap": Case(QUICK, slow=True),
    "LearnedGP": Case(QUICK),
    "ABLR": Case(QUICK, slow=True),
    "NeuralProcess": Case(QUICK, contracts="on average", num_latents=32, slow=True),
    # Weights are estimated from random rankings; the variance follows them as much as the data.
    "RankWeightedGP": Case(contracts="no", slow=True),
    "FixedGP": Case(seeded=False),
    "SelfStandardisedGP": Case(seeded=False, units_from_past=False),
    "AveragedGP": Case(seeded=False, units_from_past=True, slow=True),
    "FittedGP": Case(seeded=False, units_from_past=False, slow=True),
    "Ensemble": Case({"base": FPacohMap(**QUICK), "members": 2}, slow=True),
    "Guarded": Case({"base": FPacohMap(**QUICK)}, slow=True),
    "Weighed": Case({"base": FPacohMap(**QUICK)}, slow=True),
}

SPACE = mp.Space(
    x=mp.Real(-1.0, 1.0), level=mp.Integer(1, 4), kind=mp.Categorical(["plain", "steep"])
)
# One point is a run too.
LENGTHS = (1, 3, 5, 6, 8, 8)
CAPACITY = 16


def points_of(rng: np.random.Generator, num: int) -> list[dict[str, Any]]:
    """Random points of the space."""
    return SPACE.decode(rng.uniform(size=(num, SPACE.num_columns)))


def hill(points: list[dict[str, Any]], top: float, height: float) -> np.ndarray:
    """A hill over `x` around `top`, highest at level 2."""
    steepness = [3.0 if point["kind"] == "steep" else 1.0 for point in points]
    distance = [(p["x"] - top) ** 2 + 0.2 * (p["level"] - 2) ** 2 for p in points]
    return height - np.array(steepness) * distance


def hill_run(seed: int, num: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """One task of the family, observed at random points."""
    rng = np.random.default_rng(seed)
    points = points_of(rng, num)
    # Heights differ more than anything else, so that a single point says much about a task.
    return points, hill(points, 0.3 + 0.1 * rng.normal(), 3.0 * rng.normal())


def hill_tasks() -> mp.Tasks:
    runs = [hill_run(seed, length) for seed, length in enumerate(LENGTHS)]
    return mp.Tasks.from_runs(runs, space=SPACE)


def unseen_run(num: int, seed: int = 100) -> Run:
    """A task that was not learned from, as compiled code sees it."""
    points, values = hill_run(seed, CAPACITY)
    return run_of(SPACE.encode(points)[:num], values[:num])


# Where predictions are compared: valid points, and some between them, as an ascent visits.
QUERIES = np.concatenate(
    [
        SPACE.encode(points_of(np.random.default_rng(1000), CAPACITY // 2)),
        np.random.default_rng(1001).uniform(size=(CAPACITY // 2, SPACE.num_columns)),
    ]
)


def method_of(name: str) -> AbstractMethod:
    return known_methods()[name](**CASES[name].settings)


# One entry for each time that Python, and so the compiler, runs through `condition`.
TRACES: list[str] = []


@eqx.filter_jit
def _condition(surrogate: AbstractSurrogate, run: Run) -> AbstractPosterior:
    TRACES.append(type(surrogate).__name__)
    return surrogate.condition(run)


def condition(surrogate: AbstractSurrogate, run: Run) -> AbstractPosterior:
    # JAX compiles again for a number of weak type, such as a Python float makes.
    return _condition(*jax.tree.map(_strong, (surrogate, run)))


def _strong(leaf):
    return jnp.asarray(np.asarray(leaf)) if eqx.is_array(leaf) else leaf


@eqx.filter_jit
def moments(posterior: AbstractPosterior, x) -> Moments:
    return jax.vmap(posterior.moments)(x)


def predict(surrogate: AbstractSurrogate, run: Run, x: np.ndarray | jax.Array = QUERIES) -> Moments:
    """Moments at as many points as a run has room for: one shape, compiled once."""
    return moments(condition(surrogate, run), jnp.asarray(x))


def assert_same(found: Moments, expected: Moments, tolerance: float) -> None:
    """Means agree in units of the standard deviation, variances relative to themselves."""
    std = np.sqrt(expected.variance)
    np.testing.assert_allclose((found.mean - expected.mean) / std, 0.0, atol=tolerance)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=tolerance)
    # What is known almost for certain is known up to rounding of the rest.
    atol = 1e-2 * tolerance * float(np.max(expected.variance))
    np.testing.assert_allclose(
        found.function_variance, expected.function_variance, rtol=tolerance, atol=atol
    )


def arrays_of(surrogate):
    """The surrogate with everything but its arrays left out."""
    return eqx.filter(surrogate, eqx.is_array)


def leaves(surrogate) -> list[np.ndarray]:
    """All numbers of a surrogate."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(arrays_of(surrogate))]
