"""What is measured of a chosen prior, and that the verdict follows from the numbers."""

import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from metaprior.data import Categorical, Integer, Real, Space, Tasks
from metaprior.findings import INTERRUPTED, Findings, HeldOutScores, PredictionScores, Replay
from metaprior.learning import Budget, Selection, Watch, findings_of
from metaprior.learning._exam import exam_of, examine, folds_of
from metaprior.learning._measure import (
    CUT_SHORT,
    UNCONFIRMED,
    _examples,
    _notes,
    _past_tasks,
    _verdict,
)
from metaprior.learning._predict import CompiledPredictors
from metaprior.methods import FPacohMap
from tests.learning.answers import LastSeen, tasks_of

BUDGET = Budget("made up", 2, (5,), (), 2, 1)


def verdict(
    error: float = 0.05,
    learned: float = 1.0,
    baseline: float = 0.0,
    saved: float | None = 3.0,
    interval: tuple[float, float] | None = None,
) -> str:
    """The verdict on these scores."""
    held_out = HeldOutScores(
        learned=PredictionScores(calibration_error=error, log_likelihood=learned),
        baseline=PredictionScores(log_likelihood=baseline),
    )
    replayed = Replay(saved_evaluations=saved, saved_interval=interval)
    return _verdict(held_out, None if saved is None else replayed, interrupted=False)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            verdict(0.05, saved=6.6, interval=(4.14, 9.0)),
            "This prior is calibrated (error 0.05) and saves about 7 evaluations per run "
            "(4.1 to 9.0), measured by replaying past runs that it had not seen.",
        ),
        (
            verdict(0.31, saved=6.6, interval=(4.14, 9.0)),
            "This prior is not well calibrated (error 0.31) but saves about 7 evaluations per run "
            "(4.1 to 9.0), measured by replaying past runs that it had not seen.",
        ),
        (
            verdict(0.05, -1.0, 0.5, 0.2, (-1.0, 1.4)),
            "Your past tasks do not agree: expect no gain. This prior is calibrated (error 0.05), "
            "and predicts unseen runs no better than an averaged GP.",
        ),
        (
            verdict(0.05, 1.0, 0.5, 0.2, (-1.0, 1.4)),
            "This prior is calibrated (error 0.05) and predicts unseen runs better than an "
            "averaged GP, but replaying past runs shows no clear saving of evaluations.",
        ),
        (
            verdict(0.05, 1.0, 0.5, None),
            "This prior is calibrated (error 0.05) and predicts unseen runs better than an "
            "averaged GP; how many evaluations it saves was not measured.",
        ),
        (
            # One run may save a lot, but without an interval the saving is not clear.
            verdict(0.05, 1.0, 0.5, 9.0, None),
            "This prior is calibrated (error 0.05) and predicts unseen runs better than an "
            "averaged GP, but replaying past runs shows no clear saving of evaluations.",
        ),
    ],
)
def test_verdict_follows_from_the_scores(found, sentence):
    assert found == sentence


@pytest.mark.parametrize(
    ("coverage", "side"), [((0.9, 0.95, 1.0), "too cautious"), ((0.1, 0.2, 0.9), "over-confident")]
)
def test_verdict_says_whether_bands_are_too_wide_or_too_narrow(coverage, side):
    held_out = HeldOutScores(
        levels=(0.25, 0.5, 0.95),
        learned=PredictionScores(coverage=coverage, calibration_error=0.31, log_likelihood=1.0),
        baseline=PredictionScores(coverage=coverage, log_likelihood=0.0),
    )
    found = _verdict(held_out, None, interrupted=False)
    assert found.startswith(f"This prior is not well calibrated ({side}, error 0.31) and predicts")


def made_up(tasks: Tasks, order: list[int] | None = None, **changes: Any) -> Selection:
    """A choice whose judged members expect the value that they saw last."""
    order_of = np.arange(len(tasks)) if order is None else np.array(order)
    shuffled = tasks.subset(order_of)
    folds = folds_of(len(tasks), 2)
    exam = exam_of(shuffled, folds)
    # One member for each of the two folds.
    judged = CompiledPredictors(LastSeen(jnp.zeros(2)))
    method = FPacohMap(kappa=0.2, offset=True, num_steps=5)
    whole = Selection(method, 1, LastSeen(jnp.zeros(1)), {}, judged, exam, order_of, 2, False)
    return whole._replace(**changes)


RUNS = [
    [0.0, 0.5, 0.2, 0.4, 0.1],
    [0.3, 0.1, 0.6, 0.2],
    [0.2],
    [90.0, -80.0, 95.0, -70.0],
    [0.1, 0.5, 0.4, 0.3, 0.2, 0.6],
    [0.4, 0.1, 0.2, 0.5],
]


@pytest.fixture(scope="module")
def whole_findings():
    tasks = tasks_of(*RUNS)
    return findings_of(tasks, made_up(tasks, [4, 2, 0, 5, 1, 3]), BUDGET, Watch(None))


def test_findings_of_a_selection_come_back_from_json(whole_findings):
    text = json.dumps(whole_findings.to_json(), allow_nan=False)
    assert Findings.from_json(json.loads(text)) == whole_findings


def test_findings_of_a_selection_say_what_was_chosen(whole_findings):
    assert whole_findings.verdict.startswith("This prior is not well calibrated (")
    assert whole_findings.baseline == "averaged GP"
    assert whole_findings.budget == "made up" and whole_findings.tried == 2
    chosen = whole_findings.chosen
    assert chosen.steps == 5 and chosen.members == 1 and chosen.settings["kappa"] == 0.2
    assert whole_findings.interrupted is False and whole_findings.seconds >= 0.0
    assert whole_findings.replay is not None and whole_findings.replay.runs == 5


def test_past_tasks_are_in_the_users_order_and_the_wild_one_is_an_outlier(whole_findings):
    rows = whole_findings.tasks
    assert [row.task for row in rows] == list(range(6))
    assert [row.points for row in rows] == [len(run) for run in RUNS]
    assert [row.task for row in rows if row.outlier] == [3]
    # By hand, in the units of all values together: nothing seen, and the run has one point.
    spread = np.std(np.concatenate([np.asarray(run) for run in RUNS]))
    expected = scipy.stats.norm.logpdf(0.2) + np.log(spread)
    np.testing.assert_allclose(rows[2].log_likelihood, expected)
    assert all(isinstance(row.baseline_log_likelihood, float) for row in rows)


def test_held_out_scores_by_hand(whole_findings):
    held_out = whole_findings.held_out
    assert held_out.folds == 2 and held_out.tasks == 6
    learned, baseline = held_out.learned, held_out.baseline
    assert len(learned.coverage) == len(held_out.levels) == len(baseline.coverage)
    spread = np.std(np.concatenate([np.asarray(run) for run in RUNS]))
    for i, size in enumerate(held_out.contexts):
        squares = [
            np.mean([(y - (run[size - 1] if size else 0.0)) ** 2 for y in run[size:]])
            for run in RUNS
            if len(run) > size
        ]
        expected = np.sqrt(np.mean(squares)) / spread
        np.testing.assert_allclose(learned.error_by_context[i], expected)
        # Both models are scored from 0 points on.
        assert baseline.error_by_context[i] is not None
    # By hand, after 0 points: the baseline expects the mean of the runs in the other fold.
    values = [np.concatenate([RUNS[i] for i in fold]) for fold in ([5, 1, 3], [4, 2, 0])]
    levels = dict.fromkeys([4, 2, 0], values[0].mean()) | dict.fromkeys([5, 1, 3], values[1].mean())
    squares = [np.mean((np.array(run) - levels[i]) ** 2) for i, run in enumerate(RUNS)]
    assert baseline.error_by_context[0] == pytest.approx(np.sqrt(np.mean(squares)) / spread)
    assert held_out.spread == pytest.approx(spread)


def test_held_out_scores_have_intervals_over_runs():
    y = np.random.default_rng(0).normal(size=(24, 12))
    tasks = tasks_of(*y.tolist())
    findings = findings_of(tasks, made_up(tasks), BUDGET, Watch(None))
    assert findings.held_out is not None
    scores = findings.held_out.baseline
    assert scores.calibration_interval is not None and scores.calibration_error is not None
    low, high = scores.calibration_interval
    assert 0.0 < low <= scores.calibration_error <= high < 0.3
    by_run = [float(row.baseline_log_likelihood or 0.0) for row in findings.tasks]
    expected = scipy.stats.t.interval(0.95, 23, np.mean(by_run), scipy.stats.sem(by_run))
    assert scores.log_likelihood_interval == pytest.approx(expected)


def test_examples_are_the_first_runs_as_recorded(whole_findings):
    first, second = whole_findings.examples
    assert first.values == tuple(RUNS[0]) and second.values == tuple(RUNS[1])
    np.testing.assert_allclose([point["a"] for point in first.points], np.linspace(0, 1, 5))


def test_examples_are_in_the_users_units_and_sign():
    space = Space(lr=Real(1e-4, 1.0, log=True), depth=Integer(1, 5), kind=Categorical(["a", "b"]))
    points = [{"lr": 1e-2, "depth": 3, "kind": "b"}, {"lr": 1.0, "depth": 1, "kind": "a"}]
    tasks = Tasks.from_runs(
        [(points, [3.0, 4.0]), (points[:1], [5.0])], space=space, direction="minimize"
    )
    exam = exam_of(tasks, folds_of(2, 2))
    selection = made_up(tasks_of([1.0], [2.0]))._replace(exam=exam)
    first, second = _examples(tasks, selection)
    assert first.values == (3.0, 4.0) and second.values == (5.0,)
    plain = json.loads(json.dumps(first.points))
    assert [p["depth"] for p in plain] == [3, 1]
    assert [p["kind"] for p in plain] == ["b", "a"]
    np.testing.assert_allclose([p["lr"] for p in plain], [1e-2, 1.0])


def test_past_tasks_that_are_equal_have_no_outlier():
    tasks = tasks_of(*[[0.0, 1.0, 0.5]] * 6)
    selection = made_up(tasks)
    assert selection.judged is not None
    answers = examine(selection.judged, selection.exam, np.arange(2), np.ones(2, bool))
    rows = _past_tasks(tasks, selection, answers, answers)
    assert len(rows) == 6 and not any(row.outlier for row in rows)


def test_findings_of_an_interrupted_choice_say_that_it_was_not_judged():
    tasks = tasks_of(*RUNS)
    selection = made_up(tasks, judged=None, interrupted=True)
    findings = findings_of(tasks, selection, BUDGET, Watch(None))
    assert findings.interrupted is True and findings.held_out is None and findings.tasks == ()
    assert findings.verdict == (
        "The choice was interrupted: this prior was not judged on held-out runs, so its "
        "reliability is unknown."
    )
    assert findings.remarks[0] == INTERRUPTED


class Late(Watch):
    """All time is up, whatever the clock says."""

    @property
    def over(self) -> bool:
        return True


def test_findings_without_time_left_have_the_whole_exam_and_no_replay(whole_findings):
    tasks = tasks_of(*RUNS)
    findings = findings_of(tasks, made_up(tasks, [4, 2, 0, 5, 1, 3]), BUDGET, Late(1.0))
    assert findings.held_out == whole_findings.held_out
    assert findings.tasks == whole_findings.tasks
    assert findings.examples == whole_findings.examples
    assert findings.replay is None and findings.notes == (*whole_findings.notes, CUT_SHORT)
    assert CUT_SHORT not in whole_findings.notes


def test_notes_say_that_the_choice_was_not_trained_on_all_runs():
    tasks = tasks_of(*RUNS)
    assert _notes(tasks, made_up(tasks, confirmed=False))[0] == UNCONFIRMED
    assert UNCONFIRMED not in _notes(tasks, made_up(tasks))
    assert UNCONFIRMED not in _notes(tasks, made_up(tasks, confirmed=False, judged=None))


def test_notes_warn_of_few_runs_and_name_the_random_effects():
    few = tasks_of([0.1, 0.2], [0.3, 0.1])
    notes = _notes(few, made_up(few))
    assert notes[0].startswith("There are only 2 past runs")
    assert "The past tasks differ in level, and the prior allows for that." in notes
    many = tasks_of(*RUNS)
    plain = made_up(many, method=FPacohMap())
    assert _notes(many, plain) == ()
    both = made_up(many, method=FPacohMap(offset=True, amplitude=True))
    assert "differ in level and amplitude" in _notes(many, both)[0]


@pytest.mark.parametrize("value", [0.0, 7.0, 0.1])
def test_notes_name_equal_values(value):
    tasks = tasks_of(*[[value] * 3] * 6)
    (note,) = _notes(tasks, made_up(tasks, method=FPacohMap()))
    assert note == "All past values are equal: there is nothing to learn from them."


def test_findings_of_runs_of_one_point_compare_before_the_first_point():
    tasks = tasks_of(*[[0.1 * i] for i in range(6)])
    selection = made_up(tasks)
    findings = findings_of(tasks, selection, BUDGET, Watch(None))
    assert findings.held_out is not None and findings.replay is None
    assert findings.held_out.contexts == (0,)
    assert findings.held_out.baseline.log_likelihood is not None
    assert Findings.from_json(findings.to_json()) == findings


def test_findings_of_a_long_run_that_is_not_examined_have_no_context_for_it():
    tasks = tasks_of(*[[0.1, 0.2]] * 200, [0.1 * i for i in range(20)])
    findings = findings_of(tasks, made_up(tasks), BUDGET, Watch(None))
    assert findings.held_out is not None and max(findings.held_out.contexts) == 1
