"""The lifelong study: consecutive runs, each with a prior learned from all runs before it.

Section 5.4 of the paper. A sequence is a series of unseen tasks. The first is optimised with
fixed GP-UCB; before each of the others the method learns again from all runs of the sequence so
far. The inference regret, summed up over all steps and runs, is the paper's cumulative one.
"""

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.data import Tasks
from metaprior.gp import float64
from metaprior.lab.environments import AbstractTask, Family, known_families
from metaprior.lab.studies._batches import rows_of
from metaprior.lab.studies._jobs import Columns, Job
from metaprior.lab.studies._line_up import contender_of
from metaprior.lab.studies._offline import inferred
from metaprior.lab.studies._races import PolicyRace, recorded
from metaprior.lab.studies._repetitions import (
    keys_of,
    optima,
    stacked_keys,
    unseen_tasks,
)
from metaprior.lab.studies._specification import Specification, block_of, blocks
from metaprior.metrics import simple_regret

KIND = "metaprior.lab.studies:run_lifelong"


def jobs(specification: Specification) -> list[Job]:
    """One job for each method on each environment and block of pairs of sequence and seed."""
    how = {name: specification[name] for name in ("acquisition", "runs", "steps")}
    how["chunk"] = specification.get("chunk")
    pairs = [
        [sequence, seed]
        for sequence in range(specification["sequences"])
        for seed in range(specification["seeds"])
    ]
    found = [
        Job(KIND, {**_without_past(entrant), **how, "pairs": some})
        for entrant in specification["entrants"]
        for some in blocks(pairs, block_of(entrant, specification))
    ]
    # The first sequences of all come first, so that a study that is ended early is balanced.
    return sorted(found, key=lambda job: job.specification["pairs"][0])


@float64
def run_lifelong(job: Specification) -> Columns:
    """Regret by sequence, seed, run and step; runs and steps are counted from 1."""
    pairs, steps, chunk = job["pairs"], job["steps"], job["chunk"]
    family = known_families()[job["environment"]]
    sequences = tuple(sequence for sequence, _ in pairs)
    tasks = unseen_tasks(job["environment"], job["runs"], sequences)
    optimum = optima(job["environment"], job["runs"], sequences)
    num_runs = optimum.shape[1]
    contender = contender_of(job)
    learned, races = contender.begin(len(pairs)), list[PolicyRace]()
    for i in range(num_runs):
        if races:
            learned = contender.learn(
                _histories(family, races),
                keys=_keys(pairs, "train", i),
                room=num_runs - 1,
                chunk=chunk,
                before=learned,
            )
        races.append(
            learned.race(
                _of_run(tasks, i),
                steps,
                keys=_keys(pairs, "race", i)[:, None],
                noise_std=family.noise_std,
                chunk=chunk,
            )
        )
    values, predicted = (
        np.concatenate([getattr(race, name) for race in races], axis=1)
        for name in ("values", "values_at_predicted_best")
    )
    columns = rows_of(
        {"pair": range(len(pairs)), "run": range(1, num_runs + 1), "step": range(1, steps + 1)},
        {
            "simple_regret": simple_regret(optimum, values),
            "inference_regret": inferred(optimum, predicted),
        },
    )
    sequence, seed = np.asarray(pairs)[columns.pop("pair")].T
    return {"sequence": sequence, "seed": seed, **columns}


def _histories(family: Family, races: list[PolicyRace]) -> list[Tasks]:
    """All runs of each pair so far."""
    x: Float[np.ndarray, "pairs runs steps d"] = np.concatenate([race.x for race in races], axis=1)
    y: Float[np.ndarray, "pairs runs steps"] = np.concatenate([race.y for race in races], axis=1)
    return [recorded(family, *runs) for runs in zip(x, y, strict=True)]


def _of_run(tasks: AbstractTask, i: int) -> AbstractTask:
    """The task of run `i` of each pair, on an axis of its own."""
    return jax.tree.map(lambda leaf: leaf[:, i : i + 1], tasks)


def _keys(pairs: list[list[int]], purpose: str, i: int) -> Key[Array, " pairs"]:
    """A key for run `i` of each pair: the tasks depend on the sequence alone, luck on both."""
    return stacked_keys(
        [
            jax.random.fold_in(jax.random.fold_in(getattr(keys_of(seed), purpose), sequence), i)
            for sequence, seed in pairs
        ]
    )


def _without_past(entrant: Specification) -> Specification:
    """There is no history before the first run, so its sizes decide nothing."""
    return {name: value for name, value in entrant.items() if not name.startswith("past_")}
