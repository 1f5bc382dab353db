"""What is measured of the chosen prior on held-out runs, and the verdict that follows from it."""

import numpy as np
from jaxtyping import Float

from metaprior.belief import AveragedBelief
from metaprior.data import TaskFeatures, Tasks, fit_standardiser
from metaprior.findings import (
    BASELINE,
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
from metaprior.learning._exam import Answers, examine, folds_of, spread_of, without_each
from metaprior.learning._predict import ConditionedPredictors
from metaprior.learning._progress import Watch
from metaprior.learning._replay import can_be_replayed, replay, summary
from metaprior.learning._score import (
    error_by_context,
    log_likelihood_by_context,
    log_likelihood_by_run,
    pooled_calibration,
)
from metaprior.learning._select import Selection
from metaprior.learning._stopping import stopping_of
from metaprior.methods import settings_of
from metaprior.metrics import coverage, mean_and_interval
from metaprior.words import listed

LEVELS = tuple(round(0.05 * i, 2) for i in range(1, 20))
CALIBRATED = 0.1
FEW_TASKS = 4
OUTLIER_SPREADS = 4.0
NUM_EXAMPLES, EXAMPLE_POINTS = 2, 30
UNCONFIRMED = (
    "There was no time to train the choice on all past runs: the prior has not seen some of them. "
    "Its held-out scores are slightly too good, since the choice was made by the same runs."
)
CUT_SHORT = (
    "There was no time to replay past runs to the end, so how many evaluations the prior saves is "
    "unknown."
)
# How often runs are drawn again for an interval.
NUM_DRAWS = 400


@float64
def findings_of(tasks: Tasks, selection: Selection, budget: Budget, watch: Watch) -> Findings:
    """Everything that was measured of the chosen prior on runs that it had not seen.

    The exam comes first, and is always sat to the end; runs are replayed while there is time.
    """
    held_out, past_tasks, examples, replayed, cut_short = None, (), (), None, False
    stopping = None
    if selection.judged is not None:
        exam = selection.exam
        folds = np.arange(len(exam.rows))
        # What does not transfer knows nothing of the features of tasks.
        columns = tasks.space.columns_of_points(exam.x.shape[2])
        plain = exam._replace(x=exam.x[:, :, columns])
        everyone = np.ones(len(folds), bool)
        baselines = _baselines(tasks, selection)
        learned = examine(selection.judged, exam, folds, everyone)
        baseline = examine(baselines, plain, folds, everyone)
        held_out = _held_out(tasks, selection, learned, baseline)
        past_tasks = _past_tasks(tasks, selection, learned, baseline)
        examples = _examples(tasks, selection)
        if can_be_replayed(exam):
            regrets = replay(selection.judged, baselines, exam, columns, lambda: watch.over)
            cut_short = regrets is None
            replayed = None if regrets is None else summary(regrets)
            stopping = stopping_of(selection.judged, exam, lambda: watch.over)
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
        stopping=stopping,
        notes=(*_notes(tasks, selection), *([CUT_SHORT] if cut_short else [])),
    )


def _baselines(tasks: Tasks, selection: Selection) -> ConditionedPredictors:
    """An averaged GP for each fold: level and spread of values come from the other folds."""
    shuffled = tasks.subset(selection.order)
    folds = folds_of(tasks.num_tasks, len(selection.exam.rows))
    units = [fit_standardiser(o.x, o.y, o.mask) for o in without_each(shuffled, folds)]
    return ConditionedPredictors([AveragedBelief(float(u.y_mean), float(u.y_std)) for u in units])


def _held_out(
    tasks: Tasks, selection: Selection, learned: Answers, baseline: Answers
) -> HeldOutScores:
    exam = selection.exam
    y_std = spread_of(tasks)
    return HeldOutScores(
        folds=len(exam.rows),
        tasks=int(exam.is_real.sum()),
        contexts=exam.contexts,
        levels=LEVELS,
        learned=_scores(learned, y_std),
        baseline=_scores(baseline, y_std),
        spread=y_std,
    )


def _scores(answers: Answers, y_std: float) -> PredictionScores:
    """The scores of one model."""
    covered = coverage(np.clip(answers.cdf[answers.counts], 0.0, 1.0), np.array(LEVELS))
    by_run = log_likelihood_by_run(answers, y_std)
    by_run = by_run[~np.isnan(by_run)]
    return PredictionScores(
        coverage=tuple(covered.tolist()),
        calibration_error=pooled_calibration(answers),
        calibration_interval=_calibration_interval(answers),
        log_likelihood=float(np.mean(by_run)),
        log_likelihood_interval=_interval(by_run),
        log_likelihood_by_context=_series(log_likelihood_by_context(answers, y_std)),
        error_by_context=_series(error_by_context(answers, y_std)),
    )


def _interval(values: Float[np.ndarray, " runs"]) -> tuple[float, float] | None:
    """95 % of the mean over runs; `None` for a single run."""
    if len(values) < 2:
        return None
    mean, half_width = mean_and_interval(values)
    return float(mean - half_width), float(mean + half_width)


def _calibration_interval(answers: Answers) -> tuple[float, float] | None:
    """95 %, by the bootstrap over runs: points of one run are no independent evidence.

    Errors of runs drawn again are larger on average, so the interval errs on the side of caution.
    """
    runs = np.argwhere(answers.counts.any(axis=(2, 3)))
    if len(runs) < 2:
        return None
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(NUM_DRAWS):
        which = tuple(runs[rng.integers(len(runs), size=len(runs))].T)
        drawn.append(pooled_calibration(Answers(*(part[which][None] for part in answers))))
    low, high = np.quantile([*drawn, pooled_calibration(answers)], [0.025, 0.975])
    return float(low), float(high)


def _series(values: Float[np.ndarray, " contexts"]) -> Series:
    return tuple(_number(value) for value in values)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _past_tasks(
    tasks: Tasks, selection: Selection, learned: Answers, baseline: Answers
) -> tuple[PastTask, ...]:
    """Each examined run, in the user's order; those predicted much worse than the others are
    outliers."""
    exam = selection.exam
    y_std = spread_of(tasks)
    ours = log_likelihood_by_run(learned, y_std)[exam.is_real]
    theirs = log_likelihood_by_run(baseline, y_std)[exam.is_real]
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
    if selection.judged is not None and not selection.confirmed:
        notes.append(UNCONFIRMED)
    values = tasks.y[tasks.mask]
    if np.allclose(values, values[0], rtol=1e-10, atol=0.0):
        notes.append("All past values are equal: there is nothing to learn from them.")
    return (*notes, *selection.method.notes(), *_notes_on_features(selection.features))


def _notes_on_features(features: TaskFeatures) -> list[str]:
    notes = [f"The feature {name!r} is not used, since {why}." for name, why in features.unused]
    if features.used:
        names = listed([repr(feature.name) for feature in features.used], 6)
        notes.append(f"The prior uses task features: {names}. Give them for a new task, too.")
    return notes


def _side(held_out: HeldOutScores) -> str:
    """Whether the bands of the prior are too wide or too narrow, in words before others."""
    found, levels = held_out.learned.coverage, held_out.levels
    if not found:
        return ""
    is_wide = float(np.mean(np.array(found) - np.array(levels))) > 0.0
    return "too cautious, " if is_wide else "over-confident, "


def _verdict(held_out: HeldOutScores | None, replayed: Replay | None, *, interrupted: bool) -> str:
    """Whether to trust the prior and what it is good for, in a sentence or two."""
    if held_out is None:
        why = "The choice was interrupted" if interrupted else "The budget was too short"
        return f"{why}: this prior was not judged on held-out runs, so its reliability is unknown."
    learned, baseline = held_out.learned, held_out.baseline
    error = learned.calibration_error
    assert error is not None and learned.log_likelihood is not None
    honest = error <= CALIBRATED
    if honest:
        calibrated = f"calibrated (error {error:.2f})"
    else:
        calibrated = f"not well calibrated ({_side(held_out)}error {error:.2f})"
    interval = replayed.saved_interval if replayed else None
    if replayed and interval and interval[0] > 0:
        joint = "and" if honest else "but"
        return (
            f"This prior is {calibrated} {joint} saves about {replayed.saved_evaluations:.0f} "
            f"evaluations per run ({interval[0]:.1f} to {interval[1]:.1f}), measured by replaying "
            "past runs that it had not seen."
        )
    assert baseline.log_likelihood is not None
    if learned.log_likelihood <= baseline.log_likelihood:
        return (
            f"Your past tasks do not agree: expect no gain. This prior is {calibrated}, and "
            f"predicts unseen runs no better than an {BASELINE}."
        )
    better = f"This prior is {calibrated} and predicts unseen runs better than an {BASELINE}"
    if replayed is None:
        return f"{better}; how many evaluations it saves was not measured."
    return f"{better}, but replaying past runs shows no clear saving of evaluations."
