"""Every method on every family: simple and inference regret, calibration, log-likelihood.

    python -m benchmarks.transfer                          # four families, 3 seeds x 10 tasks
    python -m benchmarks.transfer --families branin --seeds 1
    python -m benchmarks.transfer --first-seed 1 --seeds 1 --records one.json
    python -m benchmarks.transfer --show one.json two.json # the tables of earlier records
    python -m benchmarks.transfer --line-up framework      # F-PACOH by every route, two families
    python -m benchmarks.transfer --line-up learn          # what `learn` chose, tables included
    python -m benchmarks.transfer --line-up configurations # 64 configurations of F-PACOH-MAP
    python -m benchmarks.transfer --show *.json --best     # one row for baselines: best of column

For every family and seed: histories of n tasks and T points are collected by fixed GP-UCB (the
paper's table of n and T), every method is trained on them with its defaults, and then optimises the
same unseen tasks with UCB with checks, the library's acquisition; one more row shows F-PACOH-MAP
with the paper's UCB. The bound is the paper's, beta = 2, in the line-ups of the paper
and of the framework; in the others it is the library's default, beta = 1, and the baselines of
`learn` are shown with both. The seeds 0, 1, 2, ... were never used to choose
a default; `benchmarks.choose_defaults` says which were.

The fixed GP is shown at five lengthscales; the best of them and of the fitted GP, selected on the
test metric for each family and column, is what F-PACOH is compared with. The fitted GP starts from
five points that cover the space. Calibration error and log-likelihood are those of 200 uniform
points of each task, given 1, 4, 8 and 16 uniform points, averaged over these; the calibration error
is computed for each task, as in the paper, and for all tasks of a seed together ("pooled").
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks._transfer_tables import (
    FITTED,
    LEARN,
    OURS,
    RANDOM,
    Records,
    markdown,
    merged_baselines,
    pool,
    show,
)
from metaprior import Prior, learn
from metaprior.data import Tasks
from metaprior.lab.environments import Family, SimulatedFamily, known_families
from metaprior.lab.policies import (
    AbstractCompiledAcquisition,
    CompiledConfidenceBound,
    CompiledRestlessBound,
    InitialDesign,
    RandomSearch,
    SurrogatePolicy,
)
from metaprior.lab.studies import (
    collect_histories,
    draw_numbers,
    predict_uniform,
    race,
    search_ranges,
    values_at_predicted_best,
)
from metaprior.methods import (
    ABLR,
    AbstractMethod,
    AbstractSurrogate,
    FittedGP,
    FixedGP,
    FPacohBNN,
    FPacohMap,
    FPacohVI,
    LearnedGP,
    NeuralProcess,
    PacohMap,
    RankWeightedGP,
)
from metaprior.metrics import calibration_error, simple_regret
from metaprior.processes import SampledProcess, SquaredExponential, gaussian_process

FAMILIES = known_families()
SIMULATED = tuple(name for name, each in FAMILIES.items() if isinstance(each, SimulatedFamily))
LENGTHSCALES = (0.1, 0.2, 0.4, 0.8, 1.6)
CONTEXTS = (1, 4, 8, 16)
NUM_INITIAL = 5
VALIDATION_SEED = 1000
UCB = "F-PACOH-MAP, the paper's UCB"
AT_TWO = ", beta = 2"
PAPER = {
    OURS: FPacohMap(),
    UCB: FPacohMap(),
    "PACOH-MAP": PacohMap(),
    "ABLR": ABLR(),
    "Learned GP": LearnedGP(),
    "NP": NeuralProcess(),
    "RWGP": RankWeightedGP(),
    **{f"fixed GP {value}": FixedGP(lengthscale=value) for value in LENGTHSCALES},
    FITTED: FittedGP(),
}


def by_samples_only(family: Family) -> SampledProcess:
    """The default hyper-prior of F-PACOH-MAP, of which nothing is known but samples."""
    default = FPacohMap()
    lengthscale = default.hyper_lengthscale * np.sqrt(family.space.num_columns)
    kernel = SquaredExponential(jnp.log(lengthscale), jnp.log(default.hyper_variance))
    process = gaussian_process(kernel)
    return SampledProcess(lambda x, key: process.sample(x, 1, key=key)[0])


def framework(family: Family) -> dict[str, AbstractMethod]:
    """F-PACOH with three kinds of hyper-posteriors and priors, the divergence by every route."""
    sampled = by_samples_only(family)
    return {
        OURS: FPacohMap(),
        "F-PACOH-MAP, hyper-prior by samples, SSGE": FPacohMap(hyper_prior=sampled),
        "F-PACOH-MAP, hyper-prior by samples, sliced": FPacohMap(
            hyper_prior=sampled, score_estimator="sliced"
        ),
        "F-PACOH-VI, SSGE": FPacohVI(),
        "F-PACOH-VI, sliced": FPacohVI(score_estimator="sliced"),
        "F-PACOH-BNN, SSGE": FPacohBNN(),
        "F-PACOH-BNN, sliced": FPacohBNN(score_estimator="sliced"),
        "PACOH-MAP": PacohMap(),
        "fixed GP 0.2": FixedGP(),
        FITTED: FittedGP(),
    }


@dataclass(frozen=True)
class Chosen(AbstractMethod):
    """What `learn` makes of past runs with default arguments, as compiled code sees it: the learned
    processes with or without the guard, and not the mixture that users ask."""

    guarded: bool = True

    def meta_train(self, tasks, *, key, on_progress=None):
        surrogate = learned_from(tasks).surrogate
        return surrogate if self.guarded else surrogate.unguarded

    def blank_surrogate(self, num_columns):
        raise NotImplementedError("A benchmark saves no priors.")


@lru_cache(maxsize=1)
def learned_from(tasks: Tasks) -> Prior:
    """Learning takes a minute, and two rows need it."""
    return learn(tasks)


def without_tuning(family: Family) -> dict[str, AbstractMethod]:
    """`learn` beside the default configuration of F-PACOH and baselines without transfer."""
    baselines: dict[str, AbstractMethod] = {
        FITTED: FittedGP(),
        **{f"fixed GP {value}": FixedGP(lengthscale=value) for value in LENGTHSCALES},
    }
    return {
        LEARN: Chosen(),
        "learn, without its guard": Chosen(guarded=False),
        LEARN + AT_TWO: Chosen(),
        OURS: FPacohMap(),
        **baselines,
        **{name + AT_TWO: method for name, method in baselines.items()},
    }


def random_configurations(family: Family) -> dict[str, AbstractMethod]:
    """Random configurations of F-PACOH-MAP, of one shape: what a search could have found."""
    ranges = search_ranges("FPacohMap")
    fixed = {"num_steps": 4000, "batch_size": 4, "feature_dim": 6}
    drawn = [draw_numbers("FPacohMap", ranges, i, seed=0) | fixed for i in range(64)]
    return {f"configuration {i}": replace(FPacohMap(), **each) for i, each in enumerate(drawn)}


class LineUp(NamedTuple):
    """Methods to be raced, by the names of their rows, the families they are raced on, how many
    queries they get, the width of their bound, and whether they are asked to predict as well."""

    methods: Callable[[Family], dict[str, AbstractMethod]]
    families: tuple[str, ...]
    num_queries: int
    beta: float
    predict: bool = True


LINE_UPS = {
    "paper": LineUp(lambda family: PAPER, SIMULATED, 50, 2.0),
    "framework": LineUp(framework, ("mixture1d", "branin"), 20, 2.0),
    "learn": LineUp(without_tuning, tuple(FAMILIES), 50, 1.0),
    "configurations": LineUp(random_configurations, SIMULATED, 20, 1.0, predict=False),
}


def evaluate(
    family: Family,
    methods: dict[str, AbstractMethod],
    line_up: LineUp,
    seed: int,
    num_tasks: int,
    records: Records,
    report,
) -> None:
    """Every method on unseen tasks of one seed, written to `records` one after another."""
    key_history, key_tasks, key_train, key_test = jax.random.split(jax.random.key(seed), 4)
    report("collecting histories")
    history = collect_histories(family, family.num_tasks, family.run_length, key=key_history)
    # A table has few data sets: those that are reported on must not be tuned on.
    unseen = family.validation_tasks if seed >= VALIDATION_SEED else family.test_tasks
    tasks = unseen(num_tasks, key=key_tasks)
    optimum = family.optimum(tasks).value
    for name, method in methods.items():
        report(f"training {name}")
        surrogate = method.meta_train(history, key=key_train)
        policy = SurrogatePolicy(
            surrogate=surrogate, acquisition=acquisition_of(name, line_up), space=family.space
        )
        started = InitialDesign(policy=policy, num_initial=NUM_INITIAL, space=family.space)
        report(f"racing {name}")
        runner = started if name.startswith(FITTED) else policy
        one_by_one = 1 if surrogate.judges else None
        found = race(
            runner,
            tasks,
            line_up.num_queries,
            key=key_test,
            noise_std=family.noise_std,
            chunk=one_by_one,
        )
        records[name] = {"regret": simple_regret(optimum, found.values).tolist()}
        if line_up.predict:
            answer = values_at_predicted_best(policy, tasks, found, 20, key=key_test)
            records[name]["inference regret at 20"] = (optimum - answer).tolist()
            records[name] |= predictions(surrogate, tasks, key=key_test)
    report(RANDOM)
    found = race(RandomSearch(space=family.space), tasks, line_up.num_queries, key=key_test)
    records[RANDOM] = {"regret": simple_regret(optimum, found.values).tolist()}


def acquisition_of(name: str, line_up: LineUp) -> AbstractCompiledAcquisition:
    """How the row of that name asks."""
    if name == UCB:
        return CompiledConfidenceBound()
    return CompiledRestlessBound(2.0 if name.endswith(AT_TWO) else line_up.beta)


def predictions(surrogate: AbstractSurrogate, tasks, *, key) -> dict[str, list]:
    """Calibration and log-likelihood at uniform points."""
    predicted = predict_uniform(surrogate, tasks, CONTEXTS, 200, key=key)
    per_task = [[calibration_error(cdf) for cdf in task] for task in predicted.cdf]
    pooled = [calibration_error(predicted.cdf[:, j].ravel()) for j in range(len(CONTEXTS))]
    return {
        "calibration error": np.mean(per_task, axis=1).tolist(),
        "pooled calibration error": [float(np.mean(pooled))],
        "log-likelihood": predicted.log_density.mean(axis=(1, 2)).tolist(),
    }


def save(path: Path | None, records: dict[str, list[Records]]) -> None:
    """Everything so far, so that an interrupted run is not lost."""
    if path is not None:
        path.write_text(json.dumps(records))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--line-up", choices=tuple(LINE_UPS), default="paper")
    parser.add_argument("--families", help="comma separated; those of the line-up by default")
    parser.add_argument("--only", help="methods, by their rows' names, separated by semicolons")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="1000 and above: for tuning")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--records", type=Path, help="write every number here as JSON")
    parser.add_argument("--markdown", action="store_true", help="with --show: tables for a page")
    parser.add_argument("--best", action="store_true", help="with --show: one row for baselines")
    parser.add_argument("--show", type=Path, nargs="+", help="show records instead of making them")
    arguments = parser.parse_args()
    line_up = LINE_UPS[arguments.line_up]
    console = Console(width=180)
    records: dict[str, list[Records]] = {}
    if arguments.show:
        for path in arguments.show:
            for family, several in json.loads(path.read_text()).items():
                records.setdefault(family, []).extend(several)
        pooled = {name: pool(records[name]) for name in FAMILIES if name in records}
        if arguments.best:
            pooled = {name: merged_baselines(results) for name, results in pooled.items()}
        if arguments.markdown:
            return print("\n".join(markdown(name, results) for name, results in pooled.items()))
        return show(pooled, console)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        line = progress.add_task("")
        for name in arguments.families.split(",") if arguments.families else line_up.families:
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):

                def report(stage, name=name, seed=seed):
                    progress.update(line, description=f"{name}, seed {seed}: {stage}")
                    save(arguments.records, records)

                made: Records = {}
                records.setdefault(name, []).append(made)
                methods = line_up.methods(FAMILIES[name])
                if arguments.only:
                    methods = {row: methods[row] for row in arguments.only.split(";")}
                evaluate(
                    FAMILIES[name],
                    methods,
                    line_up,
                    seed,
                    arguments.tasks,
                    made,
                    report,
                )
                save(arguments.records, records)
    show({name: pool(several) for name, several in records.items()}, console)


if __name__ == "__main__":
    main()
