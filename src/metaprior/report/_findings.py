"""What was measured while a prior was learned, read from the plain JSON in which it is kept.

Every part may be absent: an older prior, or one learned by a fixed method, has fewer or none. What
is there must have its form; a number that is not finite counts as absent.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from metaprior.words import shortened

NOT_MEASURED = (
    "This prior was learned with a fixed method and nothing was held out: how well it does on new "
    "tasks was not measured."
)
NO_VERDICT = "What was measured on held-out runs is below; no verdict was recorded."
INTERRUPTED = "Learning was interrupted: this is the best prior that had been found until then."

Item = TypeVar("Item")


class Predictions(NamedTuple):
    """How well one model predicted runs that it had not learned from; `None`: not measured."""

    coverage: Float[np.ndarray, " levels"] | None
    calibration_error: float | None
    log_likelihood: float | None
    log_likelihood_by_context: Float[np.ndarray, " contexts"] | None
    error_by_context: Float[np.ndarray, " contexts"] | None


class HeldOut(NamedTuple):
    """The learned prior and a vanilla GP on the same held-out points."""

    num_folds: int | None
    num_tasks: int | None
    contexts: Float[np.ndarray, " contexts"]
    levels: Float[np.ndarray, " levels"]
    learned: Predictions
    vanilla: Predictions


class Replay(NamedTuple):
    """Regret of the best value so far when held-out runs are made again from their own points."""

    steps: Float[np.ndarray, " steps"]
    learned: Float[np.ndarray, " steps"] | None
    vanilla: Float[np.ndarray, " steps"] | None
    recorded: Float[np.ndarray, " steps"] | None
    saved_evaluations: float | None
    saved_interval: tuple[float, float] | None


class PastTask(NamedTuple):
    """One past run, and how well it was predicted from the others."""

    name: str
    num_points: int | None
    log_likelihood: float | None
    vanilla_log_likelihood: float | None
    is_outlier: bool


class Example(NamedTuple):
    """A held-out run in the user's units, in the order in which it was made."""

    points: list[dict[str, Any]]
    values: Float[np.ndarray, " m"]


class Findings(NamedTuple):
    """All that was measured; empty or `None` where nothing was."""

    verdict: str
    held_out: HeldOut | None = None
    replay: Replay | None = None
    tasks: tuple[PastTask, ...] = ()
    examples: tuple[Example, ...] = ()
    settings: Mapping[str, Any] = MappingProxyType({})
    num_steps: int | None = None
    num_members: int | None = None
    num_tried: int | None = None
    seconds: float | None = None
    budget: str | None = None
    notes: tuple[str, ...] = ()


def read_findings(found: Mapping[str, Any]) -> Findings:
    """The findings of a prior, checked; an empty mapping says that nothing was measured."""
    if not found:
        return Findings(verdict=NOT_MEASURED)
    chosen = _mapping(found.get("chosen"), "chosen")
    budget = found.get("budget")
    notes = [str(note) for note in _items(found.get("notes"), "notes")]
    return Findings(
        verdict=str(found.get("verdict") or NO_VERDICT),
        held_out=_optional(found, "held_out", _held_out),
        replay=_optional(found, "replay", _replay),
        tasks=tuple(map(_past_task, _items(found.get("tasks"), "tasks"))),
        examples=tuple(map(_example, _items(found.get("examples"), "examples"))),
        settings=_mapping(chosen.get("settings"), "chosen.settings"),
        num_steps=_count(chosen, "steps", "chosen"),
        num_members=_count(chosen, "members", "chosen"),
        num_tried=_count(found, "tried"),
        seconds=_number(found.get("seconds"), "seconds"),
        budget=None if budget is None else str(budget),
        notes=(*([INTERRUPTED] if found.get("interrupted") else []), *notes),
    )


def _held_out(found: Mapping[str, Any]) -> HeldOut:
    contexts = _curve(found.get("contexts"), "held_out.contexts")
    levels = _curve(found.get("levels"), "held_out.levels")
    contexts, levels = _or_empty(contexts), _or_empty(levels)

    def predictions(name: str) -> Predictions:
        where = f"held_out.{name}"
        of_model = _mapping(found.get(name), where)

        def number(key: str) -> float | None:
            return _number(of_model.get(key), f"{where}.{key}")

        def curve(key: str, count: int) -> Float[np.ndarray, " count"] | None:
            return _curve(of_model.get(key), f"{where}.{key}", count)

        return Predictions(
            curve("coverage", len(levels)),
            number("calibration_error"),
            number("log_likelihood"),
            curve("log_likelihood_by_context", len(contexts)),
            curve("error_by_context", len(contexts)),
        )

    return HeldOut(
        _count(found, "folds", "held_out"),
        _count(found, "tasks", "held_out"),
        contexts,
        levels,
        predictions("learned"),
        predictions("vanilla"),
    )


def _replay(found: Mapping[str, Any]) -> Replay:
    steps = _or_empty(_curve(found.get("steps"), "replay.steps"))
    interval = _curve(found.get("saved_interval"), "replay.saved_interval", 2)
    if interval is not None and not np.isfinite(interval).all():
        interval = None
    return Replay(
        steps,
        *(
            _curve(found.get(name), f"replay.{name}", len(steps))
            for name in ("learned", "vanilla", "recorded")
        ),
        saved_evaluations=_number(found.get("saved_evaluations"), "replay.saved_evaluations"),
        saved_interval=None if interval is None else (float(interval[0]), float(interval[1])),
    )


def _past_task(found: Any) -> PastTask:
    found = _mapping(found, "tasks")
    return PastTask(
        str(found.get("task", "?")),
        _count(found, "points", "tasks"),
        _number(found.get("log_likelihood"), "tasks.log_likelihood"),
        _number(found.get("vanilla_log_likelihood"), "tasks.vanilla_log_likelihood"),
        bool(found.get("outlier", False)),
    )


def _example(found: Any) -> Example:
    found = _mapping(found, "examples")
    points = [
        _mapping(point, "examples.points")
        for point in _items(found.get("points"), "examples.points")
    ]
    values = _or_empty(_curve(found.get("values"), "examples.values", len(points)))
    return Example(points, values)


def _optional(
    found: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any]], Item]
) -> Item | None:
    return read(_mapping(found[name], name)) if found.get(name) else None


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping | None):
        raise _damaged(where, value, "named values")
    return dict(value or {})


def _items(value: Any, where: str) -> list[Any]:
    if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
        raise _damaged(where, value, "a list")
    return list(value or ())


def _number(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _damaged(where, value, "a number")
    return float(value) if math.isfinite(value) else None


def _count(found: Mapping[str, Any], name: str, within: str = "") -> int | None:
    number = _number(found.get(name), f"{within}.{name}" if within else name)
    return None if number is None else round(number)


def _curve(values: Any, where: str, count: int | None = None) -> Float[np.ndarray, " count"] | None:
    """A list of numbers, as many as `count` if it is given; holes are not-a-number."""
    if values is None:
        return None
    numbers = [_number(value, where) for value in _items(values, where)]
    if count is not None and len(numbers) != count:
        raise _damaged(where, values, f"a list of {count} numbers")
    return np.array([math.nan if number is None else number for number in numbers], float)


def _or_empty(curve: Float[np.ndarray, " count"] | None) -> Float[np.ndarray, " count"]:
    return np.zeros(0) if curve is None else curve


def _damaged(where: str, value: Any, expected: str) -> ValueError:
    return ValueError(
        f"The findings of the prior are damaged: {where!r} is {shortened(value)} where {expected} "
        "should be; restore prior.json from a copy or learn the prior again."
    )
