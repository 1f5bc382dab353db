"""What a misleading past costs, with and without the guard.

    python -m benchmarks.negative_transfer             # 3 seeds x 10 tasks, some minutes
    python -m benchmarks.negative_transfer --quick     # 1 seed x 3 tasks, to see that it works
    python -m benchmarks.negative_transfer --records all.json
    python -m benchmarks.negative_transfer --show all.json --markdown

New tasks are random Branin functions. Past runs are fixed GP-UCB histories (n and T of the
family) of functions that are like them, or not:

    friendly    Branin functions
    shifted     moved by a third of the domain along both axes
    mirrored    turned around along both axes
    flipped     with the opposite sign: what was good is bad

F-PACOH-MAP with its defaults is trained on each and then optimises the same new tasks without and
with the guard, beside two non-transfer Gaussian processes: one that is fitted to the run, and the
one averaged over its hyper-parameters that the guard falls back on. All start from an empty run and
use the library's default acquisition. The constants of the guard were chosen on the seeds from 1000
on; 0, 1, 2 were not used.
"""

import argparse
import json
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from rich.console import Console
from rich.table import Table

from metaprior.data import Run, Space, Tasks
from metaprior.gp import float64
from metaprior.lab.environments import AbstractFormula, Branin
from metaprior.lab.policies import CompiledRestlessBound, SurrogatePolicy
from metaprior.lab.studies import PolicyRace, fixed_gp_policy, race, recorded
from metaprior.methods import (
    AbstractSurrogate,
    FittedGP,
    FPacohMap,
    Guarded,
    GuardedSurrogate,
)
from metaprior.metrics import mean_and_interval, simple_regret

FAMILY = Branin()
NUM_QUERIES = 40
STEPS = (10, 20, 40)
TRUST_STEPS = (0, 5, 10, 20, 40)
FITTED, AVERAGED = "fitted GP", "averaged GP"
BARE, GUARDED = "learned, no guard", "learned, guarded"


class Disguised(AbstractFormula):
    """A function turned around, moved and multiplied: a past task that is unlike the new ones."""

    space: ClassVar[Space] = FAMILY.space

    task: AbstractFormula
    turn: Float[Array, "..."]
    move: Float[Array, "..."]
    factor: Float[Array, "..."]

    def native(self, x):
        return self.task.native(x)

    def __call__(self, u):
        return self.factor * self.task(0.5 + self.turn * (u - 0.5) + self.move)


# turn, move, factor
HISTORIES = {
    "friendly": (1.0, 0.0, 1.0),
    "shifted": (1.0, 1.0 / 3.0, 1.0),
    "mirrored": (-1.0, 0.0, 1.0),
    "flipped": (1.0, 0.0, -1.0),
}
# Regret of each arm and trust of the guard, a row for each task.
Records = dict[str, list]


@float64
def past_runs(history: str, num_tasks: int, run_length: int, *, key) -> Tasks:
    """Runs of fixed GP-UCB on tasks of that history."""
    key_tasks, key_race = jax.random.split(key)
    tasks = FAMILY.training_tasks(num_tasks, key=key_tasks)
    turn, move, factor = (jnp.full(num_tasks, value) for value in HISTORIES[history])
    disguised = Disguised(tasks, turn, move, factor)
    found = race(fixed_gp_policy(FAMILY), disguised, run_length, key=key_race)
    return recorded(FAMILY, found.x, found.y)


@float64
def evaluate(history: str, seed: int, num_tasks: int, method: FPacohMap) -> Records:
    """All arms on unseen tasks of one seed, after one history."""
    key_history, key_tasks, key_train, key_test = jax.random.split(jax.random.key(seed), 4)
    past = past_runs(history, FAMILY.num_tasks, FAMILY.run_length, key=key_history)
    tasks = FAMILY.test_tasks(num_tasks, key=key_tasks)
    optimum = FAMILY.optimum(tasks).value
    guarded = Guarded(method).meta_train(past, key=key_train)
    arms = {
        FITTED: FittedGP().from_scratch(FAMILY.space.num_columns),
        AVERAGED: guarded.averaged,
        BARE: guarded.learned,
        GUARDED: guarded,
    }
    records: Records = {}
    for name, surrogate in arms.items():
        found = race(_policy(surrogate), tasks, NUM_QUERIES, key=key_test)
        records[name] = simple_regret(optimum, found.values).tolist()
        if name == GUARDED:
            records["trust"] = trust_along(guarded, found).tolist()
    return records


def _policy(surrogate: AbstractSurrogate) -> SurrogatePolicy:
    return SurrogatePolicy(
        surrogate=surrogate, acquisition=CompiledRestlessBound(), space=FAMILY.space
    )


@float64
def trust_along(guarded: GuardedSurrogate, found: PolicyRace) -> Float[np.ndarray, "tasks steps"]:
    """Trust after each number of queries from none to all."""
    return np.asarray(_trust(guarded, jnp.asarray(found.x), jnp.asarray(found.y)))


@eqx.filter_jit
def _trust(guarded, x, y):
    lengths = jnp.arange(y.shape[1] + 1)

    def one(run):
        points, values = run
        return jax.lax.map(lambda length: guarded.trust(Run(points, values, length)), lengths)

    return jax.lax.map(one, (x, y))


def pool(several: list[Records]) -> dict[str, np.ndarray]:
    """The records of several seeds together."""
    return {name: np.concatenate([np.asarray(r[name]) for r in several]) for name in several[0]}


def rows(history: str, pooled: dict[str, np.ndarray]) -> list[list[str]]:
    """One row for each arm: regret, how it compares with the fitted GP's, and trust."""
    shown = []
    for arm in (FITTED, AVERAGED, BARE, GUARDED):
        row = [history, arm]
        for t in STEPS:
            mean, half_width = mean_and_interval(pooled[arm][:, t - 1])
            row.append(f"{float(mean):.3g} ± {float(half_width):.1g}")
        for t in STEPS[1:]:
            row.append(f"{pooled[arm][:, t - 1].mean() / pooled[FITTED][:, t - 1].mean():.2f}")
        trust = [f"{pooled['trust'][:, t].mean():.2f}" for t in TRUST_STEPS]
        shown.append([*row, " ".join(trust) if arm == GUARDED else ""])
    return shown


HEADER = [
    "past runs",
    "arm",
    *(f"regret t={t}" for t in STEPS),
    *(f"ratio t={t}" for t in STEPS[1:]),
    f"trust at t={', '.join(map(str, TRUST_STEPS))}",
]


def show(records: dict[str, list[Records]], console: Console) -> None:
    grid = Table(*HEADER, title="Simple regret, mean ± 95 % interval; ratio to the fitted GP")
    for history, several in records.items():
        for row in rows(history, pool(several)):
            grid.add_row(*row)
    console.print(grid)


def markdown(records: dict[str, list[Records]]) -> str:
    lines = [f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|"]
    for history, several in records.items():
        lines += [f"| {' | '.join(row)} |" for row in rows(history, pool(several))]
    return "\n".join(lines)


def read(paths: list[Path]) -> dict[str, list[Records]]:
    records: dict[str, list[Any]] = {}
    for path in paths:
        for history, several in json.loads(path.read_text()).items():
            records.setdefault(history, []).extend(several)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", default=",".join(HISTORIES), help="comma separated")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="1000 and above: for tuning")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="1 seed x 3 tasks, a short training")
    parser.add_argument("--records", type=Path, help="write every number here as JSON")
    parser.add_argument("--show", type=Path, nargs="+", help="show records instead of making them")
    parser.add_argument("--markdown", action="store_true", help="with --show: a table for a page")
    arguments = parser.parse_args()
    console = Console(width=180)
    if arguments.show:
        records = read(arguments.show)
        return print(markdown(records)) if arguments.markdown else show(records, console)
    method = FPacohMap(num_steps=500) if arguments.quick else FPacohMap()
    num_seeds, num_tasks = (1, 3) if arguments.quick else (arguments.seeds, arguments.tasks)
    records = {history: [] for history in arguments.histories.split(",")}
    for history in records:
        for seed in range(arguments.first_seed, arguments.first_seed + num_seeds):
            records[history].append(evaluate(history, seed, num_tasks, method))
            if arguments.records:
                arguments.records.write_text(json.dumps(records))
            console.print(f"{history}, seed {seed}: done")
    show({history: several for history, several in records.items() if several}, console)


if __name__ == "__main__":
    main()
