"""Points of an experiment: all over its search space, and what a prior knows of them."""

from collections.abc import Mapping
from typing import Any

from ax.adapter.registry import Generators
from ax.core.experiment import Experiment
from ax.core.observation import ObservationFeatures
from ax.core.types import TParameterization

from metaprior.belief import Prior

# How many points stand for a search space.
MANY = 512


def sobol_points(
    experiment: Experiment, fixed: Mapping[str, Any], taken: list[TParameterization], seed: int
) -> list[TParameterization]:
    """Different points of the search space, none of them taken; all constraints hold."""
    sobol = Generators.SOBOL(
        experiment=experiment, seed=seed, deduplicate=False, fallback_to_sample_polytope=True
    )
    features = ObservationFeatures(parameters=dict(fixed)) if fixed else None
    rows = [arm.parameters for arm in sobol.gen(n=MANY, fixed_features=features).arms]
    free = [row for i, row in enumerate(rows) if row not in taken and row not in rows[:i]]
    return free or rows


def known_part(prior: Prior, row: TParameterization) -> dict[str, Any]:
    """What the prior knows of a point."""
    return {name: row[name] for name in prior.space.names}


def known_parts(prior: Prior, rows: list[TParameterization]) -> list[dict[str, Any]]:
    """The points that the prior can make something of."""
    found = []
    for row in rows:
        try:
            point = known_part(prior, row)
            prior.space.encode([point])
        except (KeyError, ValueError):
            continue  # attached from elsewhere
        found.append(point)
    return found
