"""Does a learned prior transfer? Simple regret and calibration on unseen tasks, default settings.

    python -m benchmarks.transfer                      # four families, 3 seeds x 10 tasks
    python -m benchmarks.transfer --families branin --seeds 1

For every family and seed: histories of n tasks and T points are collected by vanilla GP-UCB (the
paper's table of n and T), F-PACOH-MAP is trained on them with its defaults, and every method then
optimises the same unseen tasks with the library's default acquisition, UCB (beta = 2) with checks;
one more row shows F-PACOH-MAP with the plain UCB of the paper. The seeds 0, 1, 2, ... were never
used to choose a default; `benchmarks.choose_defaults` says which were.

Baselines: the paper's vanilla GP at five fixed lengthscales (the best one in hindsight, chosen for
each family and column, is what F-PACOH is compared with), a GP fitted to the run after an initial
design of five points, and random search. Calibration error and log-likelihood are those of 200
uniform points of each task, given 1, 4, 8 and 16 uniform points, averaged over these; the
calibration error is computed for each task, as in the paper, and for all tasks of a seed together.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from metaprior.bo import (
    InitialDesign,
    RandomSearch,
    RestlessConfidenceBound,
    SurrogatePolicy,
    UpperConfidenceBound,
)
from metaprior.environments import Branin, Camelback, Family, Hartmann6, Mixture1d
from metaprior.methods import AbstractSurrogate, FittedGP, FPacohMap, VanillaGP
from metaprior.metrics import calibration_error, mean_and_interval, simple_regret
from metaprior.studies import collect_histories, predict_uniform, race

FAMILIES = {family.name: family for family in (Mixture1d(), Branin(), Camelback(), Hartmann6())}
LENGTHSCALES = (0.1, 0.2, 0.4, 0.8, 1.6)
CONTEXTS = (1, 4, 8, 16)
NUM_INITIAL = 5
STEPS = (1, 5, 10, 20, 50)
OURS = "F-PACOH-MAP"
PLAIN = "F-PACOH-MAP, plain UCB"


def evaluate(family: Family, seed: int, num_tasks: int, report) -> dict[str, dict[str, np.ndarray]]:
    """Regret (tasks, steps) and calibration of every method on unseen tasks of one seed."""
    key_history, key_tasks, key_train, key_test = jax.random.split(jax.random.key(seed), 4)
    report("collecting histories")
    history = collect_histories(family, family.num_tasks, family.run_length, key=key_history)
    tasks = family.sample_tasks(num_tasks, key=key_tasks)
    optimum = family.optimum(tasks).value
    width = family.space.num_columns
    report("learning")
    surrogates: dict[str, AbstractSurrogate] = {
        OURS: FPacohMap().meta_train(history, key=key_train)
    }
    for lengthscale in LENGTHSCALES:
        method = VanillaGP(lengthscale=lengthscale)
        surrogates[f"vanilla GP {lengthscale}"] = method.meta_train(history, key=key_train)
    surrogates["fitted GP"] = FittedGP().from_scratch(width)
    results = {}
    surrogates[PLAIN] = surrogates[OURS]
    for name, surrogate in surrogates.items():
        report(name)
        plain = name == PLAIN
        policy = SurrogatePolicy(
            surrogate=surrogate,
            acquisition=UpperConfidenceBound() if plain else RestlessConfidenceBound(),
            space=family.space,
        )
        if name == "fitted GP":
            policy = InitialDesign(policy=policy, num_initial=NUM_INITIAL, space=family.space)
        found = race(policy, tasks, max(STEPS), key=key_test, noise_std=family.noise_std)
        predicted = predict_uniform(surrogate, tasks, CONTEXTS, 200, width, key=key_test)
        results[name] = {
            "regret": simple_regret(optimum, found.values),
            "calibration error": np.array(
                [np.mean([calibration_error(c) for c in task]) for task in predicted.cdf]
            ),
            "pooled calibration error": np.array(
                [np.mean([calibration_error(predicted.cdf[:, j].ravel()) for j in range(4)])]
            ),
            "log-likelihood": predicted.log_density.mean(axis=(1, 2)),
        }
    report("random search")
    found = race(RandomSearch(space=family.space), tasks, max(STEPS), key=key_test)
    results["random search"] = {"regret": simple_regret(optimum, found.values)}
    return results


def pool(per_seed: list[dict]) -> dict[str, dict[str, np.ndarray]]:
    """All seeds together."""
    return {
        name: {
            metric: np.concatenate([seed[name][metric] for seed in per_seed])
            for metric in per_seed[0][name]
        }
        for name in per_seed[0]
    }


def shown(samples: np.ndarray, digits: int) -> str:
    mean, half_width = mean_and_interval(samples)
    return f"{float(mean):.{digits}g} ± {float(half_width):.1g}"


def table(family: Family, results: dict) -> Table:
    metrics = ("calibration error", "pooled calibration error", "log-likelihood")
    title = f"{family.name}: simple regret, calibration, log-likelihood (mean ± 95 % interval)"
    grid = Table("method", *(f"t={t}" for t in STEPS), *metrics, title=title)
    for name, result in results.items():
        regrets = [shown(result["regret"][:, t - 1], 2) for t in STEPS]
        others = [shown(result[m], 3) if m in result else "" for m in metrics]
        grid.add_row(name, *regrets, *others)
    return grid


def verdict(results: dict) -> dict[str, float]:
    """F-PACOH against the best vanilla GP, each column's best chosen in hindsight."""
    vanilla = [r for name, r in results.items() if name.startswith(("vanilla", "fitted"))]
    at_20 = {"ours": results[OURS]["regret"][:, 19].mean()}
    at_20["best vanilla"] = min(r["regret"][:, 19].mean() for r in vanilla)
    summary = {
        "regret at 20": at_20["ours"],
        "best vanilla regret at 20": at_20["best vanilla"],
        "ratio": at_20["best vanilla"] / at_20["ours"],
    }
    for metric in ("calibration error", "pooled calibration error"):
        summary[metric] = results[OURS][metric].mean()
        summary[f"best vanilla {metric}"] = min(r[metric].mean() for r in vanilla)
    return {name: float(value) for name, value in summary.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--families", default=",".join(FAMILIES), help="comma separated")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="1000 and above: for tuning")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--json", type=Path, help="write every number here as well")
    arguments = parser.parse_args()
    console = Console(width=170)
    everything, verdicts = {}, {}
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        line = progress.add_task("")
        for name in arguments.families.split(","):
            family, per_seed = FAMILIES[name], []
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):

                def report(stage, name=name, seed=seed):
                    progress.update(line, description=f"{name}, seed {seed}: {stage}")

                per_seed.append(evaluate(family, seed, arguments.tasks, report))
            everything[name] = pool(per_seed)
            verdicts[name] = verdict(everything[name])
            console.print(table(family, everything[name]))
    grid = Table(
        "family",
        "F-PACOH t=20",
        "best vanilla t=20",
        "ratio (target 5)",
        "calibration error",
        "best vanilla",
        "pooled",
        "best vanilla",
        title="F-PACOH-MAP against the best vanilla GP of each column",
    )
    for name, row in verdicts.items():
        grid.add_row(name, *(f"{value:.3g}" for value in row.values()))
    console.print(grid)
    if arguments.json:
        plain = {
            family: {m: {k: v.tolist() for k, v in r.items()} for m, r in results.items()}
            for family, results in everything.items()
        }
        arguments.json.write_text(json.dumps({"results": plain, "verdicts": verdicts}))


if __name__ == "__main__":
    main()
