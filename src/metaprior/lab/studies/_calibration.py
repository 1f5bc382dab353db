"""The calibration study: coverage of predictive intervals (figure 2 of the paper).

For each seed, every method learns from past runs as in the offline study, and then predicts unseen
tasks at uniform points, given a few uniform points. Recorded is how often the central interval of
each level held the value, and the calibration error and log-likelihood of the same predictions.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.gp import float64
from metaprior.lab.environments import AbstractTask
from metaprior.lab.studies._batches import ContextSplit, rows_of
from metaprior.lab.studies._jobs import Columns, Job
from metaprior.lab.studies._races import require_points
from metaprior.lab.studies._repetitions import (
    histories,
    keys_of,
    learn_seeds,
    split_each,
    unseen_tasks,
)
from metaprior.lab.studies._specification import Specification, jobs_by_seeds
from metaprior.metrics import calibration_error, coverage

KIND = "metaprior.lab.studies:run_calibration"
LEVELS = np.linspace(0.0, 1.0, 21)


def jobs(specification: Specification) -> list[Job]:
    """One job for each method on each environment and block of seeds."""
    return jobs_by_seeds(KIND, specification, ("tasks", "contexts", "points"))


@float64
def run_calibration(job: Specification) -> Columns:
    """How often intervals held, by seed, task, size of the context and level."""
    seeds, chunk = tuple(job["seeds"]), job["chunk"]
    past = histories(job["environment"], job["past_tasks"], job["past_steps"], seeds, chunk)
    tasks = unseen_tasks(job["environment"], job["tasks"], seeds)
    num_tasks = jax.tree.leaves(tasks)[0].shape[1]  # after that of the seeds
    keys = split_each([keys_of(seed).race for seed in seeds], num_tasks)
    exams = uniform_exams(tasks, max(1, *job["contexts"]), job["points"], keys=keys)
    judged = learn_seeds(job, past).judge(exams, job["contexts"], chunk=chunk)
    return rows_of(
        {
            "seed": np.asarray(seeds),
            "task": range(num_tasks),
            "context": job["contexts"],
            "level": LEVELS,
        },
        {
            "frequency": _over_points(lambda cdf: coverage(cdf, LEVELS), judged.cdf),
            "calibration_error": _over_points(calibration_error, judged.cdf),
            "log_likelihood": judged.log_density.mean(axis=-1),
        },
    )


def uniform_exams(
    tasks: AbstractTask, num_context: int, num_points: int, *, keys: Key[Array, "batch tasks"]
) -> ContextSplit:
    """Uniform points of each task to learn from and others to predict."""
    tasks = jax.tree.map(jnp.asarray, tasks)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tasks)
    require_points(flat, num_context + num_points)
    return ContextSplit(*_uniform(tasks, keys, num_context, num_points))


@eqx.filter_jit
def _uniform(tasks, keys, num_context, num_points):
    def one(task, key):
        context, test = task.uniform((num_context, num_points), key=key)
        return context, jax.vmap(task)(context), test, jax.vmap(task)(test)

    return jax.vmap(jax.vmap(one))(tasks, keys)


def _over_points(metric, cdf: Float[np.ndarray, "... points"]) -> Float[np.ndarray, "..."]:
    """A metric of the points of each task and context."""
    return np.apply_along_axis(metric, -1, cdf)
