"""Ax 1.3: our priors, its default strategy, and its transfer generator, `Generators.BOTL`.

What had to be done for BOTL, which the public API does not reach: import its adapter, which
registers it; attach past experiments to `experiment.auxiliary_experiments_by_purpose`, a list per
purpose, as `AuxiliarySource`; put a node before it, since it raises an `IndexError` without a first
result (here the centre of the space, as in Ax's default strategy). Its choice between transfer and
no transfer by cross-validation is off: it would fit everything again for every trial.

With two objectives, BoTorch compiles a C++ kernel once per machine, where it finds a compiler. A
process that is killed while it does leaves a lock, and later ones wait for it without a word:
remove `torch_extensions` from the cache of the user then.
"""

import logging
import warnings

import numpy as np
import pandas as pd
from ax.adapter.transfer_learning.adapter import (
    TL_EXP,
    transfer_learning_generator_specs_constructor,
)
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.arm import Arm
from ax.core.auxiliary_source import AuxiliarySource
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.generation_strategy.center_generation_node import CenterGenerationNode
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy

from benchmarks.hosts._methods import Searcher, Setting
from benchmarks.hosts._tasks import Point, Task
from metaprior.adapters.ax import generation_strategy
from metaprior.data import Integer, Outputs, Space

logging.getLogger("ax").setLevel(logging.ERROR)


class ByClient:
    """A client of Ax with a generation strategy; its default one if there is none."""

    def __init__(self, task: Task, seed: int, strategy: GenerationStrategy | None = None):
        self.client = new_client(task.space, dict(task.directions), "new", seed)
        if strategy is not None:
            self.client.set_generation_strategy(strategy)
        self._trial = 0

    def ask(self) -> Point:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ((self._trial, point),) = self.client.get_next_trials(1).items()
        return dict(point)

    def tell(self, point: Point, values: dict[str, float]) -> None:
        self.client.complete_trial(self._trial, dict(values))


def by_priors(setting: Setting, task: Task, seed: int) -> Searcher:
    """Our adapter."""
    priors = dict(setting.priors.objectives)
    return ByClient(task, seed, generation_strategy(priors, seed=seed))


def by_default(setting: Setting, task: Task, seed: int) -> Searcher:
    """Ax's own choice."""
    return ByClient(task, seed)


def by_transfer(setting: Setting, task: Task, seed: int) -> Searcher:
    """BOTL over all past runs."""
    specs, _ = transfer_learning_generator_specs_constructor(use_model_selection=False)
    nodes = [
        CenterGenerationNode(next_node_name="transfer"),
        GenerationNode(name="transfer", generator_specs=specs),
    ]
    searcher = ByClient(task, seed, GenerationStrategy(name="transfer", nodes=nodes))
    attach(searcher.client, setting.past, list(task.directions))
    return searcher


def new_client(space: Space, directions: dict[str, str], name: str, seed: int) -> Client:
    """A client for a space of ranges."""
    client = Client(random_seed=seed)
    parameters = [
        RangeParameterConfig(
            each,
            (dimension.low, dimension.high),
            "int" if isinstance(dimension, Integer) else "float",
            scaling="log" if dimension.log else "linear",
        )
        for each, dimension in zip(space.names, space.dimensions, strict=True)
    ]
    client.configure_experiment(parameters, name=name)
    goals = [each if d == "maximize" else f"-{each}" for each, d in directions.items()]
    client.configure_optimization(", ".join(goals))
    return client


def attach(client: Client, past: Outputs, objectives: list[str]) -> None:
    """Past runs as experiments that BOTL transfers from."""
    directions = {name: past[name].direction for name in objectives}
    sources = []
    for i in range(past[objectives[0]].num_tasks):
        points, _ = past[objectives[0]].run(i)
        source = new_client(past.space, directions, f"past {i}", 0)._experiment
        columns = {name: past[name].run(i)[1] for name in objectives}
        source.attach_data(_recorded(source, points, columns))
        sources.append(AuxiliarySource(experiment=source))
    client._experiment.auxiliary_experiments_by_purpose[TL_EXP] = sources


def _recorded(experiment: Experiment, points: list[Point], columns: dict[str, np.ndarray]) -> Data:
    rows = []
    for i, point in enumerate(points):
        trial = experiment.new_trial()
        trial.add_arm(Arm(parameters=point, name=f"{i}_0"))
        trial.mark_running(no_runner_required=True)
        trial.mark_completed()
        rows += [(i, f"{i}_0", name, name, float(y[i]), np.nan) for name, y in columns.items()]
    names = ["trial_index", "arm_name", "metric_name", "metric_signature", "mean", "sem"]
    return Data(df=pd.DataFrame(rows, columns=names))
