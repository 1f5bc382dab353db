"""Findings: what is said of a prior, and that it follows from the numbers."""

import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from metaprior.data import Categorical, Integer, Real, Space, Tasks
from metaprior.learning import Budget, Selection, Watch, _findings, _replay, findings_of
from metaprior.learning._exam import exam_of, examine, folds_of, spread_of
from metaprior.learning._findings import _by_task, _examples, _notes, _side, _verdict
from metaprior.learning._race import Standing
from metaprior.methods import FPacohMap
from metaprior.report._findings import INTERRUPTED, read_findings
from tests.learning.answers import LastSeen, QuickPlainGP, answers_of, tasks_of

BUDGET = Budget("made up", 2, (5,), (), 2, 1)


@pytest.fixture(scope="module", autouse=True)
def quick_averaged_gp():
    with pytest.MonkeyPatch.context() as patch:
        for module in (_findings, _replay):
            patch.setattr(module, "FittedGP", QuickPlainGP)
        yield


def found(
    error: float = 0.05,
    learned: float = 1.0,
    vanilla: float | None = 0.0,
    saved: float | None = 3.0,
    interval: list[float] | None = None,
) -> dict[str, Any]:
    """As much of the findings as the verdict looks at."""
    held_out = {
        "learned": {"calibration_error": error, "log_likelihood": learned},
        "vanilla": {} if vanilla is None else {"log_likelihood": vanilla},
    }
    if saved is None:
        return {"held_out": held_out}
    return {
        "held_out": held_out,
        "replay": {"saved_evaluations": saved, "saved_interval": interval},
    }


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [
        (
            found(0.05, saved=6.6, interval=[4.14, 9.0]),
            "This prior is calibrated (error 0.05) and saves about 7 evaluations a run "
            "(4.1 to 9.0), by replaying past runs it had not seen.",
        ),
        (
            found(0.31, saved=6.6, interval=[4.14, 9.0]),
            "This prior is not well calibrated (error 0.31) but saves about 7 evaluations a run "
            "(4.1 to 9.0), by replaying past runs it had not seen.",
        ),
        (
            found(0.05, -1.0, 0.5, 0.2, [-1.0, 1.4]),
            "Your past tasks do not agree: expect no gain. This prior is calibrated (error 0.05), "
            "and predicts runs that it has not seen no better than a plain GP does.",
        ),
        (
            found(0.05, 1.0, 0.5, 0.2, [-1.0, 1.4]),
            "This prior is calibrated (error 0.05) and predicts unseen runs better than a plain "
            "GP, but replaying past runs shows no clear saving of evaluations.",
        ),
        (
            # A single run may save a lot, and nobody knows whether the next one does.
            found(0.05, 1.0, 0.5, 9.0, None),
            "This prior is calibrated (error 0.05) and predicts unseen runs better than a plain "
            "GP, but replaying past runs shows no clear saving of evaluations.",
        ),
        (
            found(0.2, 1.0, None, None),
            "This prior is not well calibrated (error 0.20); the past runs are too short to say "
            "whether it is better than a plain GP.",
        ),
    ],
)
def test_verdicts(findings, sentence):
    assert _verdict(findings) == sentence


def made_up(tasks: Tasks, order: list[int] | None = None, **changes: Any) -> Selection:
    """A choice whose judged members expect the value that they saw last."""
    order_of = np.arange(len(tasks)) if order is None else np.array(order)
    shuffled = tasks.subset(order_of)
    folds = folds_of(len(tasks), 2)
    exam = exam_of(shuffled, folds)
    answers = examine(LastSeen(jnp.zeros(2)), exam, np.arange(2), np.ones(2, bool))
    method = FPacohMap(kappa=0.2, offset=True, num_steps=5)
    standings = [Standing(m, s, np.zeros(3)) for m in (method, FPacohMap()) for s in (5, 10)]
    # One member for each of the two folds.
    judged = LastSeen(jnp.zeros((2, 1)))
    whole = Selection(
        method, 1, LastSeen(jnp.zeros(1)), judged, exam, answers, order_of, standings, False
    )
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


def test_findings_are_plain_json_without_holes(whole_findings):
    text = json.dumps(whole_findings, allow_nan=False)
    assert json.loads(text) == whole_findings


def test_the_report_reads_them(whole_findings):
    read = read_findings(whole_findings)
    assert read.verdict == whole_findings["verdict"] and read.budget == "made up"
    assert read.num_tried == 2 and read.num_steps == 5 and read.num_members == 1
    assert read.held_out is not None and read.replay is not None
    assert read.held_out.learned.coverage is not None
    assert len(read.tasks) == 6 and len(read.examples) == 2
    assert read.settings["kappa"] == 0.2


def test_tasks_are_the_users_and_the_wild_one_is_an_outlier(whole_findings):
    rows = whole_findings["tasks"]
    assert [row["task"] for row in rows] == list(range(6))
    assert [row["points"] for row in rows] == [len(run) for run in RUNS]
    assert [row["task"] for row in rows if row["outlier"]] == [3]
    # By hand, in the units of all values together: nothing seen, and the run has one point.
    spread = np.std(np.concatenate([np.asarray(run) for run in RUNS]))
    expected = scipy.stats.norm.logpdf(0.2) + np.log(spread)
    np.testing.assert_allclose(rows[2]["log_likelihood"], expected)
    assert rows[2]["vanilla_log_likelihood"] is None
    assert all(isinstance(rows[i]["vanilla_log_likelihood"], float) for i in (0, 1, 3, 4, 5))


def test_the_sides_by_hand(whole_findings):
    held_out = whole_findings["held_out"]
    assert held_out["folds"] == 2 and held_out["tasks"] == 6
    learned, vanilla = held_out["learned"], held_out["vanilla"]
    assert len(learned["coverage"]) == len(held_out["levels"]) == len(vanilla["coverage"])
    spread = np.std(np.concatenate([np.asarray(run) for run in RUNS]))
    for i, size in enumerate(held_out["contexts"]):
        squares = [
            np.mean([(y - (run[size - 1] if size else 0.0)) ** 2 for y in run[size:]])
            for run in RUNS
            if len(run) > size
        ]
        expected = np.sqrt(np.mean(squares)) / spread
        np.testing.assert_allclose(learned["error_by_context"][i], expected)
        # A GP without a past says nothing before it has seen two points.
        assert (vanilla["error_by_context"][i] is None) == (size < 2)


def test_examples_are_the_first_runs_as_they_were(whole_findings):
    first, second = whole_findings["examples"]
    assert first["values"] == RUNS[0] and second["values"] == RUNS[1]
    np.testing.assert_allclose([point["a"] for point in first["points"]], np.linspace(0, 1, 5))


def test_examples_are_in_the_users_units_and_sign():
    space = Space(lr=Real(1e-4, 1.0, log=True), depth=Integer(1, 5), kind=Categorical(["a", "b"]))
    points = [{"lr": 1e-2, "depth": 3, "kind": "b"}, {"lr": 1.0, "depth": 1, "kind": "a"}]
    tasks = Tasks.from_runs(
        [(points, [3.0, 4.0]), (points[:1], [5.0])], space=space, direction="minimize"
    )
    exam = exam_of(tasks, folds_of(2, 2))
    selection = made_up(tasks_of([1.0], [2.0]))._replace(exam=exam)
    first, second = json.loads(json.dumps(_examples(tasks, selection)))
    assert first["values"] == [3.0, 4.0] and second["values"] == [5.0]
    assert [p["depth"] for p in first["points"]] == [3, 1]
    assert [p["kind"] for p in first["points"]] == ["b", "a"]
    np.testing.assert_allclose([p["lr"] for p in first["points"]], [1e-2, 1.0])


def test_equal_runs_have_no_outlier():
    tasks = tasks_of(*[[0.0, 1.0, 0.5]] * 6)
    selection = made_up(tasks)
    answers = selection.answers
    late = np.ones(len(selection.exam.contexts), bool)
    rows = _by_task(tasks, selection, answers, answers, late, spread_of(tasks))
    assert len(rows) == 6 and not any(row["outlier"] for row in rows)


def test_a_model_that_has_no_say_has_no_numbers():
    answers = answers_of(np.zeros((1, 2, 2, 3)))
    assert _side(answers, 1.0, np.zeros(2, bool)) == {}
    first = _side(answers, 1.0, np.array([True, False]))
    assert first["log_likelihood_by_context"] == [0.0, None]
    assert first["error_by_context"] == [0.0, None]


def test_an_interrupted_choice_says_that_nobody_knows():
    tasks = tasks_of(*RUNS)
    selection = made_up(tasks, answers=None, judged=None, interrupted=True)
    findings = findings_of(tasks, selection, BUDGET, Watch(None))
    assert findings["interrupted"] is True and "held_out" not in findings
    assert "not judged on held-out runs" in findings["verdict"]
    assert INTERRUPTED in read_findings(json.loads(json.dumps(findings, allow_nan=False))).notes


def test_notes_say_what_the_reader_should_know():
    few = tasks_of([0.1, 0.2], [0.3, 0.1])
    notes = _notes(few, made_up(few))
    assert notes[0].startswith("There are only 2 past runs")
    assert "The past tasks differ in level, and the prior allows for that." in notes
    many = tasks_of(*RUNS)
    plain = made_up(many, method=FPacohMap())
    assert _notes(many, plain) == []
    both = made_up(many, method=FPacohMap(offset=True, amplitude=True))
    assert "differ in level and amplitude" in _notes(many, both)[0]


@pytest.mark.parametrize("value", [0.0, 7.0, 0.1])
def test_equal_values_are_noted(value):
    tasks = tasks_of(*[[value] * 3] * 6)
    (note,) = _notes(tasks, made_up(tasks, method=FPacohMap()))
    assert note == "All past values are equal: there is nothing to learn from them."


def test_runs_of_one_point_are_judged_without_a_averaged_gp():
    tasks = tasks_of(*[[0.1 * i] for i in range(6)])
    selection = made_up(tasks)
    findings = findings_of(tasks, selection, BUDGET, Watch(None))
    assert findings["held_out"]["vanilla"] == {} and "replay" not in findings
    assert "too short to say" in findings["verdict"]
    read_findings(json.loads(json.dumps(findings, allow_nan=False)))


def test_the_only_long_run_need_not_be_examined():
    tasks = tasks_of(*[[0.1, 0.2]] * 200, [0.1 * i for i in range(20)])
    findings = findings_of(tasks, made_up(tasks), BUDGET, Watch(None))
    assert max(findings["held_out"]["contexts"]) == 1
