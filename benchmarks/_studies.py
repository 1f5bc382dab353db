"""Tasks of a family as Optuna studies: asked one trial after another, values and times recorded."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import optuna
from optuna.samplers import BaseSampler, GPSampler, TPESampler
from optuna.trial import Trial
from rich.console import Console
from rich.table import Table

from metaprior.data import Categorical, Dimension, Integer, Space
from metaprior.lab.environments import AbstractTask, Family
from metaprior.metrics import mean_and_interval, simple_regret

OURS, GAUSSIAN_PROCESS, TREE = "MetaPriorSampler", "GPSampler", "TPESampler"
# Both with their defaults: ten random trials come first.
BASELINES: dict[str, Callable[[int], BaseSampler]] = {
    GAUSSIAN_PROCESS: lambda seed: GPSampler(seed=seed),
    TREE: lambda seed: TPESampler(seed=seed),
}


class Outcome(NamedTuple):
    """What one study found.

    - `regret`: simple regret after each trial; `seconds`: CPU time of each suggestion.
    """

    regret: list[float]
    seconds: list[float]


def new_study(sampler: BaseSampler, storage: Any = None, name: str | None = None) -> optuna.Study:
    """An empty study to be maximised, as all our families are."""
    return optuna.create_study(
        storage=storage, study_name=name, sampler=sampler, direction="maximize"
    )


def run_study(study: optuna.Study, task: AbstractTask, optimum: float, num_trials: int) -> Outcome:
    """Ask, evaluate and tell; on a table the row nearest to what was asked is evaluated."""
    values, seconds = [], []
    for _ in range(num_trials):
        start = time.process_time()
        trial = study.ask()
        point = suggested(trial, task.space)
        seconds.append(time.process_time() - start)
        values.append(float(task.evaluate([point])[0]))
        study.tell(trial, values[-1])
    return Outcome(simple_regret(optimum, values).tolist(), seconds)


def suggested(trial: Trial, space: Space, *, flat: bool = False) -> dict[str, Any]:
    """A value for every dimension that exists, given those before it.

    - `flat`: the trial is asked for the others too, as one does to spare a sampler the conditions.
    """
    point: dict[str, Any] = {}
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        exists = all(point.get(parent) in values for parent, values in dimension.when)
        if flat or exists:
            value = suggested_value(trial, name, dimension)
            point |= {name: value} if exists else {}
    return point


def suggested_value(trial: Trial, name: str, dimension: Dimension) -> Any:
    """What a trial suggests for one dimension."""
    if isinstance(dimension, Categorical):
        return trial.suggest_categorical(name, dimension.choices)
    if isinstance(dimension, Integer):
        return trial.suggest_int(name, dimension.low, dimension.high, log=dimension.log)
    return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)


def with_optima(family: Family, tasks) -> list[tuple[AbstractTask, float]]:
    """The tasks of a stack one by one, each with the value of its optimum."""
    return list(zip(family.unstack(tasks), family.optimum(tasks).value.tolist(), strict=True))


def shown(samples, digits: int = 2) -> str:
    """A mean and its 95 % interval."""
    mean, half_width = mean_and_interval(samples)
    return f"{float(mean):.{digits}g} ± {float(half_width):.1g}"


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table for a documentation page."""
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def show(title: str, header: list[str], rows: list[list[str]], *, as_markdown: bool) -> None:
    """Print a table, for a terminal or as Markdown."""
    if as_markdown:
        print(f"{title}\n\n{markdown(header, rows)}\n")
        return
    grid = Table(*header, title=title)
    for row in rows:
        grid.add_row(*row)
    Console(width=180).print(grid)
