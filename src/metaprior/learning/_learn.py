"""`learn`: from past runs to a prior, in one call."""

from typing import Any, overload

import jax
import numpy as np

from metaprior.belief import Prior
from metaprior.data import Tasks
from metaprior.gp import float64
from metaprior.learning._budget import Budget, budget_named
from metaprior.learning._measure import findings_of
from metaprior.learning._progress import OnLearnProgress, Watch, listening
from metaprior.learning._select import Selection, select
from metaprior.meta import Progress, entry
from metaprior.methods import (
    AbstractMethod,
    AbstractSurrogate,
    Ensemble,
    EnsembleSurrogate,
    Guarded,
    OnProgress,
)


@overload
def learn(
    tasks: Tasks,
    *,
    method: None = None,
    budget: str | float = "normal",
    seed: int = 0,
    on_progress: OnLearnProgress | None = None,
) -> Prior: ...
@overload
def learn(
    tasks: Tasks,
    *,
    method: AbstractMethod,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Prior: ...
@float64
def learn(
    tasks: Tasks,
    *,
    method: AbstractMethod | None = None,
    budget: str | float = "normal",
    seed: int = 0,
    on_progress: Any = None,
) -> Prior:
    """A prior over functions, learned from past runs.

    Without a `method`, configurations race on held-out runs, the best is trained on all of them,
    and a guard watches whether a new task is like the past ones; `prior.findings` says what was
    measured. Ctrl-C ends the race with the best so far.

    - `tasks`: at least two runs over one space: `Tasks.from_runs(...)`.
    - `method`: learn by exactly this method instead; nothing is chosen, held out or guarded.
    - `budget`: how much to try: `"fast"`, `"normal"`, `"thorough"`, or a number of seconds.
    - `seed`: the same seed on the same machine gives the same prior, bit for bit, unless the budget
      is in seconds.
    - `on_progress`: called now and then with a `metaprior.LearnProgress`, or, if there is a
      `method`, with a `metaprior.meta.Progress`.
    """
    if not isinstance(tasks, Tasks):
        raise TypeError(
            f"`tasks` is a {type(tasks).__name__}; make one with "
            "`Tasks.from_runs(runs, space=...)`."
        )
    tasks.require_several()
    if method is not None:
        return _learn_by(method, tasks, seed, on_progress)
    return _learn_by_choice(tasks, budget_named(budget), seed, on_progress)


def _learn_by(method: AbstractMethod, tasks: Tasks, seed: int, on_progress: Any) -> Prior:
    reports: list[Progress] = []

    def record(progress: Progress) -> None:
        reports.append(progress)
        if on_progress is not None:
            on_progress(progress)

    surrogate = method.meta_train(tasks, key=jax.random.key(seed), on_progress=record)
    names = reports[0].terms if reports else {}
    history = {name: np.concatenate([r.terms[name] for r in reports], axis=-1) for name in names}
    return Prior(tasks.space, tasks.direction, method, surrogate, history, _trained_on(tasks, seed))


def _learn_by_choice(tasks: Tasks, budget: Budget, seed: int, on_progress: Any) -> Prior:
    watch = Watch(budget.seconds)
    with listening(watch):
        selection = select(tasks, budget, seed=seed, watch=watch, on_progress=on_progress)
        findings = findings_of(tasks, selection, budget, watch)
    method, surrogate = _guarded(tasks, selection)
    return Prior(
        tasks.space, tasks.direction, method, surrogate, {}, _trained_on(tasks, seed), findings
    )


def _guarded(tasks: Tasks, selection: Selection) -> tuple[Guarded, AbstractSurrogate]:
    """The chosen members behind a guard, as a method that rebuilds them from their arrays."""
    if selection.members == 1:
        base, learned = selection.method, entry(selection.learned, 0)
    else:
        base = Ensemble(selection.method, selection.members)
        learned = EnsembleSurrogate(selection.learned)
    method = Guarded(base)
    return method, method.guard(learned, tasks)


def _trained_on(tasks: Tasks, seed: int) -> dict[str, Any]:
    return {
        "tasks": tasks.num_tasks,
        "observations": int(tasks.lengths.sum()),
        "shortest run": int(tasks.lengths.min()),
        "longest run": int(tasks.lengths.max()),
        "seed": int(seed),
    }
