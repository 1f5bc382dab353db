"""Does it help to tell what is known of a task? Priors with and without features of tasks.

    python -m benchmarks.task_features --out features.jsonl --workers 16   # 9 priors of each kind
    python -m benchmarks.task_features --families hills --out hills.jsonl
    python -m benchmarks.task_features --show features.jsonl               # tables in Markdown

A seed cuts the 35 tasks of a family into 24 past and 11 unseen ones. Every past run is 25 queries
of a non-transfer optimiser; `metaprior.learn` with the budget "fast" learns four priors from the
same runs:

    without              nothing is known of the tasks
    with                 the features of the tasks
    with, and 3 random   the same, and three numbers drawn at random for each task
    3 random only        these numbers alone

`lcbench`: neural networks on 35 data sets; rows, classes and columns of the
data set are known. `hills`: simulated, drawn anew for every seed: a hill whose top moves with the
temperature of the day, which is known, and a little by itself. Both have 2,000 configurations.

Each prior is asked for ten queries on every unseen task, among all configurations, and predicts 200
random configurations given none, one and four others. Regret is the distance to the best value as a
share of the distance from the median to the best; the log-likelihood is in units of the spread of
all past values. Nothing was tuned on the seeds below 1000.

A prior is one line of --out; what is there is not made again. The unit
of replication is the seed: intervals are 95 % intervals (Student's t) of the mean difference
between priors of one seed.
"""

import argparse
import functools
import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import t as student

from benchmarks._processes import in_workers
from benchmarks._tables import LCBENCH
from benchmarks.field._pools import LCBENCH_SPACE
from metaprior.belief import Prior
from metaprior.bo import Optimizer
from metaprior.data import Real, Space, Tasks

KNOWN = ("instances", "classes", "features")
HILLS = Space(x=Real(0.0, 1.0), z=Real(0.0, 1.0))
FAMILIES = ("lcbench", "hills")
NUM_RANDOM = 3
NUM_TASKS, NUM_PAST, RUN_LENGTH = 35, 24, 25
NUM_QUERIES = 10
NUM_POINTS, CONTEXTS = 200, (0, 1, 4)
WITHOUT, WITH, BOTH, RANDOM = "without", "with", "with, and 3 random", "3 random only"
VARIANTS = (WITHOUT, WITH, BOTH, RANDOM)
SHOWN_REGRETS = (1, 3, 10)


class Table(NamedTuple):
    """The configurations of a family, their values on each task, and what is known of the tasks."""

    space: Space
    rows: list[dict[str, Any]]
    values: Float[np.ndarray, "tasks rows"]
    known: dict[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="file of the records, one line for each prior")
    parser.add_argument("--families", default="lcbench", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--seeds", type=int, default=9, help="how many priors of each kind")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--variants", default=";".join(VARIANTS), help="separated by semicolons")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tasks", type=int, help="so many unseen tasks only, for a trial")
    parser.add_argument("--show", type=Path, nargs="+", help="show records instead of making them")
    arguments = parser.parse_args()
    if arguments.show:
        print(shown([record for path in arguments.show for record in read(path)]))
        return
    if arguments.out is None:
        parser.error("give --out with the file of the records, or --show")
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    done = {(r["family"], r["seed"], r["variant"]) for r in read(arguments.out)}
    names = itertools.product(arguments.families.split(","), seeds, arguments.variants.split(";"))
    wanted = list(names)
    run([job for job in wanted if job not in done], arguments)


def run(jobs: Sequence[tuple[str, int, str]], arguments: argparse.Namespace) -> None:
    """Every prior in a process with one thread; its record is written as soon as it is there."""
    work = functools.partial(_record_of_job, num_tasks=arguments.tasks)
    for number, (_, record) in enumerate(in_workers(work, jobs, arguments.workers), start=1):
        with arguments.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        used = ", ".join(record["used"]) or "none"
        job = f"{record['family']}, seed {record['seed']}, {record['variant']}"
        print(f"{number}/{len(jobs)}: {job}: uses {used}", flush=True)


def _record_of_job(job: tuple[str, int, str], num_tasks: int | None) -> dict[str, Any]:
    return record_of(*job, num_tasks)


def read(path: Path) -> list[dict[str, Any]]:
    """The records in a file; none if it does not exist."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def record_of(family: str, seed: int, variant: str, num_tasks: int | None = None) -> dict[str, Any]:
    """One prior: learned, asked, and judged."""
    from metaprior.learning import learn

    table = lcbench(LCBENCH) if family == "lcbench" else hills(seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(table.values))
    past, unseen = order[:NUM_PAST].tolist(), order[NUM_PAST:].tolist()[:num_tasks]
    features = features_of(table, variant, rng)
    tasks = Tasks.from_runs(
        [past_run(table, task, seed) for task in past],
        space=table.space,
        features=[features[task] for task in past] if variant != WITHOUT else None,
    )
    prior = learn(tasks, budget="fast", seed=seed)
    known = {task: features[task] if variant != WITHOUT else {} for task in unseen}
    spread = float(np.std(tasks.y[tasks.mask]))
    return {
        "family": family,
        "seed": seed,
        "variant": variant,
        "used": [feature.name for feature in prior.features.used],
        "regret": [regrets(prior, known[t], table, t, seed) for t in unseen],
        "log_likelihood": [log_likelihoods(prior, known[t], table, t, spread) for t in unseen],
        "seconds": None if prior.findings is None else prior.findings.seconds,
    }


def lcbench(path: Path) -> Table:
    """The table in the file."""
    with np.load(path, allow_pickle=False) as arrays:
        columns = [arrays[name].tolist() for name in LCBENCH_SPACE.names]
        rows = [
            dict(zip(LCBENCH_SPACE.names, row, strict=True)) for row in zip(*columns, strict=True)
        ]
        known = {name: arrays[f"task_{name}"] for name in KNOWN}
        return Table(LCBENCH_SPACE, rows, arrays["val_accuracy"].astype(float), known)


def hills(seed: int) -> Table:
    """Hills on a grid, whose tops move with a temperature."""
    rng = np.random.default_rng([seed, NUM_TASKS])
    temperature = rng.uniform(10.0, 35.0, NUM_TASKS)
    warmth = (temperature - 10.0) / 25.0
    x, z = (side.ravel() for side in np.meshgrid(np.linspace(0, 1, 50), np.linspace(0, 1, 40)))
    top = 0.2 + 0.6 * warmth + 0.05 * rng.normal(size=NUM_TASKS)
    height = 1.0 + 0.2 * rng.normal(size=NUM_TASKS)
    squares = ((x - top[:, None]) / 0.2) ** 2 + ((z - 0.5) / 0.4) ** 2
    values = height[:, None] * np.exp(-0.5 * squares)
    rows = [{"x": a, "z": b} for a, b in zip(x.tolist(), z.tolist(), strict=True)]
    return Table(HILLS, rows, values, {"temperature": temperature})


def features_of(table: Table, variant: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """What is told of each task; the random numbers are the same in all variants of a seed."""
    noise = rng.normal(size=(len(table.values), NUM_RANDOM))
    known = {name: column.tolist() for name, column in table.known.items()}
    real = [{name: column[i] for name, column in known.items()} for i in range(len(noise))]
    drawn = [{f"random {j}": float(row[j]) for j in range(NUM_RANDOM)} for row in noise]
    if variant == BOTH:
        return [{**one, **other} for one, other in zip(real, drawn, strict=True)]
    return drawn if variant == RANDOM else real


def past_run(table: Table, task: int, seed: int) -> tuple[list[dict[str, Any]], list[float]]:
    """A run of an optimiser that knows nothing of the past."""
    from metaprior.lifelong import untrained_prior

    prior = untrained_prior(table.space, "maximize")
    optimizer = Optimizer(prior, candidates=table.rows, seed=1000 * seed + task)
    asked = queries(optimizer, table, task, RUN_LENGTH)
    return [table.rows[i] for i in asked], table.values[task, asked].tolist()


def queries(optimizer: Optimizer, table: Table, task: int, num: int) -> list[int]:
    """The rows that are asked, one after another."""
    index = {tuple(row.values()): i for i, row in enumerate(table.rows)}
    asked = []
    for _ in range(num):
        x = optimizer.ask()
        asked.append(index[tuple(x.values())])
        optimizer.tell(x, float(table.values[task, asked[-1]]))
    return asked


def regrets(
    prior: Prior, features: dict[str, Any], table: Table, task: int, seed: int
) -> list[float]:
    """Normalised regret after each query."""
    optimizer = Optimizer(prior, candidates=table.rows, features=features, seed=seed)
    values = table.values[task]
    found = np.maximum.accumulate(values[queries(optimizer, table, task, NUM_QUERIES)])
    return ((values.max() - found) / (values.max() - np.median(values))).tolist()


def log_likelihoods(
    prior: Prior, features: dict[str, Any], table: Table, task: int, spread: float
) -> list[float]:
    """Mean log density of random configurations, given so many others."""
    rng = np.random.default_rng(task)  # the same configurations for all priors
    order = rng.permutation(len(table.rows))
    asked, values = order[:NUM_POINTS], table.values[task]
    found = []
    for count in CONTEXTS:
        given = order[NUM_POINTS : NUM_POINTS + count]
        rows = [table.rows[i] for i in given]
        posterior = prior.condition(rows, values[given], features=features)
        density = posterior.log_density([table.rows[i] for i in asked], values[asked])
        found.append(float(np.mean(density)) + float(np.log(spread)))
    return found


def shown(records: list[dict[str, Any]]) -> str:
    """The tables of every family."""
    families = [name for name in FAMILIES if any(r["family"] == name for r in records)]
    tables = ([r for r in records if r["family"] == name] for name in families)
    return "\n\n".join(
        f"### {name}\n\n{_shown(own)}" for name, own in zip(families, tables, strict=True)
    )


def _shown(records: list[dict[str, Any]]) -> str:
    """Means of every variant, and differences from two of them, as Markdown."""
    columns = [f"regret at t={t}" for t in SHOWN_REGRETS]
    columns += [f"log-likelihood given {count}" for count in CONTEXTS]
    scores = {(r["variant"], r["seed"]): _scores(r) for r in records}
    used = {v: [len(r["used"]) > 0 for r in records if r["variant"] == v] for v in VARIANTS}
    names = [name for name in VARIANTS if used[name]]
    lines = _table(["priors", "use a feature", *columns])
    for name in names:
        means = np.mean([s for (variant, _), s in scores.items() if variant == name], axis=0)
        lines.append(_row(name, [len(used[name]), sum(used[name]), *map(_number, means)]))
    lines += ["", "Mean difference between priors of one seed, with its 95 % interval:", ""]
    lines += _table(["priors", *columns])
    for one, other in ((WITH, WITHOUT), (BOTH, WITHOUT), (RANDOM, WITHOUT), (BOTH, WITH)):
        seeds = [s for v, s in scores if v == one and (other, s) in scores]
        if not seeds:
            continue
        differences = np.array([scores[one, s] - scores[other, s] for s in seeds])
        cells = [_interval(column) for column in differences.T]
        lines.append(_row(f"{one} − {other}", [len(seeds), *cells]))
    return "\n".join(lines)


def _scores(record: dict[str, Any]) -> Float[np.ndarray, " columns"]:
    regret = np.mean(record["regret"], axis=0)
    return np.concatenate(
        [[regret[t - 1] for t in SHOWN_REGRETS], np.mean(record["log_likelihood"], axis=0)]
    )


def _table(columns: list[str]) -> list[str]:
    return [_row("", columns), _row("---", ["---"] * len(columns))]


def _row(name: str, cells: Sequence[Any]) -> str:
    return f"| {' | '.join([name, *map(str, cells)])} |"


def _number(value: float) -> str:
    return f"{value:.3f}"


def _interval(differences: Float[np.ndarray, " seeds"]) -> str:
    mean, count = float(np.mean(differences)), len(differences)
    if count < 2:
        return f"{mean:+.3f}"
    half = student.ppf(0.975, count - 1) * np.std(differences, ddof=1) / np.sqrt(count)
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


if __name__ == "__main__":
    main()
