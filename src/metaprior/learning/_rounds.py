r"""Rounds of the race: one without features of tasks, and one more for each feature.

Features join one after another, the one that past runs depend on most first. In its round all
configurations race again, seeing the columns of the features that have joined and of this one. It
stays if the best configuration of the round is better than the best so far: with $d_i$ the
difference of their scores on held-out run $i$, if

$$ \bar d > s / \sqrt n, $$

$s$ being the standard deviation of the $n$ differences. A feature that means nothing would do harm:
a network finds a pattern in it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from metaprior.data import TaskFeatures, Tasks
from metaprior.learning._budget import Budget
from metaprior.learning._exam import Exam, Fold, exam_of, folds_of, shuffled
from metaprior.learning._progress import Watch
from metaprior.learning._race import Race, Standing, run_race, winner
from metaprior.methods import AbstractGradientMethod

# The share of the time for training that the races may take together, if time is limited.
RACE_SHARE = 0.55
NO_FEATURES = TaskFeatures()
# Why features of tasks are not used.
NO_GAIN = "with it, held-out runs are predicted no better than without"
UNTRIED = "there was no time to try it"

# Called with the fraction done of all rounds, whether a lane begins, what is tried, and the best
# score so far.
Report = Callable[[float, bool, str, float | None], None]
Lanes = Sequence[Sequence[AbstractGradientMethod]]


class Past(NamedTuple):
    """Past runs in random order, cut into folds, and the exam on them.

    - `features`: of the tasks; points have the columns of the used ones.
    """

    tasks: Tasks
    folds: list[Fold]
    exam: Exam
    order: Int[np.ndarray, " n"]
    seed: int
    features: TaskFeatures = NO_FEATURES


class Round(NamedTuple):
    """One race for each lane, on the past runs as it saw them.

    - `tried`: the number of configurations that raced, in all rounds.
    """

    past: Past
    races: list[Race]
    tried: int = 0

    @property
    def standings(self) -> list[Standing]:
        return [standing for race in self.races for standing in race.standings]


def best_round(
    tasks: Tasks,
    features: TaskFeatures,
    lanes: Lanes,
    budget: Budget,
    *,
    seed: int,
    watch: Watch,
    report: Report,
) -> Round:
    """The round of those features that stayed, which `past.features` uses.

    - `features`: of the tasks, the used ones in the order in which they join.
    """
    _, order = shuffled(tasks, np.random.default_rng(seed))
    total = 1 + len(features.used)

    def race(number: int, left_out: dict[str, str]) -> Round:
        known = features.without(left_out)
        seen = tasks.with_feature_columns(known) if known.used else tasks
        past = _past(seen.subset(order), known, budget, order, seed)
        return _race_lanes(past, lanes, budget, number, total, watch, report)

    # Why each feature is left out, as far as is known.
    reasons = {feature.name: UNTRIED for feature in features.used}
    best = race(0, reasons)
    tried = _tried(best, lanes)
    for number, feature in enumerate(features.used, start=1):
        if watch.share(RACE_SHARE) or not best.standings:
            break
        with_it = {name: why for name, why in reasons.items() if name != feature.name}
        found = race(number, with_it)
        tried += _tried(found, lanes)
        if watch.interrupted or not found.standings:
            break
        if is_better(winner(found.standings), winner(best.standings)):
            best, reasons = found, with_it
        else:
            reasons[feature.name] = NO_GAIN
    past = best.past._replace(features=features.without(reasons))
    return Round(past, best.races, tried)


def is_better(one: Standing, other: Standing) -> bool:
    """Whether the mean difference of the scores on held-out runs exceeds its standard error."""
    if not (np.isfinite(one.score) and np.isfinite(other.score)):
        return bool(np.isfinite(one.score))
    differences = one.by_run - other.by_run
    if len(differences) < 2:
        return False
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    return bool(np.mean(differences) > error)


def _race_lanes(
    past: Past,
    lanes: Lanes,
    budget: Budget,
    number: int,
    total: int,
    watch: Watch,
    report: Report,
) -> Round:
    """All lanes, as round `number` of `total`."""
    races: list[Race] = []
    for lane, methods in enumerate(lanes):
        done, of = number * len(lanes) + lane, total * len(lanes)

        def report_race(fraction: float, trying: str, best: float | None, done=done, of=of) -> None:
            report((done + fraction) / of, fraction == 0.0, trying, best)

        races.append(
            run_race(
                methods,
                past.tasks,
                past.folds,
                past.exam,
                budget,
                seed=past.seed,
                watch=watch,
                share=RACE_SHARE * (done + 1) / of,
                report=report_race,
            )
        )
        # The next lane waits for the compiler, and that cannot be cut short.
        if watch.share(RACE_SHARE):
            break
    return Round(past, races)


def _tried(found: Round, lanes: Lanes) -> int:
    return sum(len(lane) for lane in lanes[: len(found.races)])


def _past(
    tasks: Tasks, features: TaskFeatures, budget: Budget, order: Int[np.ndarray, " n"], seed: int
) -> Past:
    folds = folds_of(tasks.num_tasks, budget.folds)
    return Past(tasks, folds, exam_of(tasks, folds), order, seed, features)
