"""`learn`: from past runs to a prior, in one call."""

import jax
import numpy as np

from metaprior._precision import float64
from metaprior._prior import Prior
from metaprior.data import Tasks
from metaprior.meta import Progress
from metaprior.methods import AbstractMethod, FPacohMap, OnProgress


@float64
def learn(
    tasks: Tasks,
    *,
    method: AbstractMethod | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Prior:
    """A prior over functions, learned from past runs.

    - `tasks`: at least two runs over one space: `Tasks.from_runs(...)`.
    - `method`: how to learn; `FPacohMap()` with its defaults, which are meant to need no tuning.
    - `seed`: the same seed on the same machine gives the same prior, bit for bit.
    - `on_progress`: called now and then with a `metaprior.meta.Progress`.
    """
    if not isinstance(tasks, Tasks):
        raise TypeError(
            f"`tasks` is a {type(tasks).__name__}; make one with "
            "`Tasks.from_runs(runs, space=...)`."
        )
    tasks.require_several()
    method = FPacohMap() if method is None else method
    reports: list[Progress] = []

    def record(progress: Progress) -> None:
        reports.append(progress)
        if on_progress is not None:
            on_progress(progress)

    surrogate = method.meta_train(tasks, key=jax.random.key(seed), on_progress=record)
    names = reports[0].terms if reports else {}
    history = {name: np.concatenate([r.terms[name] for r in reports]) for name in names}
    described = {
        "tasks": tasks.num_tasks,
        "observations": int(tasks.lengths.sum()),
        "shortest run": int(tasks.lengths.min()),
        "longest run": int(tasks.lengths.max()),
        "seed": int(seed),
    }
    return Prior(tasks.space, tasks.direction, method, surrogate, history, described)
