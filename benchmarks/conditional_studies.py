"""Optuna studies in a conditional space, after past studies in that space.

    python -m benchmarks.conditional_studies --out FOLDER                  # 9 priors
    python -m benchmarks.conditional_studies --out FOLDER --priors 1 --first-prior 1000 \\
        --past 10 --tasks 6 --budget fast                                  # to tune on
    python -m benchmarks.conditional_studies --show FOLDER --markdown

A trial chooses a learner (support vector machine, forest, boosting, nearest neighbours) and the
hyper-parameters that this learner has; its value is looked up in a table of real evaluations
(`metaprior.lab.environments.model_selection_tasks`, nearest row of the same branch). For each
prior, 16 tasks have a study of 30 trials by TPESampler in an SQLite file, `learn` learns from that
file, and every sampler has 30 trials on each of 10 unseen tasks. The objective is define-by-run: it
asks for a parameter only where its condition holds.

Beside our sampler there are Optuna's with their defaults, with the same seeds:

    past's best, then GPSampler   the best configurations of the past studies, enqueued in place of
                                  GPSampler's ten random trials, in greedy order: the next one is
                                  the one that improves most on those before it over the past tasks
    ..., all parameters           the objective asks for every parameter in every trial, so that
                                  GPSampler models all of them
    ..., evaluated on every past task
                                  the order knows what each configuration is worth on each past
                                  task; the other orders take it from the studies' nearest trials

The prior is the unit of replication: regret is averaged over its 10 tasks, and intervals are over
priors. Priors share one set of tasks, so the intervals say nothing about other tasks. Regret is in
units of the gap between a task's median and its best value. What is finished is not done again.
Priors from 1000 on have tasks of their own, for tuning.
"""

import argparse
import functools
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from benchmarks._model_selection_studies import ARMS, Plan, available_arms, draw, evaluate, prepare
from benchmarks._processes import in_workers
from benchmarks._studies import OURS, show, shown
from metaprior.metrics import mean_and_interval

STEPS = (1, 3, 10, 30)
# Mean over tasks: for every arm, a row for each prior and a column for each trial.
Regret = dict[str, Float[np.ndarray, "priors trials"]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="folder for records, past studies and priors")
    what.add_argument("--show", type=Path, help="show the records of this folder")
    parser.add_argument("--priors", type=int, default=9, help="how many")
    parser.add_argument("--first-prior", type=int, default=0, help="1000 and above: for tuning")
    parser.add_argument("--past", type=int, default=16, help="studies to learn from")
    parser.add_argument("--past-trials", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=10, help="unseen tasks for each prior")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--budget", default="normal", help="of learning")
    parser.add_argument("--arms", nargs="+", choices=ARMS, metavar="ARM", help="by default all")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    arguments = parser.parse_args()
    folder = arguments.show or arguments.out
    if arguments.out:
        make(arguments)
    for title, header, rows in tables(read(folder)):
        show(title, header, rows, as_markdown=arguments.markdown)


def make(arguments: argparse.Namespace) -> None:
    """All samplers after all priors, in processes with one thread each."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    arms = arguments.arms or available_arms()
    missing = [name for name in ARMS if name not in arms]
    if missing and not arguments.arms:
        print(f"Left out, since they need PyTorch: {'; '.join(missing)}.")
    plans = [
        Plan(
            prior=arguments.first_prior + i,
            past=arguments.past,
            past_trials=arguments.past_trials,
            tasks=arguments.tasks,
            trials=arguments.trials,
            budget=arguments.budget,
        )
        for i in range(arguments.priors)
    ]
    try:
        draw(plans[0])
    except ValueError as error:
        raise SystemExit(str(error)) from None
    start = time.perf_counter()
    for _ in in_workers(functools.partial(prepare, out=arguments.out), plans, arguments.workers):
        pass
    # Learning takes longest: our sampler is first among the arms.
    jobs = [(plan, arm) for arm in arms for plan in plans]
    work = functools.partial(_evaluate_job, out=arguments.out)
    for _, job in in_workers(work, jobs, arguments.workers):
        print(f"{job}: done, {time.perf_counter() - start:.0f} s", flush=True)


def _evaluate_job(job: tuple[Plan, str], out: Path) -> str:
    return evaluate(*job, out)


class Studies(NamedTuple):
    """Regret and seconds of every trial of an arm's studies, by prior and task."""

    regret: dict[tuple[int, str], list[float]]
    seconds: dict[tuple[int, str], list[float]]


def read(folder: Path) -> dict[str, Studies]:
    """The finished studies of every arm."""
    found: dict[str, Studies] = {}
    for path in sorted(folder.glob("prior-*/*.jsonl")):
        first, *lines = [json.loads(line) for line in path.read_text().splitlines()]
        studies = found.setdefault(first["arm"], Studies({}, {}))
        for line in lines:
            if "task" in line:
                key = (first["plan"]["prior"], line["task"])
                studies.regret[key], studies.seconds[key] = line["regret"], line["seconds"]
    if not found:
        raise SystemExit(f"There are no finished studies in {folder}; make them with --out.")
    return {name: found[name] for name in ARMS if name in found}


def by_prior(studies: dict[str, Studies]) -> Regret:
    """Means over the tasks of a prior, of those studies that every arm has finished."""
    common = set.intersection(*(set(each.regret) for each in studies.values()))
    if not common:
        raise SystemExit(f"There is no task that all of {', '.join(studies)} have finished.")
    priors = sorted({prior for prior, _ in common})
    return {
        name: np.array(
            [
                np.mean([each.regret[key] for key in sorted(common) if key[0] == prior], axis=0)
                for prior in priors
            ]
        )
        for name, each in studies.items()
    }


TableOf = tuple[str, list[str], list[list[str]]]


def tables(studies: dict[str, Studies]) -> list[TableOf]:
    """Regret at some trials, differences from ours, and regret at every trial."""
    regret = by_prior(studies)
    num_priors, num_trials = next(iter(regret.values())).shape
    steps = [t for t in STEPS if t <= num_trials]
    over = f"{num_priors} priors"
    found = [
        (
            f"Regret after t trials, as a share of the gap between median and best; mean and 95 % "
            f"interval over {over}",
            ["sampler", *(f"t={t}" for t in steps), "suggestion, median"],
            [
                [
                    name,
                    *(shown(each[:, t - 1]) for t in steps),
                    f"{1e3 * np.median(list(studies[name].seconds.values())):.2g} ms",
                ]
                for name, each in regret.items()
            ],
        ),
        (
            f"The same at every trial, mean over {over}",
            ["t", *regret],
            [
                [str(t + 1), *(f"{each[:, t].mean():.3f}" for each in regret.values())]
                for t in range(num_trials)
            ],
        ),
    ]
    return [found[0], against_ours(regret, steps), found[1]] if OURS in regret else found


def against_ours(regret: Regret, steps: list[int]) -> TableOf:
    """Every other arm minus ours, prior by prior: above 0 where ours is better."""
    num_priors, num_trials = regret[OURS].shape
    header = ["sampler", *(f"t={t}" for t in steps), "ours is lower", "beyond the interval"]
    rows = []
    for name, each in regret.items():
        if name == OURS:
            continue
        mean, half_width = mean_and_interval(each - regret[OURS])
        rows.append(
            [
                name,
                *(f"{mean[t - 1]:+.2g} ± {half_width[t - 1]:.1g}" for t in steps),
                f"at {(mean > 0).sum()} of {num_trials} trials",
                f"at {(mean > half_width).sum()}",
            ]
        )
    return (
        f"Regret minus ours, paired by prior; mean and 95 % interval over {num_priors}",
        header,
        rows,
    )


if __name__ == "__main__":
    main()
