"""The offline study: learn from past runs, then optimise unseen tasks (section 5.3 of the paper).

For each seed, n runs of T points are collected with fixed GP-UCB, every method learns from them
and optimises the same unseen tasks, from an empty run. Simple and inference regret of every step
are recorded; random search has no model, and its inference regret is NaN.
"""

import numpy as np

from metaprior.gp import float64
from metaprior.lab.environments import known_families
from metaprior.lab.studies._batches import rows_of
from metaprior.lab.studies._jobs import Columns, Job
from metaprior.lab.studies._repetitions import (
    histories,
    keys_of,
    learn_seeds,
    optima,
    split_each,
    unseen_tasks,
)
from metaprior.lab.studies._specification import Specification, jobs_by_seeds
from metaprior.metrics import inference_regret, simple_regret

KIND = "metaprior.lab.studies:run_offline"


def jobs(specification: Specification) -> list[Job]:
    """One job for each method on each environment and block of seeds."""
    return jobs_by_seeds(KIND, specification, ("acquisition", "tasks", "steps"))


@float64
def run_offline(job: Specification) -> Columns:
    """Regret by seed, task and step; `step` queries have been made at step `step`."""
    seeds, chunk = tuple(job["seeds"]), job["chunk"]
    family = known_families()[job["environment"]]
    tasks = unseen_tasks(job["environment"], job["tasks"], seeds)
    optimum = optima(job["environment"], job["tasks"], seeds)
    past = histories(job["environment"], job["past_tasks"], job["past_steps"], seeds, chunk)
    found = learn_seeds(job, past).race(
        tasks,
        job["steps"],
        keys=split_each([keys_of(seed).race for seed in seeds], optimum.shape[1]),
        noise_std=family.noise_std,
        chunk=chunk,
    )
    axes = {"seed": seeds, "task": range(optimum.shape[1]), "step": range(1, job["steps"] + 1)}
    return rows_of(
        {name: np.asarray(values) for name, values in axes.items()},
        {
            "simple_regret": simple_regret(optimum, found.values),
            "inference_regret": inferred(optimum, found.values_at_predicted_best),
        },
    )


def inferred(optimum: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The inference regret; NaN where there is no model to infer with."""
    if np.isnan(values).all():
        return values
    return inference_regret(optimum, values)
