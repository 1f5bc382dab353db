"""The entrants of a study: the one place where names become families, methods and policies."""

import dataclasses
from importlib import import_module
from pathlib import Path
from typing import Any

from metaprior.data import Space
from metaprior.lab.environments import known_families
from metaprior.lab.policies import (
    AbstractCompiledAcquisition,
    AbstractPolicy,
    CompiledConfidenceBound,
    CompiledRestlessBound,
    RandomSearch,
    SurrogatePolicy,
)
from metaprior.lab.studies._configurations import read_configuration
from metaprior.methods import (
    AbstractMethod,
    AbstractSurrogate,
    known_methods,
    method_of,
    settings_of,
)

RANDOM_SEARCH = "RandomSearch"
ACQUISITIONS: dict[str, type[AbstractCompiledAcquisition]] = {
    "ucb": CompiledConfidenceBound,
    "restless": CompiledRestlessBound,
}

# A method with its settings on one environment, as JSON has it: the start of every job.
Entrant = dict[str, Any]


def method_named(name: str, settings: dict[str, Any] | None = None) -> AbstractMethod:
    """The method of that name, with its own settings where none are given."""
    return method_of({"name": name, **(settings or {})})


def policy_of(
    surrogate: AbstractSurrogate | None, acquisition: str, space: Space
) -> AbstractPolicy:
    """Upper confidence bounds under the surrogate; without one, random search."""
    if surrogate is None:
        return RandomSearch(space)
    return SurrogatePolicy(
        surrogate=surrogate, acquisition=ACQUISITIONS[acquisition](), space=space
    )


def search_ranges(name: str) -> dict[str, list[Any]]:
    """What a random search over the method's settings covers, by setting."""
    module = import_module(known_methods()[name].__module__)
    ranges = getattr(module, "SEARCH_RANGES", {})
    return {setting: list(each) for setting, each in ranges.items()}


def entrants_of(
    environments: tuple[str, ...],
    methods: tuple[str, ...],
    *,
    past_tasks: int | None,
    past_steps: int | None,
    num_steps: int | None,
    configurations: Path | None,
) -> list[Entrant]:
    """Every method on every environment, with all that decides what it learns.

    - `past_tasks`, `past_steps`: of the histories; by default those of the family.
    - `num_steps`: training steps of all methods that are trained by gradients.
    - `configurations`: a folder that a search wrote; a method that it lacks keeps its defaults.
    """
    families = known_families()
    entrants = []
    for environment in environments:
        for name in methods:
            chosen = None
            if configurations is not None and name != RANDOM_SEARCH:
                chosen = read_configuration(configurations, environment, name)
            family = families[environment]
            entrants.append(
                {
                    "environment": environment,
                    "method": name,
                    "configuration": "default" if chosen is None else "searched",
                    "settings": _settings(name, chosen, num_steps),
                    "past_tasks": past_tasks or family.num_tasks,
                    "past_steps": past_steps or family.run_length,
                }
            )
    return entrants


def _settings(name: str, chosen: dict[str, Any] | None, num_steps: int | None) -> dict[str, Any]:
    """All settings, defaults among them: a job's name must change when a default does."""
    if name == RANDOM_SEARCH:
        return {}
    method = method_named(name, chosen)
    if num_steps is not None and method.trains_in_batches:
        method = dataclasses.replace(method, num_steps=num_steps)
    return settings_of(method)
