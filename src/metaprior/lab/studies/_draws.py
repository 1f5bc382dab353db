"""Random configurations: a few shapes, and for each many settings of the numbers."""

from dataclasses import fields
from itertools import product
from math import exp, log
from typing import Any

import numpy as np

from metaprior.lab.studies._entrants import method_named
from metaprior.methods import is_traced

Ranges = dict[str, list[Any]]
Settings = dict[str, Any]


def sizes_in(method: str, ranges: Ranges) -> list[str]:
    """Settings that decide the shapes of compiled code: whatever is not traced.

    Trainings in one batch may differ in length.
    """
    configured = method_named(method)
    free = {setting.name for setting in fields(configured) if is_traced(setting)}
    if configured.trains_in_batches:
        free.add("num_steps")
    return [name for name in ranges if name not in free]


def draw_shapes(method: str, ranges: Ranges, num: int, seed: int) -> list[Settings]:
    """At most `num` different settings of the sizes, all of them if there are no more."""
    names = sizes_in(method, ranges)
    every = [
        dict(zip(names, values, strict=True))
        for values in product(*(choices_in(name, ranges[name]) for name in names))
    ]
    if len(every) <= num:
        return every
    chosen = np.random.default_rng([seed, 0]).choice(len(every), size=num, replace=False)
    return [every[i] for i in sorted(chosen.tolist())]


def draw_numbers(method: str, ranges: Ranges, index: int, seed: int) -> Settings:
    """The settings of configuration `index` that are not sizes."""
    # A stream for each configuration, so that it does not depend on which others are drawn.
    rng = np.random.default_rng([seed, 1, index])
    sizes = sizes_in(method, ranges)
    return {name: _drawn(name, ranges[name], rng) for name in ranges if name not in sizes}


def _drawn(name: str, described: list[Any], rng: np.random.Generator) -> Any:
    if described[0] == "log-uniform":
        _, low, high = described
        return exp(rng.uniform(log(low), log(high)))
    choices = choices_in(name, described)
    return choices[int(rng.integers(len(choices)))]


def choices_in(name: str, described: list[Any]) -> list[Any]:
    """The values in the range of a setting that is a choice."""
    if described[0] != "choice":
        raise ValueError(
            f"The range of {name} is {described!r}; give ['log-uniform', low, high] for a number "
            "or ['choice', [...]] for anything."
        )
    return list(described[1])
