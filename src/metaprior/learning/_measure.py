"""What is measured of the chosen prior on held-out runs, and the verdict that follows from it."""

import numpy as np
from jaxtyping import Bool, Float

from metaprior.data import TaskFeatures, Tasks
from metaprior.findings import (
    Chosen,
    Example,
    Findings,
    HeldOutScores,
    PastTask,
    PredictionScores,
    Replay,
    Series,
)
from metaprior.gp import float64
from metaprior.learning._budget import Budget
from metaprior.learning._exam import Answers, examine, spread_of
from metaprior.learning._predict import FittedPredictors
from metaprior.learning._progress import Watch
from metaprior.learning._replay import replay, summary
from metaprior.learning._score import (
    error_by_context,
    log_likelihood_by_context,
    log_likelihood_by_run,
    pooled_calibration,
)
from metaprior.learning._select import Selection
from metaprior.methods import settings_of
from metaprior.metrics import coverage
from metaprior.words import listed

LEVELS = tuple(round(0.05 * i, 2) for i in range(1, 20))
CALIBRATED = 0.1
# A non-transfer GP has neither level nor scale before it has seen two points.
FEWEST_SEEN = 2
FEW_TASKS = 4
OUTLIER_SPREADS = 4.0
NUM_EXAMPLES, EXAMPLE_POINTS = 2, 30
FIT_STEPS = 25


@float64
def findings_of(tasks: Tasks, selection: Selection, budget: Budget, watch: Watch) -> Findings:
    """Everything that was measured of the chosen prior on runs that it had not seen."""
    held_out, past_tasks, examples, replayed = None, (), (), None
    if selection.answers is not None and selection.judged is not None:
        exam = selection.exam
        folds = np.arange(len(exam.rows))
        # What does not transfer knows nothing of the features of tasks.
        columns = tasks.space.columns_of_points(exam.x.shape[2])
        plain = exam._replace(x=exam.x[:, :, columns])
        everyone = np.ones(len(folds), bool)
        fitted_answers = examine(FittedPredictors(FIT_STEPS), plain, folds, everyone)
        held_out = _held_out(tasks, selection, selection.answers, fitted_answers)
        past_tasks = _past_tasks(tasks, selection, selection.answers, fitted_answers)
        examples = _examples(tasks, selection)
        members = np.arange(len(folds) * selection.members).reshape(len(folds), -1)
        regrets = replay(selection.judged, members, exam, columns)
        replayed = None if regrets is None else summary(regrets)
    return Findings(
        verdict=_verdict(held_out, replayed, interrupted=selection.interrupted),
        held_out=held_out,
        replay=replayed,
        tasks=past_tasks,
        examples=examples,
        chosen=Chosen(settings_of(selection.method), selection.method.num_steps, selection.members),
        tried=selection.tried,
        budget=budget.name,
        seconds=round(watch.elapsed, 1),
        interrupted=selection.interrupted,
        notes=_notes(tasks, selection),
    )


def _held_out(
    tasks: Tasks, selection: Selection, learned: Answers, fitted: Answers
) -> HeldOutScores:
    exam = selection.exam
    y_std = spread_of(tasks)
    always = np.ones(len(exam.contexts), bool)
    return HeldOutScores(
        folds=len(exam.rows),
        tasks=int(exam.is_real.sum()),
        contexts=exam.contexts,
        levels=LEVELS,
        learned=_scores(learned, y_std, always),
        fitted=_scores(fitted, y_std, _late(exam.contexts)),
    )


def _late(contexts: tuple[int, ...]) -> Bool[np.ndarray, " contexts"]:
    """The context sizes at which the fitted GP is compared."""
    return np.array([size >= FEWEST_SEEN for size in contexts])


def _scores(
    answers: Answers, y_std: float, contexts: Bool[np.ndarray, " contexts"]
) -> PredictionScores:
    """The scores of one model over the context sizes at which it is compared."""
    if not contexts.any():
        return PredictionScores()
    told = _given(answers, contexts)
    covered = coverage(np.clip(told.cdf[told.counts], 0.0, 1.0), np.array(LEVELS))
    return PredictionScores(
        coverage=tuple(covered.tolist()),
        calibration_error=pooled_calibration(told),
        log_likelihood=float(np.nanmean(log_likelihood_by_run(told, y_std))),
        log_likelihood_by_context=_series(log_likelihood_by_context(answers, y_std), contexts),
        error_by_context=_series(error_by_context(answers, y_std), contexts),
    )


def _given(answers: Answers, contexts: Bool[np.ndarray, " contexts"]) -> Answers:
    """The answers at some context sizes; at the others nothing counts."""
    return answers._replace(counts=answers.counts & contexts[:, None])


def _series(values: Float[np.ndarray, " contexts"], known: Bool[np.ndarray, " contexts"]) -> Series:
    return tuple(_number(value) for value in np.where(known, values, np.nan))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _past_tasks(
    tasks: Tasks, selection: Selection, learned: Answers, fitted: Answers
) -> tuple[PastTask, ...]:
    """Each examined run, in the user's order; those predicted much worse than the others are
    outliers."""
    exam = selection.exam
    y_std = spread_of(tasks)
    fitted = _given(fitted, _late(exam.contexts))
    ours = log_likelihood_by_run(learned, y_std)[exam.is_real]
    theirs = log_likelihood_by_run(fitted, y_std)[exam.is_real]
    which = selection.order[exam.rows[exam.is_real]]
    centre = np.nanmedian(ours)
    spread = 1.4826 * np.nanmedian(np.abs(ours - centre))
    outlier = ours < centre - OUTLIER_SPREADS * max(spread, 0.1)
    rows = (
        PastTask(
            int(task),
            int(tasks.lengths[task]),
            _number(our),
            _number(their),
            bool(is_outlier),
            tasks.names[task] if tasks.names else None,
        )
        for task, our, their, is_outlier in zip(which, ours, theirs, outlier, strict=True)
    )
    return tuple(sorted(rows, key=lambda row: row.task))


def _examples(tasks: Tasks, selection: Selection) -> tuple[Example, ...]:
    """Two of the examined runs, in the user's units."""
    chosen = np.sort(selection.order[selection.exam.rows[selection.exam.is_real]])[:NUM_EXAMPLES]
    runs = (tasks.subset([index]) for index in chosen)
    return tuple(_example(run) for run in runs)


def _example(run: Tasks) -> Example:
    """The first points of the only run."""
    points, values = run.run(0)
    features = dict(run.feature_values[0]) if run.feature_values else {}
    return Example(
        tuple(points[:EXAMPLE_POINTS]),
        tuple(values[:EXAMPLE_POINTS].tolist()),
        features,
        run.names[0] if run.names else None,
    )


def _notes(tasks: Tasks, selection: Selection) -> tuple[str, ...]:
    notes = []
    if tasks.num_tasks <= FEW_TASKS:
        notes.append(
            f"There are only {tasks.num_tasks} past runs: the prior stays close to the "
            "hyper-prior, and the held-out scores are averages over very few runs."
        )
    values = tasks.y[tasks.mask]
    if np.allclose(values, values[0], rtol=1e-10, atol=0.0):
        notes.append("All past values are equal: there is nothing to learn from them.")
    return (*notes, *selection.method.notes(), *_notes_on_features(selection.features))


def _notes_on_features(features: TaskFeatures) -> list[str]:
    notes = [f"The feature {name!r} is not used, since {why}." for name, why in features.unused]
    if features.used:
        names = listed([repr(feature.name) for feature in features.used], 6)
        notes.append(
            f"The prior uses what is known of a task: {names}. Give it for a new task, too."
        )
    return notes


def _verdict(held_out: HeldOutScores | None, replayed: Replay | None, *, interrupted: bool) -> str:
    """Whether to trust the prior and what it is good for, in a sentence or two."""
    if held_out is None:
        why = "The choice was interrupted" if interrupted else "The budget was too short"
        return f"{why}: this prior was not judged on held-out runs, so its reliability is unknown."
    learned, fitted = held_out.learned, held_out.fitted
    error = learned.calibration_error
    assert error is not None and learned.log_likelihood is not None
    honest = error <= CALIBRATED
    calibrated = (
        f"calibrated (error {error:.2f})" if honest else f"not well calibrated (error {error:.2f})"
    )
    interval = replayed.saved_interval if replayed else None
    if replayed and interval and interval[0] > 0:
        joint = "and" if honest else "but"
        return (
            f"This prior is {calibrated} {joint} saves about {replayed.saved_evaluations:.0f} "
            f"evaluations per run ({interval[0]:.1f} to {interval[1]:.1f}), measured by replaying "
            "past runs that it had not seen."
        )
    if fitted.log_likelihood is None:
        return (
            f"This prior is {calibrated}; the past runs are too short to say whether it is better "
            "than a fitted GP."
        )
    if learned.log_likelihood <= fitted.log_likelihood:
        return (
            f"Your past tasks do not agree: expect no gain. This prior is {calibrated}, and "
            "predicts unseen runs no better than a fitted GP."
        )
    return (
        f"This prior is {calibrated} and predicts unseen runs better than a fitted GP, but "
        "replaying past runs shows no clear saving of evaluations."
    )
