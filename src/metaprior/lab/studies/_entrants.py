"""The entrants of a study: the one place where names become methods, their settings and variants.

An entrant is a method, `learn`, or random search, perhaps with variants after plus signs:
`FPacohMap+unrefined+restless` keeps the learned noise and scale on a new run, and asks by the
library's acquisition in place of the study's.
"""

import dataclasses
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.lab.environments import known_families
from metaprior.lab.studies._configurations import read_configuration
from metaprior.methods import AbstractMethod, known_methods, method_of, settings_of

RANDOM_SEARCH, LEARN = "RandomSearch", "Learn"
# What `learn` is given, by default what it has by default.
LEARN_SETTINGS: dict[str, Any] = {"budget": "normal", "versions": False}
SEPARATOR = "+"

# A method with its settings on one environment, as JSON has it: the start of every job.
Entrant = dict[str, Any]


class Variant(NamedTuple):
    """What is different from the method alone: settings, and the acquisition if it has its own."""

    settings: dict[str, Any]
    acquisition: str | None = None


VARIANTS = {
    "refined": Variant({"noise_log_spread": 3.0, "scale_log_spread": 1.0}),
    "unrefined": Variant({"noise_log_spread": 0.0, "scale_log_spread": 0.0}),
    "restless": Variant({}, "restless"),
    "latent": Variant({}, "latent"),
    "versions": Variant({"versions": True}),
}


class EntrantName(NamedTuple):
    """An entrant's name taken apart."""

    method: str
    variants: tuple[str, ...]

    @staticmethod
    def of(name: str) -> "EntrantName":
        method, *variants = name.split(SEPARATOR)
        return EntrantName(method, tuple(variants))

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that the variants decide."""
        return {key: value for v in self.variants for key, value in VARIANTS[v].settings.items()}

    def acquisition(self, of_study: str) -> str:
        """The name of its acquisition: the study's, unless a variant has its own."""
        own = [VARIANTS[each].acquisition for each in self.variants]
        return next((each for each in own if each is not None), of_study)


def canonical_name(name: Any) -> str | None:
    """The name as it is written in records, whatever its case; `None` if no method has it."""
    if not isinstance(name, str):
        return None
    known = {each.lower(): each for each in (*known_methods(), RANDOM_SEARCH, LEARN)}
    first, *variants = name.strip().lower().split(SEPARATOR)
    if first not in known or any(each not in VARIANTS for each in variants):
        return None
    return SEPARATOR.join((known[first], *dict.fromkeys(variants)))


def require_suited(name: str) -> None:
    """A variant needs the settings that it changes, or a posterior that it asks by."""
    method, variants = EntrantName.of(name)
    has = default_settings(method)
    for each in variants:
        lacks = not VARIANTS[each].settings.keys() <= has.keys()
        if lacks or (VARIANTS[each].acquisition and method in (RANDOM_SEARCH, LEARN)):
            raise ValueError(f"{method} has no variant {each!r}; leave it out.")


def learns_together(name: str) -> bool:
    """Whether many seeds are learned from at once; else each is a job."""
    return EntrantName.of(name).method != LEARN


def default_settings(method: str) -> dict[str, Any]:
    """All settings of a method, with their defaults."""
    if method in (RANDOM_SEARCH, LEARN):
        return dict(LEARN_SETTINGS) if method == LEARN else {}
    return settings_of(method_of({"name": method}))


def method_named(name: str, settings: dict[str, Any] | None = None) -> AbstractMethod:
    """The method of an entrant, with its own settings where none are given."""
    named = EntrantName.of(name)
    return method_of({"name": named.method, **(settings or {}), **named.fixed})


def search_ranges(name: str) -> dict[str, list[Any]]:
    """What a random search over the entrant's settings covers, by setting."""
    named = EntrantName.of(name)
    if named.method in (RANDOM_SEARCH, LEARN):
        return {}
    module = import_module(known_methods()[named.method].__module__)
    ranges = getattr(module, "SEARCH_RANGES", {})
    fixed = named.fixed
    return {setting: list(each) for setting, each in ranges.items() if setting not in fixed}


def entrants_of(
    environments: tuple[str, ...],
    methods: tuple[str, ...],
    *,
    past_tasks: int | None,
    past_steps: int | None,
    num_steps: int | None,
    budget: str | None,
    configurations: Path | None,
) -> list[Entrant]:
    """Every method on every environment, with all that decides what it learns.

    - `past_tasks`, `past_steps`: of the histories; by default those of the family.
    - `num_steps`: training steps of all methods that are trained by gradients.
    - `budget`: of `learn`.
    - `configurations`: a folder that a search wrote; a method that it lacks keeps its defaults.
    """
    families = known_families()
    entrants = []
    for environment in environments:
        for name in methods:
            chosen = None
            if configurations is not None and search_ranges(name):
                chosen = _chosen(configurations, environment, name)
            family = families[environment]
            settings = _settings(name, chosen, num_steps)
            if "budget" in settings and budget is not None:
                settings["budget"] = budget
            entrants.append(
                {
                    "environment": environment,
                    "method": name,
                    "configuration": "default" if chosen is None else "searched",
                    "settings": settings,
                    "past_tasks": past_tasks or family.num_tasks,
                    "past_steps": past_steps or family.run_length,
                }
            )
    return entrants


def _chosen(folder: Path, environment: str, name: str) -> dict[str, Any] | None:
    """What was chosen for the entrant itself, or else for its method without variants."""
    own = read_configuration(folder, environment, name)
    method = EntrantName.of(name).method
    return own if own is not None else read_configuration(folder, environment, method)


def _settings(name: str, chosen: dict[str, Any] | None, num_steps: int | None) -> dict[str, Any]:
    """All settings, defaults among them: a job's name must change when a default does."""
    named = EntrantName.of(name)
    if named.method in (RANDOM_SEARCH, LEARN):
        return default_settings(named.method) | named.fixed
    method = method_named(name, chosen)
    if num_steps is not None and method.trains_in_batches:
        method = dataclasses.replace(method, num_steps=num_steps)
    return settings_of(method)
