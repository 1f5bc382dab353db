"""The search for hyper-parameters: random configurations, judged on tasks never reported on.

Appendix B of the paper. Configurations are drawn from the ranges that each method documents,
trained on histories of validation seeds, raced on validation tasks, and asked to predict them at
uniform points; `_choice.py` says which is best. A configuration that diverges is dropped and
counted.

Settings are of three sorts. Numbers are traced and may differ between trainings done at once; sizes
decide the shapes of compiled code; numbers of training steps are checkpoints of one training. A
search draws a few shapes and, for each, many configurations of the numbers, since every shape is
compiled anew; each is judged at all checkpoints.
"""

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float

from metaprior.gp import float64
from metaprior.lab.environments import known_families
from metaprior.lab.studies._batches import rows_of, train_at
from metaprior.lab.studies._calibration import uniform_exams
from metaprior.lab.studies._choice import choose
from metaprior.lab.studies._configurations import ChosenConfiguration, write_configuration
from metaprior.lab.studies._contenders import CompiledBatch
from metaprior.lab.studies._draws import Settings, choices_in, draw_numbers, draw_shapes
from metaprior.lab.studies._entrants import EntrantName, method_named, search_ranges
from metaprior.lab.studies._folder import DataFrame
from metaprior.lab.studies._jobs import Columns, Job
from metaprior.lab.studies._repetitions import (
    VALIDATION_SEED,
    histories,
    keys_of,
    optima,
    split_each,
    stacked_keys,
    stacked_tasks,
    unseen_tasks,
)
from metaprior.lab.studies._specification import Specification, blocks
from metaprior.methods import AbstractMethod, AbstractSurrogate, settings_of
from metaprior.metrics import calibration_error

KIND = "metaprior.lab.studies:run_search"
DRAW_SEED = 0
# A run is judged early after so many queries; so many of the last count for the inference regret.
EARLY, LAST_STEPS = 20, 50
# A number for the keys of the points that are predicted.
EXAM = 1


def jobs(specification: Specification) -> list[Job]:
    """One job for each method on each environment, shape and block of configurations, which train
    at once."""
    names = ("acquisition", "tasks", "steps", "contexts", "points")
    how = {name: specification[name] for name in names}
    how["chunk"] = specification.get("chunk")
    return [
        Job(KIND, {**part, **how, "seeds": validation_seeds(entrant["environment"], specification)})
        for entrant in specification["entrants"]
        for part in _parts(entrant, specification)
    ]


def validation_seeds(environment: str, specification: Specification) -> list[int]:
    """As many priors as asked for, and more where a family has fewer validation tasks for each of
    them, so that there are as many pairs of prior and task."""
    wanted = specification["tasks"]
    there = known_families()[environment].rehearsal(0).available.validation
    tasks = wanted if there is None else min(wanted, there)
    return [VALIDATION_SEED + i for i in range(-(-wanted * specification["seeds"] // tasks))]


def _parts(entrant: Specification, specification: Specification) -> list[Specification]:
    """The configurations of a method, dealt to its shapes in turn."""
    method = entrant["method"]
    ranges = search_ranges(method)
    checkpoints: list[int] = []
    if method_named(method).trains_in_batches:
        drawn = ranges.pop("num_steps", None)
        if drawn is None or "num_steps" in specification:
            checkpoints = [entrant["settings"]["num_steps"]]
        else:
            checkpoints = sorted(choices_in("num_steps", drawn))
    shapes = draw_shapes(method, ranges, specification["shapes"], DRAW_SEED)
    draws = range(specification["draws"])
    return [
        {
            **{name: value for name, value in entrant.items() if name != "configuration"},
            "settings": entrant["settings"] | shape,
            "ranges": ranges,
            "checkpoints": checkpoints,
            "configurations": some,
        }
        for i, shape in enumerate(shapes)
        if draws[i :: len(shapes)]
        for some in blocks(draws[i :: len(shapes)], specification.get("block"))
    ]


@float64
def run_search(job: Specification) -> Columns:
    """All measures by configuration, training steps, seed and task; NaN where one diverged.

    A method that is not trained in steps has 0 of them.
    """
    seeds, chunk = tuple(job["seeds"]), job["chunk"]
    past = histories(job["environment"], job["past_tasks"], job["past_steps"], seeds, chunk)
    methods = _configured(job)
    # Every configuration with every seed: the seeds of the first, then those of the second.
    each = [(method, i) for method in methods for i in range(len(seeds))]
    found = train_at(
        [method for method, _ in each],
        [past[i] for _, i in each],
        job["checkpoints"],
        keys=stacked_keys([keys_of(seeds[i]).train for _, i in each]),
        chunk=chunk,
    )
    parts = [_judged(job, methods, num_steps, surrogates, seeds) for num_steps, surrogates in found]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _judged(
    job: Specification,
    methods: list[AbstractMethod],
    num_steps: int,
    surrogates: AbstractSurrogate,
    seeds: tuple[int, ...],
) -> Columns:
    """The records of all configurations after `num_steps` training steps."""
    family, chunk = known_families()[job["environment"]], job["chunk"]
    tasks = unseen_tasks(job["environment"], job["tasks"], seeds)
    optimum = optima(job["environment"], job["tasks"], seeds)
    order = [i for _ in methods for i in range(len(seeds))]
    tasks = stacked_tasks([jax.tree.map(lambda leaf, i=i: leaf[i], tasks) for i in order])
    batch = CompiledBatch.asking(
        surrogates, EntrantName.of(job["method"]).acquisition(job["acquisition"]), family
    )
    num_tasks = optimum.shape[1]
    raced = batch.race(
        tasks,
        job["steps"],
        keys=split_each([keys_of(seeds[i]).race for i in order], num_tasks),
        noise_std=family.noise_std,
        chunk=chunk,
    )
    points = [jax.random.fold_in(keys_of(seeds[i]).race, EXAM) for i in order]
    exams = uniform_exams(
        tasks, max(1, *job["contexts"]), job["points"], keys=split_each(points, num_tasks)
    )
    judged = batch.judge(exams, job["contexts"], chunk=chunk)
    shape = len(methods), *optimum.shape
    values, predicted = (
        array.reshape(*shape, -1) for array in (raced.values, raced.values_at_predicted_best)
    )
    errors = np.apply_along_axis(_error_if_known, -1, judged.cdf)
    measures = {
        "early_regret": optimum - values[..., :EARLY].max(axis=3),
        "simple_regret": optimum - values.max(axis=3),
        "inference_regret": optimum - predicted[..., -LAST_STEPS:].mean(axis=3),
        "log_likelihood": judged.log_density.mean(axis=(2, 3)).reshape(shape),
        "calibration_error": errors.mean(axis=2).reshape(shape),
    }
    learned = finite_entries(surrogates).reshape(shape[:2])[..., None]
    sound = learned & np.all([np.isfinite(values) for values in measures.values()], axis=0)
    # One diverged seed rejects the whole configuration.
    diverged = np.broadcast_to(~sound.all(axis=(1, 2), keepdims=True), shape)
    columns = rows_of(
        {
            "configuration": job["configurations"],
            "num_steps": [num_steps],
            "seed": np.asarray(seeds),
            "task": range(num_tasks),
        },
        {name: np.where(diverged, np.nan, values)[:, None] for name, values in measures.items()},
    )
    drawn = {
        index: json.dumps(_settings_at(method, num_steps))
        for index, method in zip(job["configurations"], methods, strict=True)
    }
    return {
        **columns,
        "diverged": diverged.ravel(),
        "drawn": np.array([drawn[i] for i in columns["configuration"].tolist()]),
    }


def _error_if_known(cdf: Float[np.ndarray, " points"]) -> float:
    """The calibration error; NaN for the predictions of a model that diverged."""
    return calibration_error(cdf) if np.isfinite(cdf).all() else np.nan


def _settings_at(method: AbstractMethod, num_steps: int) -> Settings:
    return settings_of(method) | ({"num_steps": num_steps} if method.trains_in_batches else {})


def _configured(job: Specification) -> list[AbstractMethod]:
    """The method in every configuration of the job."""
    name, ranges = job["method"], job["ranges"]
    return [
        method_named(name, job["settings"] | draw_numbers(name, ranges, index, DRAW_SEED))
        for index in job["configurations"]
    ]


def finite_entries(batch: AbstractSurrogate) -> Bool[np.ndarray, " batch"]:
    """Which entries of a batch of surrogates have finite numbers only."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(batch, eqx.is_inexact_array))]
    flat = [np.isfinite(array).reshape(len(array), -1).all(axis=1) for array in arrays]
    return np.all(flat, axis=0)


def write_configurations(
    folder: Path, specification: Specification, records: DataFrame, criterion: str | None = None
) -> tuple[list[Path], list[str]]:
    """A file for each method on each environment, in `folder`; and sentences on what has none.

    - `criterion`: by default that of the search.
    """
    by: str = specification["criterion"] if criterion is None else criterion
    written, without = [], []
    for (environment, method), some in records.groupby(["environment", "method"], sort=False):
        found = choose(some, by)
        if found["settings"] is None:
            count = found["searched"]["configurations"]
            without.append(
                f"All {count} configurations of {method} on {environment} diverged; it has none."
            )
            continue
        found["searched"] |= {
            "criterion": by,
            "ranges": search_ranges(method),
            **{name: specification[name] for name in ("steps", "acquisition", "shapes")},
            **effort(some, specification["steps"]),
        }
        chosen = ChosenConfiguration(environment, method, **found)
        written.append(write_configuration(folder, chosen))
    return written, without


def effort(records: DataFrame, steps: int) -> dict[str, Any]:
    """How much work the search of one method on one environment was.

    - `priors`, `tasks`: validation seeds, and tasks of each; `checkpoints`: numbers of steps.
    - `training_steps`, `runs`, `queries`: of all configurations together.
    """
    checkpoints = sorted({int(each) for each in records["num_steps"]})
    seeds = sorted({int(each) for each in records["seed"]})
    trainings = records["configuration"].nunique() * len(seeds)
    return {
        "seeds": seeds,
        "tasks": int(records["task"].nunique()),
        "checkpoints": checkpoints,
        "training_steps": trainings * checkpoints[-1],
        "runs": len(records),
        "queries": len(records) * steps,
    }
