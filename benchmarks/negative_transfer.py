"""What a misleading past costs: the belief that `learn` returns, its parts, and non-transfer GPs.

    python -m benchmarks.negative_transfer --out misled.jsonl --workers 2
    python -m benchmarks.negative_transfer --out misled.jsonl --show

Past runs of a family (fixed GP-UCB histories, n and T of the paper) are used as they are, or
changed so that they mislead:

    friendly    as they are
    shifted     moved by a third of the domain along all axes, around its edges
    mirrored    turned around along all axes
    flipped     with the opposite sign: what was good is bad
    shuffled    the values of each run in random order: nothing can be learned

F-PACOH-MAP with its defaults learns from them. All arms then optimise the same new tasks from an
empty run with the default acquisition: the learned processes alone, behind a guard, and in one
belief weighed by evidence, the fitted GP and the averaged GP. Tables are asked at their rows.
Seeds from 1000 on are for choosing constants; those below are for reporting. A run that was ended
goes on where it stopped.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks._records import finished
from benchmarks._unseen import families, past_runs, search
from metaprior.metrics import mean_and_interval

HISTORIES = ("friendly", "shifted", "mirrored", "flipped", "shuffled")
FAMILIES = ("branin", "camelback", "glmnet", "rpart")
NUM_QUERIES = 40
STEPS = (1, 5, 10, 20, 40)
TRUST_STEPS = (0, 5, 10, 20, 40)
FITTED, AVERAGED = "fitted GP", "averaged GP"
BARE, GUARDED, WEIGHED = "learned alone", "learned, guarded", "learned, weighed"
ARMS = (FITTED, AVERAGED, BARE, GUARDED, WEIGHED)


class Job(NamedTuple):
    """New tasks of one family and seed, after one history."""

    family: str
    history: str
    seed: int
    tasks: int
    steps: int


def evaluate(job: Job) -> dict[str, list]:
    """Regret of each arm after each query, a row for each task, and the trust of the mixture."""
    import jax

    import metaprior as mp
    from metaprior.methods import AveragedGP, FittedGP, Guarded, Weighed

    key_past, key_new = jax.random.split(jax.random.key(job.seed))
    family = families()[job.family]
    past = changed(past_runs(family, key_past), job.history, job.seed)
    base = mp.methods.FPacohMap(num_steps=job.steps)
    learned = mp.learn(past, method=base, seed=job.seed)
    priors = {
        FITTED: mp.learn(past, method=FittedGP(), seed=0),
        AVERAGED: mp.learn(past, method=AveragedGP(), seed=0),
        BARE: learned,
        GUARDED: _around(learned, Guarded(base), past),
        WEIGHED: _around(learned, Weighed(base), past),
    }
    new = family.test_tasks(job.tasks, key=key_new)
    optima = family.optimum(new).value.tolist()
    found: dict[str, list] = {arm: [] for arm in (*ARMS, "trust")}
    for i, (task, optimum) in enumerate(zip(family.unstack(new), optima, strict=True)):
        for arm, prior in priors.items():
            run = search(prior, task, optimum, NUM_QUERIES, i)
            found[arm].append(run["regret"])
            if arm == WEIGHED:
                found["trust"].append(run["trust"])
    return found


def changed(past, history: str, seed: int):
    """The past runs, made to mislead."""
    from metaprior.data import Tasks

    rng = np.random.default_rng(seed)
    centre = float(np.mean(past.y[past.mask]))
    runs = []
    for x, y, mask in zip(past.x, past.y, past.mask, strict=True):
        points, values = x[mask], y[mask]
        if history == "shifted":
            points = (points + 1.0 / 3.0) % 1.0
        elif history == "mirrored":
            points = 1.0 - points
        elif history == "flipped":
            values = 2.0 * centre - values
        elif history == "shuffled":
            values = rng.permutation(values)
        runs.append((past.space.decode(points), values))
    return Tasks.from_runs(runs, space=past.space, direction=past.direction)


def _around(learned, method, past):
    """What was learned, in a guard or a mixture."""
    from dataclasses import replace

    from metaprior.methods import TrainedContents

    contents = TrainedContents(method, method.around(learned.surrogate, past))
    return replace(learned, contents=contents)


def table(records: dict[tuple, dict[str, list]]) -> str:
    """Markdown: regret of each arm, and its ratio to that of the fitted GP."""
    header = ["family", "past runs", "arm", *(f"t={t}" for t in STEPS)]
    header += ["fitted GP = 1, at t=40", f"trust at t={', '.join(map(str, TRUST_STEPS))}"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    cells = dict.fromkeys((family, history) for family, history, *_ in records)
    for family, history in cells:
        own = [found for job, found in records.items() if job[:2] == (family, history)]
        pooled = {arm: np.concatenate([np.array(f[arm], float) for f in own]) for arm in own[0]}
        last = pooled[FITTED][:, -1].mean()
        for arm in ARMS:
            row = [family, history, arm]
            for t in STEPS:
                mean, half_width = mean_and_interval(pooled[arm][:, t - 1])
                row.append(f"{float(mean):.3g} ± {float(half_width):.1g}")
            row.append(f"{pooled[arm][:, -1].mean() / last:.2f}" if last > 0 else "–")
            trust = [f"{pooled['trust'][:, t].mean():.2f}" for t in TRUST_STEPS]
            lines.append(f"| {' | '.join([*row, ' '.join(trust) if arm == WEIGHED else ''])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.negative_transfer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, help="file of records; what is in it is not made again")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--histories", nargs="+", choices=HISTORIES, default=list(HISTORIES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="1000 and above: for choosing")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--steps", type=int, default=4_000, help="of each training")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the table of what is there")
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    jobs = [
        Job(family, history, seed, arguments.tasks, arguments.steps)
        for seed in seeds
        for family in arguments.families
        for history in arguments.histories
    ]
    if arguments.show:
        from benchmarks._records import read

        known = read(arguments.out)
        print(table({tuple(job): known[tuple(job)] for job in jobs if tuple(job) in known}))
        return
    print(table(finished(evaluate, jobs, arguments.workers, arguments.out)))


if __name__ == "__main__":
    main()
