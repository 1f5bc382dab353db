"""A race of configurations: all train side by side, and at each rung the worse half stops.

Every configuration trains once per fold. How long to train is part of the choice: each is scored
after several numbers of steps, and the best (configuration, steps) wins. One that has become worse
twice in a row has been trained for too long, and stops between the rungs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from metaprior.data import Tasks
from metaprior.learning._batch import Batch, Trainee
from metaprior.learning._budget import Budget
from metaprior.learning._exam import Exam, Fold, spread_of
from metaprior.learning._progress import Watch
from metaprior.learning._score import part, score_by_run
from metaprior.meta import entry as entry_of
from metaprior.methods import AbstractGradientMethod, AbstractSurrogate
from metaprior.words import counted


class Standing(NamedTuple):
    """One configuration after so many steps, and its score on each of the held-out runs."""

    method: AbstractGradientMethod
    steps: int
    by_run: Float[np.ndarray, " runs"]

    @property
    def score(self) -> float:
        return float(np.mean(self.by_run))


class Race(NamedTuple):
    """All standings, and the leader as it is now.

    - `places`: the size of its batches.
    - `leading`: the leader's configuration, with the number of steps it has taken.
    - `leaders`: its surrogates, stacked: trained without the first fold, without the second, and
      so on.
    - `history`: the terms of the objective in the first of these trainings, one value per step.
    """

    standings: list[Standing]
    places: int
    leading: AbstractGradientMethod
    leaders: AbstractSurrogate
    history: dict[str, Float[np.ndarray, " steps"]]


def winner(standings: Sequence[Standing]) -> Standing:
    """The best score; among equals, the shortest training."""
    return max(standings, key=lambda standing: (standing.score, -standing.steps))


def run_race(
    methods: Sequence[AbstractGradientMethod],
    tasks: Tasks,
    folds: Sequence[Fold],
    exam: Exam,
    budget: Budget,
    *,
    seed: int,
    watch: Watch,
    share: float,
    report: Callable[[float, str, float | None], None],
) -> Race:
    """Race configurations of one class and shape.

    - `share`: if time is limited, the race ends after this share of it, or once there are scores.
    - `report`: called with the fraction done, what is tried, and the best score so far.
    """
    num_folds = len(folds)
    entries = [Trainee(method, fold, 0) for method in methods for fold in range(num_folds)]
    places = max(len(entries), budget.members * (num_folds + 1))
    batch = Batch(entries, tasks, folds, places=places, seed=seed, few_steps=budget.few_steps)
    y_std = spread_of(tasks)
    going_on = np.ones(len(methods), bool)
    standings: list[Standing] = []
    latest, trend = np.zeros(len(methods)), []
    room = len(methods)
    total = sum(_cost(budget, i) for i in range(len(budget.checkpoints)))
    done = 0.0
    for i, steps in enumerate(budget.checkpoints):
        best = max((standing.score for standing in standings), default=None)
        report(
            done / total, f"{counted(int(going_on.sum()), 'configuration')}, {steps} steps", best
        )
        # Without any score there is nothing to choose by.
        until = share if standings else 1.0
        batch.train(steps, np.repeat(going_on, num_folds), watch, share=until)
        if batch.steps < steps:
            break
        answers = batch.answers(exam, np.repeat(going_on, num_folds))
        latest = np.full(len(methods), -np.inf)
        for j in np.flatnonzero(going_on).tolist():
            own = part(answers, slice(j * num_folds, (j + 1) * num_folds))
            standings.append(Standing(methods[j], steps, score_by_run(own, y_std)))
            latest[j] = standings[-1].score
        done += _cost(budget, i)
        if watch.share(share):
            break
        if steps in budget.rungs:
            room = -(-room // 2)
            going_on = survivors(latest, going_on, room)
        # Before the first rung a score says little of how a training goes on.
        if budget.rungs and steps >= budget.rungs[0]:
            trend.append(latest)
            going_on = going_on & ~has_fallen(trend)
        if not going_on.any():
            break
    leader = int(np.argmax(latest))
    leading = replace(methods[leader], num_steps=batch.steps)
    leaders = entry_of(batch.surrogates(), leader * num_folds + np.arange(num_folds))
    history = {name: terms[leader * num_folds] for name, terms in batch.history.items()}
    return Race(standings, places, leading, leaders, history)


def survivors(
    scores: Float[np.ndarray, " methods"], going_on: Bool[np.ndarray, " methods"], room: int
) -> Bool[np.ndarray, " methods"]:
    """The best `room` of those that continue, without any that diverged.

    A configuration that stopped between two rungs makes room for one that goes on.
    """
    ranked = np.argsort(np.where(going_on, -scores, np.inf), kind="stable")
    chosen = np.zeros(len(scores), bool)
    chosen[ranked[:room]] = True
    return chosen & going_on & np.isfinite(scores)


def has_fallen(scores: Sequence[Float[np.ndarray, " methods"]]) -> Bool[np.ndarray, " methods"]:
    """Whether the score of each configuration fell between the last three checkpoints, twice."""
    if len(scores) < 3:
        return np.zeros(len(scores[0]), bool)
    first, second, third = scores[-3:]
    return (first > second) & (second > third)


def _cost(budget: Budget, i: int) -> float:
    """Steps of all configurations together until checkpoint `i`, from the one before it."""
    before = budget.checkpoints[i - 1] if i else 0
    halvings = sum(rung <= before for rung in budget.rungs)
    return (budget.checkpoints[i] - before) / 2.0**halvings
