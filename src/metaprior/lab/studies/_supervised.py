"""The supervised study: how well models predict, and know how well (appendix B, tables 4 and 5).

For each seed, a random half of the past tasks is learned from; of each of the others a random half
of the points is the context, and the rest is predicted. The paper can be read in two ways:

    collected   all points were collected by fixed GP-UCB, as in the offline study (its text)
    uniform     all points are uniform on the domain (the captions of its tables)

The log-likelihood is per point, in the units of the values; `log_likelihood_standardised` is that
of values divided by the standard deviation of all that were learned from. `calibration_error` is of
the few points of one task, where even a perfect model has an error; `calibration_error_pooled` is
of all points of a seed together.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PRNGKeyArray

from metaprior.data import Tasks
from metaprior.gp import float64
from metaprior.lab.studies._batches import ContextSplit, rows_of
from metaprior.lab.studies._jobs import Columns, Job
from metaprior.lab.studies._repetitions import histories, keys_of, learn_seeds, uniform_histories
from metaprior.lab.studies._specification import Specification, jobs_by_seeds
from metaprior.meta import stack
from metaprior.metrics import calibration_error

READINGS: dict[str, Callable[..., tuple[Tasks, ...]]] = {
    "collected": histories,
    "uniform": uniform_histories,
}
KIND = "metaprior.lab.studies:run_supervised"


def jobs(specification: Specification) -> list[Job]:
    """One job for each method on each environment, reading and block of seeds."""
    return [
        job
        for reading in specification["readings"]
        for job in jobs_by_seeds(KIND, {**specification, "reading": reading}, ("reading",))
    ]


@float64
def run_supervised(job: Specification) -> Columns:
    """Log-likelihood in both units, calibration error and RMSE by seed and held-out task."""
    seeds, chunk = tuple(job["seeds"]), job["chunk"]
    past = READINGS[job["reading"]](
        job["environment"], job["past_tasks"], job["past_steps"], seeds, chunk
    )
    halves = [split(each, key=keys_of(s).tasks) for each, s in zip(past, seeds, strict=True)]
    learned_from = [each.subset(half.learn) for each, half in zip(past, halves, strict=True)]
    learned = learn_seeds(job, learned_from)
    exams = [exam(each, half) for each, half in zip(past, halves, strict=True)]
    sizes = [halves[0].context.shape[1]]
    judged = learned.judge(stack(exams), sizes, chunk=chunk)
    log_density, cdf, error = (array[:, :, 0] for array in judged)
    scale = np.array([each.y[each.mask].std() for each in learned_from])
    log_likelihood = log_density.mean(axis=2)
    columns = rows_of(
        {"seed": np.asarray(seeds), "held_out": range(log_density.shape[1])},
        {
            "log_likelihood": log_likelihood,
            "log_likelihood_standardised": log_likelihood + np.log(scale)[:, None],
            "calibration_error": np.array([[calibration_error(c) for c in s] for s in cdf]),
            "calibration_error_pooled": np.array([calibration_error(s) for s in cdf]),
            "rmse": np.sqrt((error**2).mean(axis=2)),
        },
    )
    del columns["held_out"]
    return {**columns, "task": np.concatenate([half.predict for half in halves])}


class Halves(NamedTuple):
    """Which tasks are learned from and which are predicted; of each of the latter, its points."""

    learn: Int[np.ndarray, " learned"]
    predict: Int[np.ndarray, " predicted"]
    context: Int[np.ndarray, "predicted context"]
    test: Int[np.ndarray, "predicted test"]


def split(history: Tasks, *, key: PRNGKeyArray) -> Halves:
    """Random halves of the tasks, and of the points of those that are predicted.

    All runs have one length. Of odd numbers the larger part is predicted.
    """
    key_tasks, key_points = jax.random.split(key)
    num_tasks, length = history.num_tasks, int(history.lengths[0])
    order = np.asarray(jax.random.permutation(key_tasks, num_tasks))
    learn, predict = np.sort(order[: num_tasks // 2]), np.sort(order[num_tasks // 2 :])
    keys = jax.random.split(key_points, len(predict))
    points = np.stack([np.asarray(jax.random.permutation(key, length)) for key in keys])
    return Halves(learn, predict, points[:, : length // 2], points[:, length // 2 :])


def exam(history: Tasks, halves: Halves) -> ContextSplit:
    """Contexts and test points of the tasks to be predicted."""
    task = halves.predict[:, None]
    chosen = [
        array[task, points]
        for points in (halves.context, halves.test)
        for array in (history.x, history.y)
    ]
    return ContextSplit(*(jnp.asarray(array) for array in chosen))
