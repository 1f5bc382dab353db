"""What `learn` returns, on the paper's families: regret and calibration as users meet them.

    python -m benchmarks.learned --out learned.jsonl --workers 2
    python -m benchmarks.learned --out learned.jsonl --show --page docs/learn-results.md

Past runs are fixed GP-UCB histories, n and T of the paper. `learn` with default arguments and the
normal budget, F-PACOH-MAP with its defaults, and two GPs that do not transfer then optimise the
same new tasks from an empty run, with the default acquisition. Tables are asked at their rows.
Calibration error and log density are those of 200 uniform points of each task, given 1, 4, 8 and 16
others; the error is that of all tasks of a seed together. Seeds from 1000 on are for choosing
constants, and use validation tasks; those below are for reporting. A run that was ended goes on
where it stopped.
"""

import argparse
import shlex
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks._records import finished, read
from benchmarks._unseen import families, past_runs, pooled_calibration, predict, search
from metaprior.metrics import mean_and_interval

VALIDATION_SEED = 1000
NUM_QUERIES = 20
STEPS = (1, 3, 5, 10, 20)
CONTEXTS, NUM_PREDICTED = (1, 4, 8, 16), 200
LEARN, DEFAULTS, FITTED, AVERAGED = "`learn`", "F-PACOH-MAP", "fitted GP", "averaged GP"
MEASURES = ("error", "density")
ARMS = (LEARN, DEFAULTS, FITTED, AVERAGED)
HEAD = """# What `learn` returns, on the paper's families

`learn` with default arguments beside F-PACOH-MAP with its defaults and two GPs that do not
transfer, measured in {month} by

```console
{command}
```

Past runs are fixed GP-UCB histories with the paper's numbers of tasks and points. All methods ask
{tasks} new tasks for each of {seeds} seeds with the default acquisition, from an empty run. Simple
regret after t queries, mean ± 95 % interval; a prior is one number, the mean over its tasks.
*Calibration* is the calibration error over all tasks of a prior of 200 uniform points, mean over 1,
4, 8 and 16 uniform points given; *log density* is that of the same predictions. Defaults of
F-PACOH-MAP were chosen on other draws of the simulated families, constants of `learn`'s belief on
[other tasks](concepts/belief.md#what-each-part-does).
"""


class Job(NamedTuple):
    """New tasks of one family and seed."""

    family: str
    seed: int
    tasks: int


def evaluate(job: Job) -> dict[str, dict[str, list]]:
    """For each arm: regret, a row for each task; pooled calibration error; mean log density."""
    import jax

    import metaprior as mp

    family = families()[job.family]
    key_past, key_new = jax.random.split(jax.random.key(job.seed))
    past = past_runs(family, key_past)
    priors = {
        LEARN: mp.learn(past, seed=job.seed),
        DEFAULTS: mp.learn(past, method=mp.methods.FPacohMap(), seed=job.seed),
        FITTED: mp.learn(past, method=mp.methods.FittedGP()),
        AVERAGED: mp.learn(past, method=mp.methods.AveragedGP()),
    }
    unseen = family.validation_tasks if job.seed >= VALIDATION_SEED else family.test_tasks
    new = unseen(job.tasks, key=key_new)
    tasks, optima = family.unstack(new), family.optimum(new).value.tolist()
    found = {}
    for arm, prior in priors.items():
        regret, cdf, density = [], [], []
        for i, (task, optimum) in enumerate(zip(tasks, optima, strict=True)):
            regret.append(search(prior, task, optimum, NUM_QUERIES, i)["regret"])
            below, mean = predict(prior, task, CONTEXTS, NUM_PREDICTED, i)
            cdf.append(below)
            density.append(float(np.mean(mean)))
        found[arm] = {"regret": regret, "density": density, "error": [pooled_calibration(cdf)]}
    return found


def page(records: dict[tuple, dict[str, dict[str, list]]], command: str) -> str:
    """Markdown: a table for each family."""
    jobs = [Job(*job) for job in records]
    seeds, tasks = len({job.seed for job in jobs}), max(job.tasks for job in jobs)
    text = HEAD.format(month=f"{date.today():%B %Y}", command=command, tasks=tasks, seeds=seeds)
    for name, family in families().items():
        own = [
            found for job, found in zip(jobs, records.values(), strict=True) if job.family == name
        ]
        if own:
            count = len(own[0][LEARN]["regret"])
            text += f"\n## {name}, {family.space.num_columns}-d\n\n{_table(own)}"
            text += f"\n{len(own)} priors, {count} tasks each.\n"
    return text


def _table(own: list[dict[str, dict[str, list]]]) -> str:
    header = ["method", *(f"t={t}" for t in STEPS), "calibration", "log density"]
    lines = [f"| {' | '.join(header)} |", "|---" + "|---:" * (len(header) - 1) + "|"]
    for arm in ARMS:
        regret = np.array([np.mean(found[arm]["regret"], axis=0) for found in own])
        cells = [_shown(regret[:, t - 1]) for t in STEPS]
        cells += [_shown(np.array([np.mean(found[arm][m]) for found in own])) for m in MEASURES]
        lines.append(f"| {' | '.join([arm, *cells])} |")
    return "\n".join(lines) + "\n"


def _shown(by_prior: np.ndarray) -> str:
    mean, half = mean_and_interval(by_prior)
    return f"{float(mean):.2g} ± {float(half):.1g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learned",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, help="file of records; what is in it is not made again")
    parser.add_argument("--families", nargs="+", choices=list(families()), default=list(families()))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="1000 and above: for choosing")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="make nothing: show what is there")
    parser.add_argument("--page", type=Path, help="write the page here instead of printing it")
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    jobs = [Job(family, s, arguments.tasks) for s in seeds for family in arguments.families]
    if arguments.show:
        known = read(arguments.out)
        records = {tuple(job): known[tuple(job)] for job in jobs if tuple(job) in known}
    else:
        records = finished(evaluate, jobs, arguments.workers, arguments.out)
    wanted = () if arguments.families == list(families()) else ("--families", *arguments.families)
    command = shlex.join(["python", "-m", "benchmarks.learned", "--out", "learned.jsonl", *wanted])
    text = page(records, command)
    if arguments.page is None:
        sys.stdout.write(text)
    else:
        arguments.page.write_text(text)


if __name__ == "__main__":
    main()
