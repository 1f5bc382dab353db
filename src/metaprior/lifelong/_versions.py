"""Versions of a prior: learning the next one, and the record of each."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from metaprior.belief import Prior
from metaprior.data import Space, Tasks
from metaprior.learning import (
    NOTHING_MEASURED,
    OnLearnProgress,
    budget_named,
    held_out_log_likelihood,
    learn,
    spread_of,
)
from metaprior.lifelong._judgement import in_units, judge
from metaprior.methods import SelfStandardisedGP

# With one run there is nothing to transfer.
FEWEST_RUNS = 2


@dataclass(frozen=True)
class Version:
    """The record of one version of a prior.

    - `runs`: names of the runs it was learned from, in the order of its tasks.
    - `score`: held-out log-likelihood, mean over runs; `by_run`: of each run that was held out.
    - `spread`: the unit of the values in both.
    - `kept`, `reason`: whether it replaced the version before it, and why.
    - `made`: when, as text.
    """

    number: int
    runs: list[str]
    score: float | None
    by_run: dict[str, float]
    spread: float
    kept: bool
    reason: str
    made: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Version":
        """The version that `to_json` wrote."""
        try:
            return cls(**data)
        except TypeError as error:
            raise ValueError(f"A version is described by {data!r} ({error}).") from None


def untrained_prior(space: Space, direction: str) -> Prior:
    """The prior of the first run: a non-transfer Gaussian process in units of each run.

    Its hyper-parameters are fixed: on a few tasks each of Camelback, Branin and Hartmann6 this gave
    a lower regret after 20 queries than fitting them to the run.
    """
    method = SelfStandardisedGP()
    return Prior(space, direction, method, method.blank_surrogate(space.num_columns))


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
    if unseen and prior is not None and prior.space == tasks.space:
        found = held_out_log_likelihood(prior.surrogate, tasks.subset(unseen), spread=spread)
        finite = zip(unseen, found, strict=True)
        scores |= {names[i]: float(value) for i, value in finite if np.isfinite(value)}
    return scores
