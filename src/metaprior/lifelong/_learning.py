"""Learning the next version of a prior: imported when something is learned, as it needs JAX."""

from collections.abc import Sequence

import numpy as np

from metaprior.belief import Prior
from metaprior.data import Tasks
from metaprior.findings import NOTHING_MEASURED
from metaprior.learning import (
    OnLearnProgress,
    budget_named,
    held_out_log_likelihood,
    learn,
    spread_of,
)
from metaprior.lifelong._judgement import in_units, judge
from metaprior.lifelong._versions import Version


def learn_version(
    number: int,
    tasks: Tasks,
    names: Sequence[str],
    *,
    before: tuple[Version, Prior | None] | None,
    budget: str | float,
    seed: int,
    on_progress: OnLearnProgress | None = None,
) -> tuple[Version, Prior]:
    """Learn from the runs called `names`, and judge the result on held-out runs.

    An interrupted or unjudged prior is not a version, so these runs are learned from again: Ctrl-C
    raises KeyboardInterrupt, and too small a budget raises ValueError.

    - `before`: the version in use, if there is one; without its prior, it is not compared on runs
      that it has not learned from.
    """
    prior = learn(tasks, budget=budget, seed=seed, on_progress=on_progress)
    findings = prior.findings or NOTHING_MEASURED
    if findings.interrupted:
        raise KeyboardInterrupt("learning was interrupted")
    spread = spread_of(tasks)
    by_run = {
        str(names[past.task]): past.log_likelihood
        for past in findings.tasks
        if past.log_likelihood is not None
    }
    if not by_run:
        raise ValueError(
            f"The budget ({budget_named(budget).name}) was too small to judge the prior on "
            "held-out runs, so there is no new version; give a larger one."
        )
    old = None if before is None else _old_scores(*before, tasks, names, spread)
    judgement = judge(by_run, old)
    score = float(np.mean(list(by_run.values())))
    version = Version(number, list(names), score, by_run, spread, *judgement)
    return version, prior


def _old_scores(
    version: Version, prior: Prior | None, tasks: Tasks, names: Sequence[str], spread: float
) -> dict[str, float]:
    """Held-out log-likelihoods of the version in use, in the units of the new one.

    Runs that it learned from were held out at the time; the others it has never seen. A prior for
    another space cannot predict those.
    """
    scores = in_units(version.by_run, version.spread, spread)
    unseen = [i for i, name in enumerate(names) if name not in version.runs]
    if unseen and prior is not None and prior.space.matches(tasks.space):
        found = held_out_log_likelihood(prior, tasks.subset(unseen), spread=spread)
        finite = zip(unseen, found, strict=True)
        scores |= {names[i]: float(value) for i, value in finite if np.isfinite(value)}
    return scores
