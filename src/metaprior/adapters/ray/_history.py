"""`read_history`: from folders of Ray Tune to tasks, with a line on every experiment."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack

from metaprior.adapters.histories import (
    History,
    LoggedOptions,
    LoggedRun,
    Sources,
    history_of_logged,
    paths_of,
    titles_of,
)
from metaprior.adapters.ray._folder import OWN, RayTrial, is_experiment, trials_in
from metaprior.data import Tasks

LAST, BEST = "last", "best"
_FAULTS = {"ERROR": "failed", "RUNNING": "running", "PENDING": "waiting", "PAUSED": "paused"}
_ITERATION = "training_iteration"


def load_tasks(folders: Sources, *, report: str = LAST, **options: Unpack[LoggedOptions]) -> Tasks:
    """Experiments of Ray Tune as tasks; the arguments are those of `read_history`."""
    return read_history(folders, report=report, **options).tasks


def read_history(
    folders: Sources, *, report: str = LAST, **options: Unpack[LoggedOptions]
) -> History:
    """Experiments of Ray Tune as tasks, and what was used, skipped and decided.

    One experiment is one study, unless `task` names a parameter that says which trials belong
    together. Nested parameters and metrics have names such as `net/width`.

    - `folders`: of experiments, or a folder that holds such, usually `~/ray_results`.
    - `report`: which report of a trial counts: the `"last"` one, for trials that ran as long as the
      longest of their experiment, since what a scheduler stopped early is not comparable; or the
      `"best"` one, for all of them.
    - `options`: see `LoggedOptions`; `direction` is the `mode` of Ray, and is needed.
    """
    if report not in (LAST, BEST):
        raise ValueError(f"Unknown report {report!r}; give 'last' or 'best'.")
    paths = paths_of(folders, is_one=is_experiment, inside="*", called="a Ray Tune experiment")
    best: Callable[[Iterable[float]], float] = (
        min if options.get("direction") == "minimize" else max
    )
    found = {
        title: _logged(trials_in(path), best if report == BEST else None)
        for title, path in titles_of(paths).items()
    }
    where = str(paths[0]) if len(paths) == 1 else f"{len(paths)} folders"
    return history_of_logged(found, where, **options)


def _logged(
    trials: list[RayTrial], best: Callable[[Iterable[float]], float] | None
) -> list[LoggedRun]:
    longest = max((_length(trial) for trial in trials), default=0)
    return [
        LoggedRun(trial.params, _metrics(trial, best), {}, _fault(trial, longest, best is None))
        for trial in trials
    ]


def _fault(trial: RayTrial, longest: int, comparable: bool) -> str:
    fault = _FAULTS.get(trial.status, "")
    return fault or ("stopped early" if comparable and 0 < _length(trial) < longest else "")


def _length(trial: RayTrial) -> int:
    """How many iterations a trial ran."""
    try:
        return int(trial.reports[-1][_ITERATION]) if trial.reports else 0
    except (LookupError, TypeError, ValueError):
        return len(trial.reports)


def _metrics(trial: RayTrial, best: Callable[[Iterable[float]], float] | None) -> dict[str, Any]:
    """The last report of each metric, or the best."""
    last = {
        name: value
        for report in trial.reports[-1:]
        for name, value in report.items()
        if name not in OWN
    }
    if best is None:
        return last
    seen = {name: _finite([r.get(name) for r in trial.reports]) for name in last}
    return {name: best(seen[name]) if seen[name] else value for name, value in last.items()}


def _finite(values: Sequence[Any]) -> list[float]:
    found = []
    for value in values:
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if math.isfinite(number):
            found.append(number)
    return found
