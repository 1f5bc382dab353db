r"""When a parameter exists: rules that the trials of many studies follow, and switches for others.

A rule says that a parameter exists exactly where one to four others, categorical or integer, have
certain values. It is believed if it holds in every trial and is unlikely to be chance: if presence
did not depend on anything, a rule over parents with c values in all would hold for n of N trials
with a probability of at most

$$ 2^c \, (n/N)^n \, (1 - n/N)^{N - n} . $$

A parameter without a rule that some trials of a study have and others lack is optional: the space
gets a switch for it, a categorical dimension that trials do not have.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from metaprior.adapters.histories._declared import LARGEST_INTEGER, DeclaredNumber, is_choice
from metaprior.adapters.histories._trials import UsableTrial
from metaprior.data import Categorical, Dimension, Integer, Space

# A rule that is likelier than this to hold by chance is none.
CHANCE = 1e-3
_LOG_CHANCE = math.log(CHANCE)
# So many trials must have an optional parameter, and as many must lack it.
FEWEST = 10
# A rule is over so many parameters at most.
MOST_PARENTS = 4
# Integers with more values than this decide nothing.
MOST_VALUES = 256
_SWITCH = "has_"


class Rule(NamedTuple):
    """A parameter exists where each of the parents has one of the values."""

    parents: tuple[tuple[str, tuple[Any, ...]], ...]

    def when(self, dimensions: Mapping[str, Dimension]) -> dict[str, list[Any]]:
        """The rule for a dimension of a space with the parents `dimensions`."""
        return {
            name: _spread(values, parent) if isinstance(parent, Integer) else list(values)
            for name, values in self.parents
            for parent in [dimensions[name]]
        }

    def in_words(self) -> str:
        return " and ".join(f"{name} is {_either(values)}" for name, values in self.parents)


class _Parent(NamedTuple):
    """A parameter that may decide whether another one exists: the values with which that one was
    seen, and all of its values."""

    name: str
    allowed: set[Any]
    seen: set[Any]

    def holds(self, trial: UsableTrial) -> bool:
        return self.name in trial.params and trial.params[self.name] in self.allowed


def found_rule(name: str, trials: Sequence[UsableTrial], parents: Collection[str]) -> Rule | None:
    """The rule by which some trials have the parameter `name`; `None` if there is none.

    - `parents`: what it may depend on, the likeliest first.
    """
    having = [trial for trial in trials if name in trial.params]
    lacking = [trial for trial in trials if name not in trial.params]
    able = [
        parent
        for parent in parents
        if all(parent in trial.params for trial in having) and _decides(parent, trials)
    ]
    # Among equals, categories come before integers.
    able.sort(key=lambda parent: not is_choice(having[0].declared[parent]))
    found = [each for each in (_parent(p, trials, having) for p in able) if each is not None]

    def tells_apart(chosen: Sequence[_Parent]) -> bool:
        return not any(all(parent.holds(trial) for parent in chosen) for trial in lacking)

    if not tells_apart(found):  # nor do some of them
        return None
    for size in range(1, MOST_PARENTS + 1):
        for chosen in combinations(found, size):
            if tells_apart(chosen) and _log_chance(chosen, len(having), len(trials)) < _LOG_CHANCE:
                return Rule(tuple((p.name, _in_order(p, having)) for p in chosen))
    return None


def is_optional(name: str, studies: Sequence[Sequence[UsableTrial]]) -> bool:
    """Whether trials of the same study have the parameter and lack it, often enough."""
    counts = [(sum(name in trial.params for trial in trials), len(trials)) for trials in studies]
    have, every = sum(n for n, _ in counts), sum(m for _, m in counts)
    return any(0 < n < m for n, m in counts) and FEWEST <= have <= every - FEWEST


def switch_of(name: str) -> str:
    """What the switch of an optional parameter is called."""
    return f"{_SWITCH}{name}"


def switches(space: Space) -> dict[str, str]:
    """The switches in a space, and the parameters whose presence they are."""
    dimensions = dict(zip(space.names, space.dimensions, strict=True))
    return {
        switch: name
        for name, dimension in dimensions.items()
        for switch in [switch_of(name)]
        if dimension.when == ((switch, (True,)),)
        and dimensions[switch] == Categorical([False, True])
    }


def with_switches(params: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """Parameters of a trial, with the switches of the space."""
    named = {switch: name in params for switch, name in switches(space).items()}
    return {**named, **params} if named else dict(params)


def _decides(parent: str, trials: Sequence[UsableTrial]) -> bool:
    """Whether a parameter is one on which others may depend: a choice, or an integer."""
    found = [t.declared[parent] for t in trials if parent in t.params]
    return all(map(is_choice, found)) or all(
        isinstance(d, DeclaredNumber)
        and d.integer
        and max(abs(d.low), abs(d.high)) <= LARGEST_INTEGER
        for d in found
    )


def _parent(name: str, trials: Sequence[UsableTrial], having: list[UsableTrial]) -> _Parent | None:
    """The parameter `name` as a parent; `None` if it cannot be one, or is no condition."""
    seen = {trial.params[name] for trial in trials if name in trial.params}
    allowed = {trial.params[name] for trial in having}
    if allowed == seen:
        return None
    if not is_choice(having[0].declared[name]):
        between = [value for value in seen if min(allowed) <= value <= max(allowed)]
        if len(between) > len(allowed) or len(between) > MOST_VALUES:
            return None
    return _Parent(name, allowed, seen)


def _log_chance(parents: Sequence[_Parent], having: int, every: int) -> float:
    """How likely a rule over these parents holds by chance at most, as a logarithm."""
    share = having / every
    found = having * math.log(share)
    found += (every - having) * math.log1p(-share) if share < 1 else 0.0
    return found + sum(len(parent.seen) for parent in parents) * math.log(2.0)


def _in_order(parent: _Parent, having: list[UsableTrial]) -> tuple[Any, ...]:
    """Values in the order in which they turn up, numbers by size."""
    if is_choice(having[0].declared[parent.name]):
        return tuple(dict.fromkeys(trial.params[parent.name] for trial in having))
    return tuple(sorted(parent.allowed))


def _spread(values: tuple[Any, ...], parent: Integer) -> list[int]:
    """All integers of the dimension between those that were seen."""
    step = parent.step or 1
    first = parent.low + -(-(values[0] - parent.low) // step) * step
    return list(range(first, values[-1] + 1, step))


def _either(values: tuple[Any, ...]) -> str:
    if len(values) > 2 and all(type(value) is int for value in values):
        return f"from {values[0]} to {values[-1]}"
    return " or ".join(map(repr, values))
