"""The whole choice: race, confirm the winner with several seeds, train it on all runs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from metaprior.data import TaskFeatures, Tasks
from metaprior.gp import float64
from metaprior.learning._asked import asked_predictors
from metaprior.learning._batch import Batch, Trainee
from metaprior.learning._budget import Budget
from metaprior.learning._exam import Exam, spread_of
from metaprior.learning._predict import AbstractPredictors
from metaprior.learning._progress import LearnProgress, OnLearnProgress, Watch
from metaprior.learning._race import Race, winner
from metaprior.learning._rounds import NO_FEATURES, Past, best_round
from metaprior.learning._score import mixed, part, score_by_run
from metaprior.meta import entry as entry_of
from metaprior.methods import AbstractGradientMethod, AbstractSurrogate

# Fractions of the whole after which each stage ends, for progress reports.
RACE, CONFIRM = 0.7, 0.9
COMPILING = "compiling, and choosing a configuration"


class Selection(NamedTuple):
    """What was chosen, and what is known of it from runs that were held out.

    - `method`, `members`: the configuration, with its number of steps, and how many seeds of it.
    - `learned`: the members, trained on all runs, stacked; if there was no time for that, one
      member that has not seen one of the folds.
    - `history`: the terms of the objective in the trainings of `learned`, one value per step.
    - `judged`: what users would ask if the members had learned without the first fold, without the
      second, and so on; `None` if there was no time.
    - `exam`: the held-out runs.
    - `order`: the index of each of the exam's tasks among the user's.
    - `tried`: the number of configurations that raced.
    - `features`: those of the tasks; the members see the columns of the used ones.
    - `confirmed`: whether the members were trained after the race, from other seeds and on all
      runs.
    """

    method: AbstractGradientMethod
    members: int
    learned: AbstractSurrogate
    history: dict[str, Float[np.ndarray, "members steps"]]
    judged: AbstractPredictors | None
    exam: Exam
    order: Int[np.ndarray, " n"]
    tried: int
    interrupted: bool
    features: TaskFeatures = NO_FEATURES
    confirmed: bool = True


@float64
def select(
    tasks: Tasks,
    lanes: Sequence[Sequence[AbstractGradientMethod]],
    budget: Budget,
    *,
    seed: int,
    watch: Watch,
    on_progress: OnLearnProgress | None = None,
    features: TaskFeatures = NO_FEATURES,
    private: bool = False,
) -> Selection:
    """Choose a configuration on held-out runs of `tasks`, and train it on all of them.

    - `lanes`: the configurations; those of one lane are of one class and shape and race each other
      with the whole budget, and the best of all lanes wins.
    - `features`: of the tasks; the used ones join the race one after another.
    - `private`: whether what users ask may hold no point of a past run.
    """

    def report(stage: str, fraction: float, trying: str, best: float | None) -> None:
        if on_progress is not None:
            on_progress(LearnProgress(stage, fraction, trying, best))

    def report_race(fraction: float, begins: bool, trying: str, best: float | None) -> None:
        # The first steps of a lane wait for the compiler.
        stage = COMPILING if begins else "choosing a configuration"
        report(stage, RACE * fraction, trying, best)

    best = best_round(tasks, features, lanes, budget, seed=seed, watch=watch, report=report_race)
    past, races, standings, tried = best.past, best.races, best.standings, best.tried
    if watch.interrupted or not standings:
        return _unfinished(races, past, tried, watch, private)
    first = winner(standings)
    if not np.isfinite(first.score):
        raise FloatingPointError(
            "Every configuration diverged; check the past runs for extreme values."
        )
    places = max(race.places for race in races if any(each is first for each in race.standings))
    method = replace(first.method, num_steps=first.steps)
    report("confirming the best with other seeds", RACE, method.summary(), first.score)
    batch = _confirm(method, past, budget, places, watch)
    # Members that have not trained as long as the winner are worse than the leader of the race.
    if batch.steps < first.steps and (watch.interrupted or batch.steps == 0):
        return _unfinished(races, past, tried, watch, private)
    report("judging it on held-out runs", CONFIRM, method.summary(), first.score)
    return _judged(batch, past, budget.members, tried, watch, private)


def _confirm(
    method: AbstractGradientMethod, past: Past, budget: Budget, places: int, watch: Watch
) -> Batch:
    """The winner trained from other seeds, without each fold and on all runs."""
    folds, seeds = [*range(len(past.folds)), None], range(1, budget.members + 1)
    entries = [Trainee(method, fold, member) for fold in folds for member in seeds]
    batch = Batch(
        entries,
        past.tasks,
        past.folds,
        places=places,
        seed=past.seed,
        few_steps=budget.few_steps,
    )
    batch.train(method.num_steps, np.ones(len(entries), bool), watch)
    return batch


def _judged(
    batch: Batch, past: Past, num_seeds: int, tried: int, watch: Watch, private: bool
) -> Selection:
    """One member or all of them, whichever predicts held-out runs better."""
    num_folds = len(past.folds)
    held_out = np.array([entry.fold is not None for entry in batch.entries])
    answers = batch.answers(past.exam, held_out)
    # The entries of a member are `num_seeds` apart, fold after fold.
    by_member = [part(answers, np.arange(num_folds) * num_seeds + i) for i in range(num_seeds)]
    together, y_std = mixed(by_member), spread_of(past.tasks)
    members = 1
    apart = [np.mean(score_by_run(each, y_std)) for each in by_member]
    if np.mean(score_by_run(together, y_std)) > np.mean(apart):
        members = num_seeds
    surrogates = batch.surrogates()
    method = replace(batch.entries[0].method, num_steps=batch.steps)
    rows = np.arange(len(batch.entries)).reshape(num_folds + 1, num_seeds)[:, :members]
    without_folds = entry_of(surrogates, rows[:-1].ravel())
    return Selection(
        method,
        members,
        entry_of(surrogates, rows[-1]),
        {name: terms[rows[-1]] for name, terms in batch.history.items()},
        asked_predictors(method, without_folds, members, past.tasks, past.folds, private=private),
        past.exam,
        past.order,
        tried,
        watch.interrupted,
        past.features,
    )


def _unfinished(
    races: list[Race], past: Past, tried: int, watch: Watch, private: bool
) -> Selection:
    """The best so far, as it is: it has not seen one of the folds.

    It is judged if it has been scored, which takes no more training, and if the user is not waiting
    for the end.
    """
    known = [race for race in races if race.standings]
    race = max(known, key=_best_score) if known else races[0]
    judged = None
    if known and not watch.interrupted:
        judged = asked_predictors(
            race.leading, race.leaders, 1, past.tasks, past.folds, private=private
        )
    return Selection(
        race.leading,
        1,
        entry_of(race.leaders, np.array([0])),
        {name: terms[None] for name, terms in race.history.items()},
        judged,
        past.exam,
        past.order,
        tried,
        watch.interrupted,
        past.features,
        confirmed=False,
    )


def _best_score(race: Race) -> float:
    return max(standing.score for standing in race.standings)
