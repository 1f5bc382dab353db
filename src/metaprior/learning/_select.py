"""The whole choice: race, confirm the winner with several seeds, train it on all runs."""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from metaprior._precision import float64
from metaprior.data import Tasks
from metaprior.learning._batch import Batch, Entry
from metaprior.learning._budget import Budget
from metaprior.learning._candidates import candidates
from metaprior.learning._exam import Answers, Exam, exam_of, folds_of, shuffled, spread_of
from metaprior.learning._progress import LearnProgress, OnLearnProgress, Watch
from metaprior.learning._race import Race, Standing, run_race, winner
from metaprior.learning._score import mixed, part, score_by_run
from metaprior.meta._batch import entry as entry_of
from metaprior.methods import AbstractSurrogate, FPacohMap

RACE, CONFIRM = 0.7, 0.9


class Selection(NamedTuple):
    """What was chosen, and what is known of it from runs that were held out.

    - `method`, `members`: the configuration, its steps among it, and how many seeds of it.
    - `learned`: the members, trained on all runs, stacked.
    - `judged`: for each fold, the members trained without it, stacked; `None` if there was no time.
    - `exam`, `answers`: the held-out runs, and what the judged members predicted for them together.
    - `order`: which task each of the exam's was.
    """

    method: FPacohMap
    members: int
    learned: AbstractSurrogate
    judged: AbstractSurrogate | None
    exam: Exam
    answers: Answers | None
    order: Int[np.ndarray, " n"]
    standings: list[Standing]
    interrupted: bool


@float64
def select(
    tasks: Tasks,
    budget: Budget,
    *,
    seed: int,
    watch: Watch,
    on_progress: OnLearnProgress | None = None,
) -> Selection:
    """Choose a configuration on held-out runs of `tasks`, and train it on all of them."""

    def report(stage: str, fraction: float, trying: str, best: float | None) -> None:
        if on_progress is not None:
            on_progress(LearnProgress(stage, fraction, trying, best))

    tasks, order = shuffled(tasks, np.random.default_rng(seed))
    folds = folds_of(tasks.num_tasks, budget.folds)
    exam = exam_of(tasks, folds)
    races: list[Race] = []
    for lane, feature_dim in enumerate(budget.feature_dims):

        def report_race(fraction: float, trying: str, best: float | None, lane=lane) -> None:
            share = (lane + fraction) / len(budget.feature_dims)
            report("choosing a configuration", RACE * share, trying, best)

        methods = candidates(
            -(-budget.candidates // len(budget.feature_dims)),
            tasks.num_tasks,
            feature_dim,
            seed=seed,
        )
        race = run_race(
            methods, tasks, folds, exam, budget, seed=seed, watch=watch, report=report_race
        )
        races.append(race)
        if watch.interrupted:
            break
    standings = [standing for race in races for standing in race.standings]
    if watch.interrupted or not standings:
        return _interrupted(races, exam, order)
    first = winner(standings)
    if not np.isfinite(first.score):
        raise FloatingPointError(
            "Every configuration diverged; check the past runs for extreme values."
        )
    places = max(race.places for race in races if any(each is first for each in race.standings))
    report("confirming the best with other seeds", RACE, _words(first), first.score)
    method = replace(first.method, num_steps=first.steps)
    seeds, num_folds = range(1, budget.members + 1), len(folds)
    judged = [Entry(method, fold, s) for fold in range(num_folds) for s in seeds]
    final = [Entry(method, None, s) for s in seeds]
    batch = Batch([*judged, *final], tasks, folds, places=places, seed=seed)
    everyone = np.ones(len(batch.entries), bool)
    batch.train(first.steps, everyone, watch)
    # Members that are not yet what won are worse than the leader of the race as it is.
    if batch.steps < first.steps and (watch.interrupted or batch.steps == 0):
        return _interrupted(races, exam, order)
    report("judging it on held-out runs", CONFIRM, _words(first), first.score)
    method = replace(method, num_steps=batch.steps)
    answers = batch.answers(exam, np.arange(len(everyone)) < len(judged))
    y_std = spread_of(tasks)
    by_member = [part(answers, np.arange(num_folds) * len(seeds) + i) for i in range(len(seeds))]
    together = mixed(by_member)
    members, chosen = 1, by_member[0]
    apart = [np.mean(score_by_run(each, y_std)) for each in by_member]
    if np.mean(score_by_run(together, y_std)) > np.mean(apart):
        members, chosen = len(seeds), together
    surrogates = batch.surrogates()

    def some(indices) -> AbstractSurrogate:
        return entry_of(surrogates, np.asarray(indices))

    return Selection(
        method,
        members,
        some(len(judged) + np.arange(members)),
        some([[fold * len(seeds) + i for i in range(members)] for fold in range(num_folds)]),
        exam,
        chosen,
        order,
        standings,
        watch.interrupted,
    )


def _interrupted(races: list[Race], exam: Exam, order) -> Selection:
    """The best so far, as it is: it has not seen one of the folds."""
    known = [race for race in races if race.standings]
    race = max(known, key=_best_score) if known else races[0]
    standings = [standing for race in races for standing in race.standings]
    learned = jax.tree.map(lambda leaf: leaf[None] if hasattr(leaf, "shape") else leaf, race.leader)
    return Selection(race.leading, 1, learned, None, exam, None, order, standings, True)


def _words(standing: Standing) -> str:
    method = standing.method
    effects = [name for name in ("offset", "amplitude") if getattr(method, name)]
    extras = f", {' and '.join(effects)} of tasks" if effects else ""
    return f"kappa {method.kappa:.2g}, {standing.steps} steps{extras}"


def _best_score(race: Race) -> float:
    return max(standing.score for standing in race.standings)
