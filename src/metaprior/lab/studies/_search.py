"""The search for hyper-parameters: random configurations, judged on tasks never reported on.

Appendix B of the paper. Configurations are drawn from the ranges that each method documents,
trained on histories of validation seeds and raced on validation tasks. The best has the lowest
average rank in two metrics: the simple regret after the last step, and the inference regret
averaged over the last 50 steps. A configuration that diverges is dropped and counted.

Settings are of two sorts. Numbers are traced and may differ between trainings done at once; sizes
decide the shapes of compiled code. A search draws a few shapes and, for each, many configurations
of the numbers, since every shape is compiled anew.
"""

import json
from dataclasses import fields
from itertools import product
from math import exp, log
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool

from metaprior.gp import float64
from metaprior.lab.environments import known_families
from metaprior.lab.studies._batches import race_each, rows_of, train_each
from metaprior.lab.studies._configurations import ChosenConfiguration, write_configuration
from metaprior.lab.studies._entrants import method_named, policy_of, search_ranges
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
from metaprior.lab.studies._specification import Specification
from metaprior.methods import AbstractMethod, AbstractSurrogate, is_traced, settings_of

KIND = "metaprior.lab.studies:run_search"
DRAW_SEED = 0
LAST_STEPS = 50

Ranges = dict[str, list[Any]]
Settings = dict[str, Any]


def jobs(specification: Specification) -> list[Job]:
    """One job for each method on each environment and shape; all of a shape train at once."""
    how = {name: specification[name] for name in ("acquisition", "tasks", "steps")}
    how["chunk"] = specification.get("chunk")
    how["seeds"] = [VALIDATION_SEED + i for i in range(specification["seeds"])]
    return [
        Job(KIND, {**part, **how})
        for entrant in specification["entrants"]
        for part in _parts(entrant, specification)
    ]


def _parts(entrant: Specification, specification: Specification) -> list[Specification]:
    """The configurations of a method, dealt to its shapes in turn."""
    method = entrant["method"]
    ranges = _ranges(method, specification)
    shapes = draw_shapes(method, ranges, specification["shapes"], DRAW_SEED)
    draws = range(specification["draws"])
    return [
        {
            **{name: value for name, value in entrant.items() if name != "configuration"},
            "settings": entrant["settings"] | shape,
            "ranges": ranges,
            "configurations": list(draws[i :: len(shapes)]),
        }
        for i, shape in enumerate(shapes)
        if draws[i :: len(shapes)]
    ]


def _ranges(method: str, specification: Specification) -> dict[str, list[Any]]:
    """What is searched: the method's ranges but for training steps, if those were asked for."""
    ranges = search_ranges(method)
    if "num_steps" in specification and method_named(method).trains_in_batches:
        ranges.pop("num_steps", None)
    return ranges


def sizes_in(method: str, ranges: Ranges) -> list[str]:
    """Settings that decide the shapes of compiled code: whatever is not traced.

    Trainings in one batch may differ in length.
    """
    configured = method_named(method)
    free = {setting.name for setting in fields(configured) if is_traced(setting)}
    if configured.trains_in_batches:
        free.add("num_steps")
    return [name for name in ranges if name not in free]


def draw_shapes(method: str, ranges: Ranges, num: int, seed: int) -> list[Settings]:
    """At most `num` different settings of the sizes, all of them if there are no more."""
    names = sizes_in(method, ranges)
    every = [
        dict(zip(names, values, strict=True))
        for values in product(*(_choices(name, ranges[name]) for name in names))
    ]
    if len(every) <= num:
        return every
    chosen = np.random.default_rng([seed, 0]).choice(len(every), size=num, replace=False)
    return [every[i] for i in sorted(chosen.tolist())]


def draw_numbers(method: str, ranges: Ranges, index: int, seed: int) -> Settings:
    """The settings of configuration `index` that are not sizes."""
    # A stream for each configuration, so that it does not depend on which others are drawn.
    rng = np.random.default_rng([seed, 1, index])
    sizes = sizes_in(method, ranges)
    return {name: _drawn(name, ranges[name], rng) for name in ranges if name not in sizes}


def _drawn(name: str, described: list[Any], rng: np.random.Generator) -> Any:
    if described[0] == "log-uniform":
        _, low, high = described
        return exp(rng.uniform(log(low), log(high)))
    choices = _choices(name, described)
    return choices[int(rng.integers(len(choices)))]


def _choices(name: str, described: list[Any]) -> list[Any]:
    if described[0] != "choice":
        raise ValueError(
            f"The range of {name} is {described!r}; give ['log-uniform', low, high] for a number "
            "or ['choice', [...]] for anything."
        )
    return list(described[1])


@float64
def run_search(job: Specification) -> Columns:
    """Both metrics by configuration, seed and task; NaN where a configuration diverged."""
    seeds, chunk = tuple(job["seeds"]), job["chunk"]
    family = known_families()[job["environment"]]
    tasks = unseen_tasks(job["environment"], job["tasks"], seeds)
    optimum = optima(job["environment"], job["tasks"], seeds)
    past = histories(job["environment"], job["past_tasks"], job["past_steps"], seeds, chunk)
    methods = _configured(job)
    # Every configuration with every seed: the seeds of the first, then those of the second.
    each = [(method, i) for method in methods for i in range(len(seeds))]
    surrogates = train_each(
        [method for method, _ in each],
        [past[i] for _, i in each],
        keys=stacked_keys([keys_of(seeds[i]).train for _, i in each]),
        chunk=chunk,
        may_diverge=True,
    )
    found = race_each(
        policy_of(surrogates, job["acquisition"], family.space),
        stacked_tasks([jax.tree.map(lambda leaf, i=i: leaf[i], tasks) for _, i in each]),
        job["steps"],
        keys=split_each([keys_of(seeds[i]).race for _, i in each], optimum.shape[1]),
        noise_std=family.noise_std,
        infer=True,
        chunk=chunk,
    )
    shape = len(methods), *optimum.shape
    values, predicted = (
        array.reshape(*shape, -1) for array in (found.values, found.values_at_predicted_best)
    )
    learned = finite_entries(surrogates).reshape(shape[:2])[..., None]
    sound = learned & np.isfinite(values).all(axis=3) & np.isfinite(predicted).all(axis=3)
    # One diverged seed rejects the whole configuration.
    diverged = np.broadcast_to(~sound.all(axis=(1, 2), keepdims=True), shape)
    columns = rows_of(
        {
            "configuration": job["configurations"],
            "seed": np.asarray(seeds),
            "task": range(shape[2]),
        },
        {
            "simple_regret": np.where(diverged, np.nan, optimum - values.max(axis=3)),
            "inference_regret": np.where(
                diverged, np.nan, optimum - predicted[..., -LAST_STEPS:].mean(axis=3)
            ),
        },
    )
    drawn = {
        i: json.dumps(settings_of(m)) for i, m in zip(job["configurations"], methods, strict=True)
    }
    return {
        **columns,
        "diverged": diverged.ravel(),
        "drawn": np.array([drawn[i] for i in columns["configuration"].tolist()]),
    }


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


def choose(records: DataFrame) -> dict[str, Any]:
    """The best configuration among the records of one method on one environment.

    Configurations are ranked by each metric, averaged over seeds and tasks; the lowest average rank
    wins, of equals the one with less simple regret.
    """
    by_configuration = records.groupby("configuration")
    metrics = by_configuration[["simple_regret", "inference_regret"]].mean()
    metrics = metrics[~by_configuration["diverged"].any()]
    counts = {"configurations": by_configuration.ngroups}
    counts["diverged"] = counts["configurations"] - len(metrics)
    if metrics.empty:
        return {"settings": None, "searched": counts}
    metrics["average_rank"] = metrics.rank().mean(axis=1)
    best = metrics.sort_values(["average_rank", "simple_regret"], kind="stable").iloc[0]
    mine = records[records["configuration"] == best.name]
    return {
        "settings": json.loads(mine["drawn"].iloc[0]),
        "scores": {"configuration": int(best.name), **best.astype(float).to_dict()},
        "searched": counts,
    }


def write_configurations(
    folder: Path, specification: Specification, records: DataFrame
) -> tuple[list[Path], list[str]]:
    """A file for each method on each environment, in `folder`; and sentences on what has none."""
    written, without = [], []
    for (environment, method), some in records.groupby(["environment", "method"], sort=False):
        found = choose(some)
        if found["settings"] is None:
            count = found["searched"]["configurations"]
            without.append(
                f"All {count} configurations of {method} on {environment} diverged; it has none."
            )
            continue
        found["searched"] |= {
            "ranges": _ranges(method, specification),
            **{name: specification[name] for name in ("seeds", "tasks", "steps", "acquisition")},
            "seeds": [VALIDATION_SEED + i for i in range(specification["seeds"])],
            "shapes": specification["shapes"],
        }
        chosen = ChosenConfiguration(environment, method, **found)
        written.append(write_configuration(folder, chosen))
    return written, without
