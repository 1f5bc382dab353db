"""What a study uses of the space of a prior and adds to it, and values as the study takes them."""

from collections.abc import Collection, Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metaprior.adapters.optuna._distributions import as_choice
from metaprior.bo import (
    Numbers,
    Options,
    Range,
    Window,
    covers,
    new_choices,
    surplus,
    whole_range,
)
from metaprior.data import Categorical, Space
from metaprior.words import listed


def whole_window(space: Space) -> Window:
    """All of the space: for a study that has not shown what it asks for."""
    named = zip(space.names, space.dimensions, strict=True)
    return Window(space, tuple((name, whole_range(dimension)) for name, dimension in named))


def study_window(space: Space, asked: Mapping[str, Collection[BaseDistribution]]) -> Window | None:
    """What a study with the distributions `asked` uses of `space`, and what it adds to it; `None`
    if it can use nothing of it.

    Bounds that differ from trial to trial are joined, so that no trial lies outside.
    """
    ranges, held = [], []
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        if name not in asked:
            continue
        every = _joined(asked[name])
        known = every.within(dimension)
        if every.only is None:
            ranges.append((name, known if known is not None and covers(known, every) else every))
        elif known is not None:
            held.append((name, known.only))
    unknown = {name: _joined(found) for name, found in asked.items() if name not in space.names}
    ranges += [(name, every) for name, every in unknown.items() if every.only is None]
    window = Window(space, tuple(ranges), tuple(held))
    return window if any(window.known_dimension(name) for name, _ in ranges) else None


def news(window: Window) -> dict[str, str]:
    """What a window adds to the space of a prior, in words, by parameter."""
    found = {}
    for name, r in window.ranges:
        dimension = window.known_dimension(name)
        if name not in window.whole.names:
            found[name] = f"the parameter {name!r}"
        elif dimension is None:
            own, other = ("categorical", "a number")[:: 1 if isinstance(r, Options) else -1]
            found[name] = f"the parameter {name!r}, which is {own} here and {other} in the prior"
        elif isinstance(r, Options):
            added = [repr(choice) for choice in new_choices(r, dimension)]
            if added:
                found[name] = f"{listed(added, 5)} as choices of {name!r}"
        elif surplus(r, dimension) is not None:
            assert not isinstance(dimension, Categorical)
            known = f"{dimension.low:g} to {dimension.high:g}"
            found[name] = f"{name!r} from {r.low:g} to {r.high:g} (it knows {known})"
    return found


def shared_range(space: Space, name: str, distribution: BaseDistribution) -> Range | None:
    """What the space and the distribution of a parameter both have; `None` without a choice."""
    if name not in space.names:
        return None
    found = _joined([distribution]).within(space.dimensions[space.names.index(name)])
    return None if found is None or found.only is not None else found


def as_offered(value: Any, space: Space, name: str, distribution: BaseDistribution) -> Any:
    """A proposed value as far as the distribution offers it, `None` if it does not.

    A value that the distribution does not have is moved to what it shares with the space.
    """
    if isinstance(distribution, CategoricalDistribution):
        offered = [as_choice(choice) for choice in distribution.choices]
        is_offered = any(value == choice and type(value) is type(choice) for choice in offered)
    else:
        assert isinstance(distribution, (FloatDistribution, IntDistribution))
        is_number = not isinstance(value, str)
        is_offered = is_number and distribution.low <= value <= distribution.high
    if not is_offered:
        shared = shared_range(space, name, distribution)
        if shared is None:
            return None
        if isinstance(shared, Numbers):
            value = min(max(value, shared.low), shared.high)
        elif value not in shared.choices:
            value = shared.choices[0]
    return value


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
    return Numbers(low, high, numbers[0].log, _common_step(numbers, low)).coarse


def _common_step(numbers: list[FloatDistribution | IntDistribution], low: float) -> float | None:
    """The distance between neighbouring values, if one is good for all; else `None`."""
    step = numbers[0].step
    if step is not None and all(_on_one_grid(d, low, float(step)) for d in numbers):
        return float(step)
    return 1.0 if all(isinstance(d, IntDistribution) for d in numbers) else None


def _on_one_grid(d: FloatDistribution | IntDistribution, low: float, step: float) -> bool:
    steps = (d.low - low) / step
    return d.step == step and abs(steps - round(steps)) < 1e-8
