"""What the demo computes: two families of tasks, a learned prior and a fixed GP.

Branin, in two dimensions, is for the race: which policy finds the optimum of an unseen task first.
The 1-d mixture is for the predictions, since a belief about a function of one variable can be
drawn.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from metaprior.belief import Prior
from metaprior.bo import AbstractPolicy, RandomSearch, SurrogatePolicy, UpperConfidenceBound
from metaprior.data import Space, Tasks
from metaprior.lab.environments import Branin, Mixture1d, MixtureTask
from metaprior.lab.studies import (
    PolicyRace,
    UniformPredictions,
    collect_histories,
    predict_uniform,
    race,
)
from metaprior.learning import learn
from metaprior.methods import FixedGP, FPacohMap
from metaprior.metrics import simple_regret
from metaprior.plots import Belief, Landscape, PastQueries

# Opens a stage of that title; what it gives is called with the fraction of the stage that is done.
Advance = Callable[[float], None]
Stage = Callable[[str], AbstractContextManager[Advance]]

FPACOH, FIXED_GP, RANDOM = "F-PACOH", "fixed GP", "random search"
CONTEXT_SIZES = (1, 8)
# Five on Branin, three on mixtures.
NUM_STAGES = 8

# Where the drawn posterior has observed the unseen mixture: evenly spread.
OBSERVED_X = np.array([-6.0, 0.0, 6.0])
NUM_DRAWN_QUERIES = 10


@dataclass(frozen=True)
class DemoSizes:
    """How much is computed. The defaults are the paper's numbers of tasks and run lengths."""

    branin: Branin = Branin()
    mixture: Mixture1d = Mixture1d()
    method: FPacohMap = FPacohMap()
    num_race_tasks: int = 10
    num_queries: int = 40
    num_mixture_sets: int = 3
    num_prediction_tasks: int = 100
    num_prediction_points: int = 100


QUICK = DemoSizes(
    branin=Branin(num_tasks=4, run_length=6),
    mixture=Mixture1d(num_tasks=4, run_length=6),
    method=FPacohMap(num_steps=200),
    num_race_tasks=3,
    num_queries=10,
    num_mixture_sets=1,
    num_prediction_tasks=5,
    num_prediction_points=20,
)


class BraninPart(NamedTuple):
    """The learned prior, and the regret of each policy on unseen tasks."""

    prior: Prior
    regret: dict[str, Float[np.ndarray, "tasks queries"]]
    landscape: Landscape


class MixturePart(NamedTuple):
    """Predictions of each model on unseen tasks, and what is drawn of the first set of runs."""

    past: PastQueries
    beliefs: dict[str, list[Belief]]
    predictions: dict[str, UniformPredictions]


class DemoResults(NamedTuple):
    """All that the demo computed."""

    branin: BraninPart
    mixture: MixturePart


def compute_demo(sizes: DemoSizes, seed: int, stage: Stage) -> DemoResults:
    """Collect past runs, learn from them, and race and predict on unseen tasks.

    - `stage`: opens each of the `NUM_STAGES` stages.
    """
    key_branin, key_mixture = jax.random.split(jax.random.key(seed))
    return DemoResults(
        branin_part(sizes, seed, stage, key=key_branin),
        mixture_part(sizes, seed, stage, key=key_mixture),
    )


def branin_part(sizes: DemoSizes, seed: int, stage: Stage, *, key: PRNGKeyArray) -> BraninPart:
    """Learn from past runs on Branin tasks; race with and without it on unseen ones."""
    key_histories, key_tasks, key_race = jax.random.split(key, 3)
    family = sizes.branin
    with stage(f"Collecting {family.num_tasks} past runs on Branin with fixed GP-UCB"):
        past = collect_histories(family, family.num_tasks, family.run_length, key=key_histories)
    with stage("Learning a prior from them with F-PACOH") as advance:
        prior = _learn(past, sizes.method, seed, advance)
    fixed_gp = learn(past, method=FixedGP(), seed=seed)
    unseen = family.sample_tasks(sizes.num_race_tasks, key=key_tasks)
    optima = family.optimum(unseen)
    policies: dict[str, AbstractPolicy] = {
        FPACOH: _ucb(prior),
        FIXED_GP: _ucb(fixed_gp),
        RANDOM: RandomSearch(family.space),
    }
    races: dict[str, PolicyRace] = {}
    for name, policy in policies.items():
        with stage(f"Optimising {sizes.num_race_tasks} unseen Branin tasks with {name}"):
            # The same key for all: they differ in what they know, not in random draws.
            races[name] = race(policy, unseen, sizes.num_queries, key=key_race)
    regret = {name: simple_regret(optima.value, each.values) for name, each in races.items()}
    queries = {
        name: _native(prior.space, races[name].x[0, :NUM_DRAWN_QUERIES])
        for name in (FIXED_GP, FPACOH)
    }
    best = _native(prior.space, optima.x[:1])[0]
    return BraninPart(prior, regret, _landscape(prior, best, queries))


def mixture_part(sizes: DemoSizes, seed: int, stage: Stage, *, key: PRNGKeyArray) -> MixturePart:
    """Learn from several independent sets of past runs; predict unseen tasks from few points."""
    key_histories, key_tasks, key_points = jax.random.split(key, 3)
    family, num_sets = sizes.mixture, sizes.num_mixture_sets
    count = num_sets * family.num_tasks
    with stage(f"Collecting {count} past runs on 1-d mixtures with fixed GP-UCB"):
        collected = collect_histories(family, count, family.run_length, key=key_histories)
    sets = [collected.subset(rows) for rows in np.split(np.arange(count), num_sets)]
    learned: dict[str, list[Prior]] = {FPACOH: [], FIXED_GP: []}
    with stage(f"Learning from {family.num_tasks} of them at a time with F-PACOH") as advance:
        for i, past in enumerate(sets):

            def advance_set(fraction: float, i: int = i) -> None:
                advance((i + fraction) / num_sets)

            learned[FPACOH].append(_learn(past, sizes.method, seed + i, advance_set))
            learned[FIXED_GP].append(learn(past, method=FixedGP(), seed=seed + i))
    unseen = family.sample_tasks(sizes.num_prediction_tasks, key=key_tasks)
    keys = jax.random.split(key_points, num_sets)
    with stage(f"Predicting {sizes.num_prediction_tasks} unseen 1-d mixtures"):
        predictions = {
            name: _predictions(priors, unseen, sizes.num_prediction_points, keys)
            for name, priors in learned.items()
        }
        task = family.unstack(unseen)[0]
        beliefs = {name: _beliefs(learned[name][0], task) for name in (FIXED_GP, FPACOH)}
    past_tasks = collected_tasks(family, count, key_histories)[: family.num_tasks]
    return MixturePart(_past_runs(sets[0], past_tasks), beliefs, predictions)


def _learn(past: Tasks, method: FPacohMap, seed: int, advance: Advance) -> Prior:
    return learn(
        past, method=method, seed=seed, on_progress=lambda progress: advance(progress.fraction)
    )


def _ucb(prior: Prior) -> SurrogatePolicy:
    return SurrogatePolicy(
        surrogate=prior.surrogate, acquisition=UpperConfidenceBound(), space=prior.space
    )


def _predictions(
    priors: list[Prior], unseen: MixtureTask, num_points: int, keys: Key[Array, " sets"]
) -> UniformPredictions:
    """Predictions of the priors of all sets, one set after the other on the axis of tasks."""
    parts = [
        predict_uniform(prior.surrogate, unseen, CONTEXT_SIZES, num_points, key=key)
        for prior, key in zip(priors, keys, strict=True)
    ]
    return UniformPredictions(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _beliefs(prior: Prior, task: MixtureTask) -> list[Belief]:
    """The belief about one task before any observation of it, and after a few."""
    x = np.linspace(-10.0, 10.0, 256)
    truth = task.evaluate(x[:, None])
    beliefs = []
    for observed_x in (np.zeros(0), OBSERVED_X):
        observed_y = task.evaluate(observed_x[:, None])
        posterior = prior.condition(observed_x[:, None], observed_y)
        beliefs.append(Belief(x, *posterior.predict(x[:, None]), truth, observed_x, observed_y))
    return beliefs


def collected_tasks(family: Mixture1d, count: int, key: PRNGKeyArray) -> list[MixtureTask]:
    """The tasks whose histories `collect_histories` made from the same key."""
    return family.unstack(family.sample_tasks(count, key=jax.random.split(key)[0]))


def _past_runs(past: Tasks, tasks: list[MixtureTask]) -> PastQueries:
    """The queries that were learned from, and the functions they were made on."""
    x = np.linspace(-10.0, 10.0, 256)
    runs = [past.run(i) for i in range(past.num_tasks)]
    return PastQueries(
        x,
        np.stack([task.evaluate(x[:, None]) for task in tasks]),
        np.array([point["x"] for points, _ in runs for point in points]),
        np.concatenate([values for _, values in runs]),
    )


def _landscape(
    prior: Prior, best: Float[np.ndarray, " 2"], queries: dict[str, Float[np.ndarray, "q 2"]]
) -> Landscape:
    """The learned prior mean on a grid, with what is drawn into it."""
    x1, x2 = np.linspace(-5.0, 10.0, 64), np.linspace(0.0, 15.0, 64)
    grid = np.stack(np.meshgrid(x1, x2), axis=-1)
    mean, _ = prior.condition([], []).predict(grid.reshape(-1, 2))
    return Landscape(x1, x2, mean.reshape(grid.shape[:2]), best, queries)


def _native(space: Space, x: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m d"]:
    """Points of the unit cube in the units of a space of real dimensions."""
    return np.array([list(point.values()) for point in space.decode(x)])
