"""`learn_outputs`: one prior per named value of the same past runs."""

from typing import Any

from metaprior.belief import Priors
from metaprior.data import Outputs
from metaprior.learning._learn import learn
from metaprior.learning._progress import LearnProgress, OnLearnProgress


def learn_outputs(
    outputs: Outputs,
    *,
    budget: str | float = "normal",
    seed: int = 0,
    on_progress: OnLearnProgress | None = None,
    **settings: Any,
) -> Priors:
    """A prior for every output, each learned by `learn` with the same settings.

    - `outputs`: several values of at least two runs: `Outputs.from_runs(...)`.
    - `budget`: how much to try for each output; seconds are shared out among them.
    - `seed`, `on_progress` and the other settings: see `learn`.
    """
    if not isinstance(outputs, Outputs):
        raise TypeError(
            f"`outputs` is a {type(outputs).__name__}; make one with "
            "`Outputs.from_runs(runs, space=..., outputs={...})`, or learn from `Tasks` with "
            "`learn`."
        )
    count = len(outputs.by_name)
    if not isinstance(budget, str):
        budget = budget / count
    if "method" not in settings:
        settings = {**settings, "budget": budget}
    priors = {}
    for i, (name, tasks) in enumerate(outputs.by_name.items()):
        report = None if on_progress is None else _share(on_progress, name, i, count)
        priors[name] = learn(tasks, seed=seed, on_progress=report, **settings)
    return Priors(
        {name: priors[name] for name in outputs.objectives},
        {name: priors[name] for name in outputs.constraints},
    )


def _share(on_progress: OnLearnProgress, name: str, i: int, count: int) -> OnLearnProgress:
    """Reports of learning one of several outputs, as a part of the whole."""

    def report(progress: LearnProgress) -> None:
        stage, fraction = f"{name}: {progress.stage}", (i + progress.fraction) / count
        on_progress(progress._replace(stage=stage, fraction=fraction))

    return report
