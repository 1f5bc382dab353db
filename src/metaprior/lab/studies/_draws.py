"""Random configurations of a method, from the ranges that its module documents.

Settings are of two sorts. Numbers are traced and may differ between trainings done at once; sizes
decide the shapes of compiled code. A search draws a few shapes and, for each, many configurations
of the numbers, since every shape is compiled anew.
"""

from itertools import product
from math import exp, log
from typing import Any

import numpy as np

from metaprior.lab.studies._entrants import method_named
from metaprior.methods import AbstractGradientMethod

Ranges = dict[str, list[Any]]
Settings = dict[str, Any]


def sizes_in(method: str, ranges: Ranges) -> list[str]:
    """Settings that decide the shapes of compiled code: whatever is not a float.

    Trainings by gradients may differ in length.
    """
    configured = method_named(method)
    gradient = isinstance(configured, AbstractGradientMethod)
    return [
        name
        for name in ranges
        if not isinstance(getattr(configured, name), float)
        and not (gradient and name == "num_steps")
    ]


def draw_shapes(method: str, ranges: Ranges, num: int, seed: int) -> list[Settings]:
    """At most `num` different settings of the sizes, all of them if there are no more."""
    names = sizes_in(method, ranges)
    every = [
        dict(zip(names, values, strict=True))
        for values in product(*(_choices(name, ranges[name]) for name in names))
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
    choices = _choices(name, described)
    return choices[int(rng.integers(len(choices)))]


def _choices(name: str, described: list[Any]) -> list[Any]:
    if described[0] != "choice":
        raise ValueError(
            f"The range of {name} is {described!r}; give ['log-uniform', low, high] for a number "
            "or ['choice', [...]] for anything."
        )
    return list(described[1])
