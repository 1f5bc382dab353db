"""`learn` as a contender: priors as users have them, asked through `Optimizer`, in NumPy.

Everything has its defaults: what `learn` chooses, how a prior is asked, and what is used before
there are runs to learn from. A run is one after another, so that a study gives each seed a job of
its own and spreads them over processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from metaprior.belief import Prior
from metaprior.bo import Optimizer, Search, UpperConfidenceBound, free_moves, maximum
from metaprior.data import Space, Tasks
from metaprior.lab.environments import AbstractTask
from metaprior.lab.studies._batches import Judged
from metaprior.lab.studies._contenders import AbstractContender, AbstractLearned
from metaprior.lab.studies._races import PolicyRace
from metaprior.learning import learn
from metaprior.lifelong import FEWEST_RUNS, Version, learn_version, untrained_prior


@dataclass(frozen=True)
class Learnt:
    """A prior, and the record of the version that it is if versions are kept."""

    prior: Prior
    version: Version | None = None


@dataclass(frozen=True)
class AskedPriors(AbstractLearned):
    """One prior for each set of past runs."""

    entries: tuple[Learnt, ...]

    def race(self, tasks, num_queries, *, keys, noise_std, chunk=None):
        runs = [
            [_run(entry.prior, _at(tasks, i, j), num_queries, key, noise_std) for j, key in each]
            for i, (entry, each) in enumerate(
                zip(self.entries, (list(enumerate(some)) for some in keys), strict=True)
            )
        ]
        stacked = (np.array([[run[k] for run in each] for each in runs]) for k in range(4))
        return PolicyRace(*stacked)

    def judge(self, exams, context_sizes, *, chunk=None):
        context_x, context_y, test_x, test_y = (np.asarray(array) for array in exams)
        found = [
            [
                [
                    _judged(
                        entry.prior,
                        context_x[i, j, :size],
                        context_y[i, j, :size],
                        test_x[i, j],
                        test_y[i, j],
                    )
                    for size in context_sizes
                ]
                for j in range(context_y.shape[1])
            ]
            for i, entry in enumerate(self.entries)
        ]
        whole = np.array(found)  # entries, tasks, contexts, metrics, points
        return Judged(*np.moveaxis(whole, 3, 0))


@dataclass(frozen=True)
class LearnContender(AbstractContender[AskedPriors]):
    """`learn` with default arguments.

    - `budget`: as in `learn`.
    - `versions`: a prior learned from one more run replaces the one before it only if it predicts
      held-out runs no worse, as in `metaprior.lifelong`.
    """

    space: Space
    budget: str
    versions: bool

    def begin(self, count):
        """What the library uses before there are enough runs."""
        return AskedPriors((self._untrained(),) * count)

    def learn(self, past, *, keys, room=None, chunk=None, before=None):
        entries = (None,) * len(past) if before is None else before.entries
        return AskedPriors(
            tuple(
                self._learnt(runs, seed_of(key), entry)
                for runs, key, entry in zip(past, keys, entries, strict=True)
            )
        )

    def _learnt(self, past: Tasks, seed: int, before: Learnt | None) -> Learnt:
        if past.num_tasks < FEWEST_RUNS:
            return self._untrained()
        if not self.versions:
            return Learnt(learn(past, budget=self.budget, seed=seed))
        used = None
        if before is not None and before.version is not None:
            used = before.version, before.prior
        version, prior = learn_version(
            past.num_tasks,
            past,
            [f"run-{i}" for i in range(past.num_tasks)],
            before=used,
            budget=self.budget,
            seed=seed,
        )
        if before is not None and used is not None and not version.kept:
            return before
        return Learnt(prior, version)

    def _untrained(self) -> Learnt:
        return Learnt(untrained_prior(self.space, "maximize"))


def seed_of(key: PRNGKeyArray) -> int:
    """A seed for NumPy from a key."""
    return int(jax.random.bits(key, dtype=jnp.uint32))


def _at(tasks: AbstractTask, i: int, j: int) -> AbstractTask:
    """One task of a stack of stacks."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[i, j], tasks)


def _run(
    prior: Prior, task: AbstractTask, num_queries: int, key: PRNGKeyArray, noise_std: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Noise-free values, values where the best was expected, queries and observations of a run."""
    seed, space = seed_of(key), prior.space
    rng = np.random.default_rng([seed, 1])
    rows = _rows(task)
    candidates = None if rows is None else space.decode(rows)
    optimizer = Optimizer(prior, candidates=candidates, seed=seed)
    x, y = np.zeros((0, space.num_columns)), np.zeros(0)
    values, inferred = [], []
    for _ in range(num_queries):
        best = _predicted_best(prior, x, y, rows, rng)
        query = optimizer.ask()
        value, expected = task.evaluate([query, *space.decode(best[None])])
        observed = value + noise_std * rng.standard_normal()
        optimizer.tell(query, float(observed))
        x, y = np.vstack([x, space.encode([query])]), np.append(y, observed)
        values.append(value)
        inferred.append(expected)
    return np.array(values), np.array(inferred), x, y


def _rows(task: AbstractTask) -> Float[np.ndarray, "m d"] | None:
    """The points that may be asked, if they are finitely many."""
    if task.choices is None:
        return None
    return np.asarray(task.choices.points)[np.asarray(task.choices.valid)]


def _predicted_best(
    prior: Prior,
    x: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    rows: Float[np.ndarray, "m d"] | None,
    rng: np.random.Generator,
) -> Float[np.ndarray, " d"]:
    """Where the posterior mean is largest, asked before or not."""
    belief, mean = prior.belief.condition(x, y), UpperConfidenceBound(beta=0.0)
    if rows is not None:
        return rows[int(np.argmax(belief.moments(rows).mean))]
    search, moves = Search(), free_moves(prior.space)
    candidates = search.candidates(moves, x, y, rng)
    return maximum(mean.score(belief, candidates, rng), moves, candidates, search)


def _judged(
    prior: Prior,
    x: Float[np.ndarray, "m d"],
    y: Float[np.ndarray, " m"],
    test_x: Float[np.ndarray, "p d"],
    test_y: Float[np.ndarray, " p"],
) -> Sequence[Float[np.ndarray, " p"]]:
    """Log density, CDF and error of the mean at the test points of one task, given a context."""
    belief = prior.belief.condition(x, y)
    error = belief.moments(test_x).mean - test_y
    return belief.log_density(test_x, test_y), belief.cdf(test_x, test_y), error
