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
from metaprior.learning._exam import Answers, Exam, exam_of, folds_of, shuffled
from metaprior.learning._progress import LearnProgress, OnLearnProgress, Watch
from metaprior.learning._race import Race, Standing, run_race
from metaprior.learning._score import mixed, part, score
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
    winner = max(standings, key=lambda standing: standing.score)
    if not np.isfinite(winner.score):
        raise FloatingPointError(
            "Every configuration diverged; check the past runs for extreme values."
        )
    places = max(race.places for race in races if winner in race.standings)
    report("confirming the best with other seeds", RACE, _words(winner), winner.score)
    method = replace(winner.method, num_steps=winner.steps)
    seeds, num_folds = range(1, budget.members + 1), len(folds)
    judged = [Entry(method, fold, s) for fold in range(num_folds) for s in seeds]
    final = [Entry(method, None, s) for s in seeds]
    batch = Batch([*judged, *final], tasks, folds, places=places, seed=seed)
    everyone = np.ones(len(batch.entries), bool)
    batch.train(winner.steps, everyone, watch)
    report("judging it on held-out runs", CONFIRM, _words(winner), winner.score)
    method = replace(method, num_steps=batch.steps)
    answers = batch.answers(exam, np.arange(len(everyone)) < len(judged))
    y_std = float(np.std(tasks.y[tasks.mask])) or 1.0
    by_member = [part(answers, np.arange(num_folds) * len(seeds) + i) for i in range(len(seeds))]
    together = mixed(by_member)
    members, chosen = 1, by_member[0]
    if score(together, y_std) > np.mean([score(each, y_std) for each in by_member]):
        members, chosen = len(seeds), together
    surrogates = batch.surrogates()

    def some(indices) -> AbstractSurrogate:
        return _rows(surrogates, np.asarray(indices))

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


def _rows(stacked: AbstractSurrogate, rows: np.ndarray) -> AbstractSurrogate:
    return entry_of(stacked, rows)  # pyright: ignore[reportArgumentType]


def _interrupted(races: list[Race], exam: Exam, order) -> Selection:
    """The best so far, as it is: it has not seen one of the folds."""
    known = [race for race in races if race.standings]
    race = max(known, key=lambda race: race.best.score) if known else races[0]
    standings = [standing for race in races for standing in race.standings]
    method = FPacohMap()
    if standings:
        best = race.best
        method = replace(best.method, num_steps=best.steps)
    learned = jax.tree.map(lambda leaf: leaf[None] if hasattr(leaf, "shape") else leaf, race.leader)
    return Selection(method, 1, learned, None, exam, None, order, standings, True)


def _words(standing: Standing) -> str:
    method = standing.method
    effects = [name for name in ("offset", "amplitude") if getattr(method, name)]
    extras = f", {' and '.join(effects)} of tasks" if effects else ""
    return f"kappa {method.kappa:.2g}, {standing.steps} steps{extras}"
