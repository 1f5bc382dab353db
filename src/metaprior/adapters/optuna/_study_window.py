"""What a study uses of the space of a prior, and values of the prior as the study takes them."""

from collections.abc import Collection, Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metaprior.adapters.optuna._distributions import as_choice, nearest_value
from metaprior.bo import Numbers, Options, Range, Window, whole_range
from metaprior.data import Space


def whole_window(space: Space) -> Window:
    """All of the space: for a study that has not shown what it asks for."""
    named = zip(space.names, space.dimensions, strict=True)
    return Window(space, tuple((name, whole_range(dimension)) for name, dimension in named))


def study_window(space: Space, asked: Mapping[str, Collection[BaseDistribution]]) -> Window | None:
    """The part of `space` that a study with the distributions `asked` can use; `None` if it can
    use nothing of it.

    Bounds that differ from trial to trial are joined, so that no trial lies outside.
    """
    ranges, held = [], []
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        found = _joined(asked[name]).within(dimension) if name in asked else None
        if found is None:
            continue
        if found.only is None:
            ranges.append((name, found))
        else:
            held.append((name, found.only))
    return Window(space, tuple(ranges), tuple(held)) if ranges else None


def shared_range(space: Space, name: str, distribution: BaseDistribution) -> Range | None:
    """What the space and the distribution of a parameter both have; `None` without a choice."""
    if name not in space.names:
        return None
    found = _joined([distribution]).within(space.dimensions[space.names.index(name)])
    return None if found is None or found.only is not None else found


def as_asked(value: Any, shared: Range, distribution: BaseDistribution) -> Any:
    """The value nearest to `value` that space and distribution both have, as Optuna takes it."""
    if isinstance(shared, Numbers):
        value = min(max(value, shared.low), shared.high)
    elif value not in shared.choices:
        value = shared.choices[0]
    return nearest_value(value, distribution)


def is_varied(distributions: Collection[BaseDistribution]) -> bool:
    """Whether a parameter with these distributions can have more than one value."""
    return _joined(distributions).only is None


def in_space(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a trial as a space holds them."""
    return {name: as_choice(value) for name, value in params.items()}


def _joined(distributions: Collection[BaseDistribution]) -> Range:
    """Everything that any of the distributions allows: Optuna keeps to one kind in a study."""
    categorical = [d for d in distributions if isinstance(d, CategoricalDistribution)]
    if categorical:
        choices = dict.fromkeys(as_choice(choice) for d in categorical for choice in d.choices)
        return Options(tuple(choices))
    numbers = [d for d in distributions if isinstance(d, (FloatDistribution, IntDistribution))]
    low, high = float(min(d.low for d in numbers)), float(max(d.high for d in numbers))
    return Numbers(low, high, numbers[0].log, _common_step(numbers, low))


def _common_step(numbers: list[FloatDistribution | IntDistribution], low: float) -> float | None:
    """The distance between neighbouring values, if one is good for all; else `None`."""
    step = numbers[0].step
    if step is not None and all(_on_one_grid(d, low, float(step)) for d in numbers):
        return float(step)
    return 1.0 if all(isinstance(d, IntDistribution) for d in numbers) else None


def _on_one_grid(d: FloatDistribution | IntDistribution, low: float, step: float) -> bool:
    steps = (d.low - low) / step
    return d.step == step and abs(steps - round(steps)) < 1e-8
