"""The whole choice: race, confirm the winner with several seeds, train it on all runs."""

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from metaprior.data import Tasks
from metaprior.gp import float64
from metaprior.learning._batch import Batch, Entry
from metaprior.learning._budget import Budget
from metaprior.learning._candidates import candidates
from metaprior.learning._exam import (
    Answers,
    Exam,
    Fold,
    exam_of,
    folds_of,
    shuffled,
    spread_of,
)
from metaprior.learning._progress import LearnProgress, OnLearnProgress, Watch
from metaprior.learning._race import Race, Standing, run_race, winner
from metaprior.learning._score import mixed, part, score_by_run
from metaprior.meta import entry as entry_of
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
    past = _Past(tasks, folds, exam_of(tasks, folds), order, seed)
    races: list[Race] = []
    for lane, feature_dim in enumerate(budget.feature_dims):

        def report_race(fraction: float, trying: str, best: float | None, lane=lane) -> None:
            share = (lane + fraction) / len(budget.feature_dims)
            report("choosing a configuration", RACE * share, trying, best)

        num = -(-budget.candidates // len(budget.feature_dims))
        methods = candidates(num, tasks.num_tasks, feature_dim, seed=seed)
        races.append(
            run_race(
                methods, tasks, folds, past.exam, budget, seed=seed, watch=watch, report=report_race
            )
        )
        if watch.interrupted:
            break
    standings = [standing for race in races for standing in race.standings]
    if watch.interrupted or not standings:
        return _unfinished(races, past)._replace(interrupted=watch.interrupted)
    first = winner(standings)
    if not np.isfinite(first.score):
        raise FloatingPointError(
            "Every configuration diverged; check the past runs for extreme values."
        )
    places = max(race.places for race in races if any(each is first for each in race.standings))
    report("confirming the best with other seeds", RACE, _words(first), first.score)
    batch = _confirm(first, past, budget, places, watch)
    # Members that are not yet what won are worse than the leader of the race as it is.
    if batch.steps < first.steps and (watch.interrupted or batch.steps == 0):
        return _unfinished(races, past)._replace(interrupted=watch.interrupted)
    report("judging it on held-out runs", CONFIRM, _words(first), first.score)
    return _judged(batch, past, budget.members, standings)._replace(interrupted=watch.interrupted)


class _Past(NamedTuple):
    """Past runs in random order, cut into folds, and the exam on them."""

    tasks: Tasks
    folds: list[Fold]
    exam: Exam
    order: Int[np.ndarray, " n"]
    seed: int


def _confirm(first: Standing, past: _Past, budget: Budget, places: int, watch: Watch) -> Batch:
    """The winner from other seeds, without each fold, and then with all runs."""
    method = replace(first.method, num_steps=first.steps)
    folds, seeds = [*range(len(past.folds)), None], range(1, budget.members + 1)
    entries = [Entry(method, fold, member) for fold in folds for member in seeds]
    batch = Batch(entries, past.tasks, past.folds, places=places, seed=past.seed)
    batch.train(first.steps, np.ones(len(entries), bool), watch)
    return batch


def _judged(batch: Batch, past: _Past, num_seeds: int, standings: list[Standing]) -> Selection:
    """One member or all of them, whichever foresees held-out runs better."""
    num_folds = len(past.folds)
    held_out = np.array([entry.fold is not None for entry in batch.entries])
    answers = batch.answers(past.exam, held_out)
    # The entries of a member are `num_seeds` apart, fold after fold.
    by_member = [part(answers, np.arange(num_folds) * num_seeds + i) for i in range(num_seeds)]
    together, y_std = mixed(by_member), spread_of(past.tasks)
    members, chosen = 1, by_member[0]
    apart = [np.mean(score_by_run(each, y_std)) for each in by_member]
    if np.mean(score_by_run(together, y_std)) > np.mean(apart):
        members, chosen = num_seeds, together
    surrogates = batch.surrogates()
    rows = np.arange(len(batch.entries)).reshape(num_folds + 1, num_seeds)[:, :members]
    return Selection(
        replace(batch.entries[0].method, num_steps=batch.steps),
        members,
        entry_of(surrogates, rows[-1]),
        entry_of(surrogates, rows[:-1]),
        past.exam,
        chosen,
        past.order,
        standings,
        False,
    )


def _unfinished(races: list[Race], past: _Past) -> Selection:
    """The best so far, as it is: it has not seen one of the folds."""
    known = [race for race in races if race.standings]
    race = max(known, key=_best_score) if known else races[0]
    standings = [standing for race in races for standing in race.standings]
    learned = jax.tree.map(lambda leaf: leaf[None] if hasattr(leaf, "shape") else leaf, race.leader)
    return Selection(race.leading, 1, learned, None, past.exam, None, past.order, standings, False)


def _words(standing: Standing) -> str:
    method = standing.method
    effects = [name for name in ("offset", "amplitude", "warp") if getattr(method, name)]
    extras = f", {' and '.join(effects)}" if effects else ""
    return f"kappa {method.kappa:.2g}, {standing.steps} steps{extras}"


def _best_score(race: Race) -> float:
    return max(standing.score for standing in race.standings)
