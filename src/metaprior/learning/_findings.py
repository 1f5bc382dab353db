"""What was found on held-out runs, as plain JSON: for the report, the model card and programs."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from metaprior.data import Tasks
from metaprior.gp import float64
from metaprior.learning._budget import Budget
from metaprior.learning._exam import Answers, examine, spread_of
from metaprior.learning._progress import Watch
from metaprior.learning._replay import replay, summary
from metaprior.learning._score import (
    error_by_context,
    log_likelihood_by_context,
    log_likelihood_by_run,
    pooled_calibration,
)
from metaprior.learning._select import Selection
from metaprior.methods import EnsembleSurrogate, FittedGP, settings_of
from metaprior.metrics import coverage

LEVELS = tuple(round(0.05 * i, 2) for i in range(1, 20))
CALIBRATED = 0.1
# A GP without a past has neither level nor scale before it has seen two points.
FEWEST_SEEN = 2
FEW_TASKS = 4
OUTLIER_SPREADS = 4.0
NUM_EXAMPLES, EXAMPLE_POINTS = 2, 30


@float64
def findings_of(tasks: Tasks, selection: Selection, budget: Budget, watch: Watch) -> dict[str, Any]:
    """Everything that is known of the chosen prior from runs that it had not seen."""
    found: dict[str, Any] = {
        "chosen": {
            "settings": settings_of(selection.method),
            "steps": selection.method.num_steps,
            "members": selection.members,
        },
        "tried": selection.tried,
        "budget": budget.name,
        "interrupted": selection.interrupted,
        "notes": _notes(tasks, selection),
    }
    if selection.answers is None or selection.judged is None:
        why = "The choice was interrupted" if selection.interrupted else "The budget was too short"
        found["verdict"] = (
            f"{why}: this prior was not judged on held-out runs, so that nobody knows whether to "
            "trust it."
        )
    else:
        found |= _judgement(tasks, selection)
    found["seconds"] = round(watch.elapsed, 1)
    return found


def _judgement(tasks: Tasks, selection: Selection) -> dict[str, Any]:
    exam, answers = selection.exam, selection.answers
    assert answers is not None and selection.judged is not None
    y_std = spread_of(tasks)
    num_folds = len(exam.rows)
    fitted = FittedGP().from_scratch(tasks.space.num_columns)
    vanilla = examine(fitted, exam, np.arange(num_folds), np.ones(num_folds, bool))
    always = np.ones(len(exam.contexts), bool)
    late = np.array([size >= FEWEST_SEEN for size in exam.contexts])
    found: dict[str, Any] = {
        "held_out": {
            "folds": num_folds,
            "tasks": int(exam.is_real.sum()),
            "contexts": list(exam.contexts),
            "levels": list(LEVELS),
            "learned": _side(answers, y_std, always),
            "vanilla": _side(vanilla, y_std, late),
        },
        "tasks": _by_task(tasks, selection, answers, vanilla, late, y_std),
        "examples": _examples(tasks, selection),
    }
    replayed = replay(EnsembleSurrogate(selection.judged), exam, tasks.space.num_columns)
    if replayed is not None:
        found["replay"] = summary(replayed)
    found["verdict"] = _verdict(found)
    return found


def _side(answers: Answers, y_std: float, contexts: Bool[np.ndarray, " contexts"]) -> dict:
    """The numbers of one model, over those context sizes for which it has a say."""
    if not contexts.any():
        return {}
    told = _given(answers, contexts)
    return {
        "coverage": coverage(np.clip(told.cdf[told.counts], 0.0, 1.0), np.array(LEVELS)).tolist(),
        "calibration_error": pooled_calibration(told),
        "log_likelihood": float(np.nanmean(log_likelihood_by_run(told, y_std))),
        "log_likelihood_by_context": _or_none(log_likelihood_by_context(answers, y_std), contexts),
        "error_by_context": _or_none(error_by_context(answers, y_std), contexts),
    }


def _given(answers: Answers, contexts: Bool[np.ndarray, " contexts"]) -> Answers:
    """The answers at some context sizes; at the others nothing counts."""
    return answers._replace(counts=answers.counts & contexts[:, None])


def _or_none(values: Float[np.ndarray, " contexts"], known: Bool[np.ndarray, " contexts"]) -> list:
    return [
        float(value) if is_known and np.isfinite(value) else None
        for value, is_known in zip(values, known, strict=True)
    ]


def _by_task(tasks, selection: Selection, answers, vanilla, late, y_std: float) -> list[dict]:
    """Each examined run, in the order of the user's; those the prior foresaw much worse than the
    others are outliers."""
    exam = selection.exam
    ours = log_likelihood_by_run(answers, y_std)[exam.is_real]
    theirs = log_likelihood_by_run(_given(vanilla, late), y_std)[exam.is_real]
    which = selection.order[exam.rows[exam.is_real]]
    centre = np.nanmedian(ours)
    spread = 1.4826 * np.nanmedian(np.abs(ours - centre))
    outlier = ours < centre - OUTLIER_SPREADS * max(spread, 0.1)
    rows = [
        {
            "task": int(task),
            "points": int(tasks.lengths[task]),
            "log_likelihood": _number(our),
            "vanilla_log_likelihood": _number(their),
            "outlier": bool(is_outlier),
        }
        for task, our, their, is_outlier in zip(which, ours, theirs, outlier, strict=True)
    ]
    return sorted(rows, key=lambda row: row["task"])


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _examples(tasks: Tasks, selection: Selection) -> list[dict[str, Any]]:
    """Two of the examined runs, in the user's units."""
    chosen = np.sort(selection.order[selection.exam.rows[selection.exam.is_real]])[:NUM_EXAMPLES]
    examples = []
    for index in chosen:
        points, values = tasks.run(int(index))
        examples.append(
            {"points": points[:EXAMPLE_POINTS], "values": values[:EXAMPLE_POINTS].tolist()}
        )
    return examples


def _notes(tasks: Tasks, selection: Selection) -> list[str]:
    notes = []
    if tasks.num_tasks <= FEW_TASKS:
        notes.append(
            f"There are only {tasks.num_tasks} past runs: the prior stays close to the "
            "hyper-prior, and what is said of held-out runs rests on very few."
        )
    values = tasks.y[tasks.mask]
    if np.allclose(values, values[0], rtol=1e-10, atol=0.0):
        notes.append("All past values are equal: there is nothing to learn from them.")
    return notes + selection.method.notes()


def _verdict(found: dict[str, Any]) -> str:
    """In a sentence or two, whether to trust the prior, and what it is good for."""
    learned, vanilla = found["held_out"]["learned"], found["held_out"]["vanilla"]
    error = learned["calibration_error"]
    honest = error <= CALIBRATED
    calibrated = (
        f"calibrated (error {error:.2f})" if honest else f"not well calibrated (error {error:.2f})"
    )
    replayed = found.get("replay")
    saved = replayed["saved_evaluations"] if replayed else None
    interval = replayed["saved_interval"] if replayed else None
    if saved is not None and interval is not None and interval[0] > 0:
        joint = "and" if honest else "but"
        return (
            f"This prior is {calibrated} {joint} saves about {saved:.0f} evaluations a run "
            f"({interval[0]:.1f} to {interval[1]:.1f}), by replaying past runs it had not seen."
        )
    if not vanilla:
        return (
            f"This prior is {calibrated}; the past runs are too short to say whether it is better "
            "than a plain GP."
        )
    if learned["log_likelihood"] <= vanilla["log_likelihood"]:
        return (
            f"Your past tasks do not agree: expect no gain. This prior is {calibrated}, and "
            "predicts runs that it has not seen no better than a plain GP does."
        )
    return (
        f"This prior is {calibrated} and predicts unseen runs better than a plain GP, but "
        "replaying past runs shows no clear saving of evaluations."
    )
