"""What a study uses of the space of a prior and adds to it, and values as the study takes them."""

from collections.abc import Collection, Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from metaprior.adapters.histories import as_choice, switches
from metaprior.bo import (
    Numbers,
    Options,
    Range,
    Window,
    covers,
    middle_of,
    new_choices,
    surplus,
    whole_range,
)
from metaprior.data import Categorical, Space
from metaprior.words import listed, value

# So many trials without an optional parameter show that a study never asks for it.
PATIENCE = 3
NOTHING: Mapping[str, int] = {}


def whole_window(space: Space) -> Window:
    """All of the space: for a study that has not shown what it asks for."""
    named = zip(space.names, space.dimensions, strict=True)
    return Window(space, tuple((name, whole_range(dimension)) for name, dimension in named))


def study_window(
    space: Space,
    asked: Mapping[str, Collection[BaseDistribution]],
    shown: Collection[str] = (),
    lacking: Mapping[str, int] = NOTHING,
) -> Window | None:
    """What a study with the distributions `asked` uses of `space`, and what it adds to it; `None`
    if it can use nothing of it.

    Bounds that differ from trial to trial are joined, so that no trial lies outside.

    - `shown`: dimensions that existed in some trial. Others, if they are conditional, are expected
      to be asked for where they exist.
    - `lacking`: how many trials lack an optional parameter. Its switch is free if some have it and
      some lack it, and until a few trials have shown that the study never asks for it.
    """
    ranges: list[tuple[str, Range]] = []
    held: list[tuple[str, Any]] = []
    own_switches = switches(space)
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        if name in own_switches:
            optional = own_switches[name]
            is_asked, count = optional in asked, lacking.get(optional, 0)
            if (is_asked and count == 0) or (not is_asked and count >= PATIENCE):
                held.append((name, is_asked))
            else:
                ranges.append((name, whole_range(dimension)))
            continue
        if name not in asked:
            continue
        every = _joined(asked[name])
        known = every.within(dimension)
        if every.only is None:
            ranges.append((name, known if known is not None and covers(known, every) else every))
        elif known is not None:
            held.append((name, known.only))
    decided = {name for name, _ in ranges}
    ranges += [(name, r) for name, r in _expected(space, asked, shown, decided, dict(held))]
    held += _needed(space, asked, {name for name, _ in [*ranges, *held]})
    unknown = {name: _joined(found) for name, found in asked.items() if name not in space.names}
    ranges += [(name, every) for name, every in unknown.items() if every.only is None]
    window = Window(space, tuple(ranges), tuple(held))
    return window if any(window.known_dimension(name) for name, _ in ranges) else None


def _expected(
    space: Space,
    asked: Collection[str],
    shown: Collection[str],
    decided: Collection[str],
    held: Mapping[str, Any],
) -> list[tuple[str, Range]]:
    """Conditional dimensions that no trial had a reason to ask for yet, with all of their values:
    those whose parents the study decides, holds at a value that allows for them, or expects, too.

    - `decided`: dimensions of which the study has several values; `held`: the value of others.
    """
    dimensions = dict(zip(space.names, space.dimensions, strict=True))

    def allows(parent: str, values: Collection[Any]) -> bool:
        if parent in held:
            return held[parent] in values
        return parent in decided or is_expected(parent)

    def is_expected(name: str) -> bool:
        when = dimensions[name].when
        is_new = bool(when) and name not in asked and name not in shown
        return is_new and all(allows(parent, values) for parent, values in when)

    return [(name, whole_range(dimensions[name])) for name in space.names if is_expected(name)]


def _needed(space: Space, asked: Collection[str], known: Collection[str]) -> list[tuple[str, Any]]:
    """Values for what a study never asks for, so that what it asks for exists."""
    dimensions = dict(zip(space.names, space.dimensions, strict=True))
    found: dict[str, Any] = {}
    for name in space.names:  # those of the last ones stay, where they contradict each other
        stack = [name] if name in asked else []
        while stack:
            for parent, values in dimensions[stack.pop()].when:
                if parent not in known:
                    found[parent] = values[0]
                stack.append(parent)
    return list(found.items())


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


def gone(window: Window, asked: Collection[str], shown: Collection[str]) -> dict[str, str]:
    """What a study never asks for of the space of its prior, and where it is held, by parameter.

    - `asked`: parameters that some trial asked for; `shown`: dimensions that existed in some trial.
    """
    space, used, held = window.whole, {name for name, _ in window.ranges}, dict(window.held)
    own_switches, found = switches(space), {}
    for name, dimension in zip(space.names, space.dimensions, strict=True):
        is_missing = name not in asked and name not in used and name not in own_switches
        if is_missing and (not dimension.when or name in shown):
            at = held.get(name, middle_of(dimension))
            found[name] = f"{name!r} (held at {repr(at) if isinstance(at, str) else value(at)})"
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
