r"""Task features: what is known of a task as a whole, such as the size of a data set.

A feature is the same for all points of a run. Learned models see it as further columns of a point:

| past values | columns | code of a value |
|---|---|---|
| numbers | 1 | its place in the past range, from 0 to 1; a little further outside of it |
| texts, or `True` and `False` | one for each | one-hot |

Numbers are taken on a log scale if they are positive and span more than two decades. A value that
is missing, and a text that no past task had, get the mean code of the past tasks.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from metaprior.data._dimensions import Categorical, Dimension, Real
from metaprior.data._points import as_native
from metaprior.data._space import Space
from metaprior.words import listed, shortened

FeatureValue: TypeAlias = bool | int | float | str
# What is known of one task, by name; a feature that is missing or `None` is not known.
Features: TypeAlias = Mapping[str, FeatureValue | None]

DECADES = 2.0
# However far outside of the past range a number lies, its code is at most this far outside.
MOST_OUTSIDE = 0.25
# Why a feature is known by name and not used.
CONSTANT = "it is the same in all past tasks"
ALL_DIFFERENT = "it is another text in every past task"
NEVER_GIVEN = "it is not known of any past task"


@dataclass(frozen=True)
class NumberFeature:
    """A number.

    - `low`, `high`: of the past tasks; `log`: whether it is taken on a log scale.
    - `typical`: the mean code of the past tasks.
    """

    name: str
    low: float
    high: float
    log: bool
    typical: float

    @property
    def dimension(self) -> Dimension:
        """Where its codes lie."""
        return Real(0.0, 1.0)

    def code(self, value: FeatureValue | None, where: str) -> Float[np.ndarray, " 1"]:
        if value is None:
            return np.array([self.typical])
        if isinstance(value, (bool, str)):
            raise _wrong_kind(where, self.name, value, "numbers")
        return np.array([_place(float(value), self.low, self.high, self.log)])

    def to_json(self) -> dict[str, Any]:
        scale = {"low": self.low, "high": self.high, "log": self.log}
        return {"name": self.name, "type": "number", **scale, "typical": self.typical}

    def __str__(self) -> str:
        return f"number, {self.low:g} to {self.high:g}{', log' if self.log else ''}"


@dataclass(frozen=True)
class CategoryFeature:
    """One of a few texts, or `True` and `False`.

    - `shares`: of the choices among the past tasks.
    """

    name: str
    choices: tuple[bool | str, ...]
    shares: tuple[float, ...]

    @property
    def dimension(self) -> Dimension:
        """Where its codes lie."""
        return Categorical(list(self.choices), one_hot=True)

    def code(self, value: FeatureValue | None, where: str) -> Float[np.ndarray, " c"]:
        if value is not None and type(value) is not type(self.choices[0]):
            kind = "texts" if isinstance(self.choices[0], str) else "True or False"
            raise _wrong_kind(where, self.name, value, kind)
        if value not in self.choices:
            return np.array(self.shares)
        return np.array([float(choice == value) for choice in self.choices])

    def to_json(self) -> dict[str, Any]:
        choices = {"choices": list(self.choices), "shares": list(self.shares)}
        return {"name": self.name, "type": "category", **choices}

    def __str__(self) -> str:
        return f"one of {listed([str(choice) for choice in self.choices], 6)}"


Feature: TypeAlias = NumberFeature | CategoryFeature


@dataclass(frozen=True)
class TaskFeatures:
    """The features of a set of tasks.

    - `used`: those that have columns.
    - `unused`: names of those that have none, each with the reason. They may be given, and nothing
      comes of it.
    """

    used: tuple[Feature, ...] = ()
    unused: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names that are known, used or not."""
        return (*(feature.name for feature in self.used), *(name for name, _ in self.unused))

    @property
    def num_columns(self) -> int:
        """How many columns the features add to a point."""
        return sum(feature.dimension.num_columns for feature in self.used)

    def code(self, features: Features | None, *, where: str = "") -> Float[np.ndarray, " c"]:
        """The columns of one task.

        - `where`: what to call the task in an error, such as `"task 3"`.
        """
        known = checked_features({} if features is None else features, where)
        unknown = [name for name in known if name not in self.names]
        if unknown:
            has = f"{listed(list(map(repr, self.names)), 8)}" if self.names else "none"
            raise ValueError(
                f"{_prefix(where)}there is no feature {unknown[0]!r} among those that the prior "
                f"was learned with ({has}); leave it out."
            )
        codes = [feature.code(known.get(feature.name), where) for feature in self.used]
        return np.concatenate([np.zeros(0), *codes])

    def extended(self, space: Space) -> Space:
        """The space with one more dimension for each feature that is used."""
        own = zip(space.names, space.dimensions, strict=True)
        return Space(**dict(own), **{feature.name: feature.dimension for feature in self.used})

    def without(self, reasons: Mapping[str, str]) -> "TaskFeatures":
        """The features, of which those named are no longer used, each for its reason."""
        left = tuple(feature for feature in self.used if feature.name not in reasons)
        return replace(self, used=left, unused=(*self.unused, *reasons.items()))

    def to_json(self) -> dict[str, Any]:
        """The features as JSON-able values; `TaskFeatures.from_json` gives equal ones back."""
        return {
            "used": [feature.to_json() for feature in self.used],
            "unused": [{"name": name, "reason": reason} for name, reason in self.unused],
        }

    @classmethod
    def from_json(cls, data: Any) -> "TaskFeatures":
        """What `to_json` wrote."""
        used = tuple(_feature_from_json(entry) for entry in data["used"])
        return cls(used, tuple((str(e["name"]), str(e["reason"])) for e in data["unused"]))


def features_of(tasks: Sequence[Features], *, places: Sequence[str] = ()) -> TaskFeatures:
    """The features of these tasks, whose values have been checked: their kinds and their scales.

    - `places`: what to call each task in an error, such as `"study 'a'"`; by default its number.
    """
    places = places or [f"task {i}" for i in range(len(tasks))]
    names = dict.fromkeys(name for task in tasks for name in task)
    used: list[Feature] = []
    unused = []
    for name in names:
        values = [task.get(name) for task in tasks]
        _require_one_kind(name, values, places)
        known = [value for value in values if value is not None]
        if not known:
            unused.append((name, NEVER_GIVEN))
        elif len(set(known)) == 1:
            unused.append((name, CONSTANT))
        elif isinstance(known[0], str) and len(set(known)) == len(known) > 2:
            unused.append((name, ALL_DIFFERENT))
        else:
            used.append(_fitted(name, known))
    return TaskFeatures(tuple(used), tuple(unused))


def checked_features(features: Any, where: str) -> dict[str, FeatureValue | None]:
    """Features of one task as Python values; anything but numbers, texts and bools is an error."""
    if not isinstance(features, Mapping):
        raise TypeError(
            f"{_prefix(where)}received {shortened(features)} as features; give a dict, such as "
            '{"instances": 65196}.'
        )
    return {str(name): _checked_value(name, value, where) for name, value in features.items()}


def checked_tasks(
    features: Iterable[Any], space: Space, count: int
) -> tuple[dict[str, FeatureValue | None], ...]:
    """The features of `count` tasks over `space`, one dict for each; `None` stands for nothing."""
    given = list(features)
    if isinstance(features, Mapping) or len(given) != count:
        raise ValueError(
            f"Received {len(given)} features for {count} runs; give one dict of features for each "
            "run, in the same order."
        )
    checked = tuple(
        checked_features({} if each is None else each, f"task {i}") for i, each in enumerate(given)
    )
    for i, each in enumerate(checked):
        both = [name for name in each if name in space.names]
        if both:
            raise ValueError(
                f"task {i}: the feature {both[0]!r} is called like a dimension of the space; "
                "rename one of them."
            )
    return checked


def _checked_value(name: Any, value: Any, where: str) -> FeatureValue | None:
    value = as_native(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, (int, float)) and not math.isfinite(value):
        raise ValueError(
            f"{_prefix(where)}the feature {name!r} is {value}; give a finite number, or leave it "
            "out if it is not known."
        )
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise ValueError(
            f"{_prefix(where)}the feature {name!r} is {shortened(value)}; give a number, a text, "
            "True or False, or leave it out if it is not known."
        )
    return value


def _require_one_kind(name: str, values: list[FeatureValue | None], places: Sequence[str]) -> None:
    kinds = [_kind(value) for value in values]
    known = [kind for kind in kinds if kind]
    # The rarer kind is the one that is wrong; among equals, the later one.
    usual = max(dict.fromkeys(known), key=known.count, default="")
    for place, kind, value in zip(places, kinds, values, strict=True):
        if kind and kind != usual:
            raise _wrong_kind(place, name, value, usual)


def _kind(value: FeatureValue | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "True or False"
    return "texts" if isinstance(value, str) else "numbers"


def _wrong_kind(where: str, name: str, value: Any, kind: str) -> ValueError:
    return ValueError(
        f"{_prefix(where)}the feature {name!r} is {shortened(value)}, and other tasks have {kind} "
        "there; repair it, or leave it out if it is not known."
    )


def _fitted(name: str, known: list[Any]) -> Feature:
    if isinstance(known[0], (bool, str)):
        choices = tuple(sorted(set(known)))
        return CategoryFeature(name, choices, tuple(known.count(c) / len(known) for c in choices))
    numbers = [float(value) for value in known]
    low, high = min(numbers), max(numbers)
    log = low > 0.0 and math.log10(high) - math.log10(low) > DECADES
    codes = [_place(number, low, high, log) for number in numbers]
    return NumberFeature(name, low, high, log, math.fsum(codes) / len(codes))


def _place(value: float, low: float, high: float, log: bool) -> float:
    r"""The code $u$ of a number: from 0 to 1 in the range, and beyond it
    $1 + s \tanh((u - 1) / s)$."""
    if log:
        value, low, high = (math.log(v) if v > 0.0 else -math.inf for v in (value, low, high))
    # Halves, since the range of two large numbers may be too large for a float.
    place = (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low)
    inside = min(max(place, 0.0), 1.0)
    return inside + MOST_OUTSIDE * math.tanh((place - inside) / MOST_OUTSIDE)


def _feature_from_json(entry: Any) -> Feature:
    if entry["type"] == "number":
        low, high, typical = (float(entry[key]) for key in ("low", "high", "typical"))
        return NumberFeature(str(entry["name"]), low, high, bool(entry["log"]), typical)
    if entry["type"] == "category":
        shares = tuple(float(share) for share in entry["shares"])
        return CategoryFeature(str(entry["name"]), tuple(entry["choices"]), shares)
    raise ValueError(f"a feature has the type {shortened(entry['type'])}")


def _prefix(where: str) -> str:
    return f"{where}: " if where else ""
