"""The record of what was measured: to JSON and back, and one sentence for what is damaged."""

import json
from dataclasses import replace

import pytest

from metaprior.findings import (
    INTERRUPTED,
    NOTHING_MEASURED,
    Chosen,
    Example,
    Findings,
    HeldOutScores,
    PastTask,
    PredictionScores,
    Replay,
    StoppingCalibration,
)

FINDINGS = Findings(
    verdict="It is calibrated.",
    held_out=HeldOutScores(
        folds=2,
        tasks=3,
        contexts=(0, 2),
        levels=(0.5, 0.9),
        learned=PredictionScores((0.4, 0.8), 0.1, (0.0, 0.3), -1.5, None, (None, 0.5), (1.0, 0.25)),
    ),
    replay=Replay((1, 2), (1.0, 0.0), (2.0, 0.5), (3.0, 1.0), 3, 1.5, (0.5, 2.5)),
    tasks=(PastTask(0, 5, 0.5, None), PastTask(2, 7, -9.0, 0.25, outlier=True)),
    examples=(Example(({"lr": 0.1, "act": "tanh"},), (3.0,)),),
    chosen=Chosen({"kappa": 0.05, "hyper_prior": None}, 200, 3),
    tried=8,
    budget="fast",
    seconds=1.5,
    interrupted=True,
    notes=("Few runs.",),
    stopping=StoppingCalibration((0.25, 0.75), (0.5, 0.9), 60, 10),
)


def test_stopping_calibration_is_linear_between_its_places_and_constant_outside():
    found = StoppingCalibration((0.25, 0.75), (0.5, 0.9), 60, 10)
    told = [found(stated) for stated in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert told == pytest.approx([0.5, 0.5, 0.7, 0.9, 0.9])
    assert StoppingCalibration((0.5,), (0.6,), 40, 9)(0.9) == 0.6


@pytest.mark.parametrize(
    ("stated", "happened", "words"),
    [
        ((0.1, 0.2), (0.3,), "'findings.stopping.happened' has 1 numbers where 2 should be"),
        ((), (), "'findings.stopping' is empty"),
        ((0.2, 0.1), (0.3, 0.4), "not a rising curve"),
        ((0.1, 0.2), (0.4, 0.3), "not a rising curve"),
        ((0.1, 0.2), (0.4, 1.3), "not a rising curve"),
    ],
)
def test_stopping_calibration_that_is_damaged_is_refused(stated, happened, words):
    data = {"stated": stated, "happened": happened, "outcomes": 60, "runs": 10}
    with pytest.raises(ValueError, match=words):
        Findings.from_json({"verdict": "", "stopping": data})


@pytest.mark.parametrize("findings", [FINDINGS, NOTHING_MEASURED], ids=["full", "empty"])
def test_findings_come_back_from_json(findings):
    plain = findings.to_json()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert Findings.from_json(plain) == findings


def test_findings_are_stored_under_the_names_of_their_fields():
    plain = FINDINGS.to_json()
    assert plain["held_out"]["learned"]["log_likelihood_by_context"] == [None, 0.5]
    assert plain["held_out"]["baseline"]["coverage"] == []
    assert plain["replay"]["baseline"] == [2.0, 0.5]
    assert plain["tasks"][1]["baseline_log_likelihood"] == 0.25
    (example,) = plain["examples"]
    points = [{"lr": 0.1, "act": "tanh"}]
    assert example == {"points": points, "values": [3.0], "features": {}, "name": None}
    assert "vanilla" not in json.dumps(plain)


def test_findings_that_are_missing_were_not_measured():
    assert Findings.from_json({"verdict": "Fine."}) == Findings("Fine.")
    scores = {"learned": {"calibration_error": 0.1}}
    found = Findings.from_json({"verdict": "Fine.", "held_out": scores, "replay": None})
    assert found.held_out == HeldOutScores(learned=PredictionScores(calibration_error=0.1))
    assert found.replay is None


def test_findings_that_are_not_finite_were_not_measured():
    text = '{"verdict": "", "seconds": Infinity, "tasks": [{"task": 1, "log_likelihood": NaN}]}'
    found = Findings.from_json(json.loads(text))
    assert found.seconds is None and found.tasks == (PastTask(1),)


def test_findings_remark_on_an_interruption_first():
    assert FINDINGS.remarks == (INTERRUPTED, "Few runs.")
    assert replace(FINDINGS, interrupted=False).remarks == ("Few runs.",)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ({"verdict": None}, "'findings.verdict' is None where text should be"),
        ({"held_out": 3}, "'findings.held_out' is 3 where named values should be"),
        ({"held_out": {"tasks": 2.5}}, "'findings.held_out.tasks' is 2.5 where a whole number"),
        ({"held_out": {"tasks": True}}, "'findings.held_out.tasks' is True where a whole number"),
        ({"notes": "text"}, "'findings.notes' is 'text' where a list should be"),
        ({"tasks": 3}, "'findings.tasks' is 3 where a list should be"),
        ({"tasks": [7]}, "'findings.tasks' is 7 where named values should be"),
        ({"tasks": [{}]}, "'findings.tasks.task' is missing"),
        ({"tasks": [{"task": 0, "outlier": 1}]}, "'findings.tasks.outlier' is 1 where true or"),
        ({"tried": "many"}, "'findings.tried' is 'many' where a whole number should be"),
        ({"seconds": [1]}, "'findings.seconds' is [1] where a number should be"),
        ({"chosen": {"settings": []}}, "'findings.chosen.settings' is [] where named values"),
        ({"replay": {"saved_interval": [1]}}, "'findings.replay.saved_interval' is [1] where a l"),
        (
            {"replay": {"steps": [1, 2], "learned": [1]}},
            "'findings.replay.learned' has 1 numbers where 2 should be",
        ),
        (
            {"held_out": {"levels": [0.5], "baseline": {"coverage": [0.1, 0.2]}}},
            "'findings.held_out.baseline.coverage' has 2 numbers where 1 should be",
        ),
        (
            {"held_out": {"contexts": [0], "learned": {"error_by_context": [0.1, 0.2]}}},
            "'findings.held_out.learned.error_by_context' has 2 numbers where 1 should be",
        ),
        (
            {"examples": [{"points": [{}], "values": [1.0, 2.0]}]},
            "'findings.examples.values' has 2 numbers where 1 should be",
        ),
    ],
)
def test_findings_that_are_damaged_are_named(damage, problem):
    with pytest.raises(ValueError) as caught:
        Findings.from_json({"verdict": "Fine."} | damage)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("data", [None, [], "text"])
def test_findings_must_be_named_values(data):
    with pytest.raises(ValueError, match="^'findings' is .* where named values should be$"):
        Findings.from_json(data)


@pytest.mark.parametrize("point", [{"x": float("inf")}, {"x": [1.0, {"y": float("nan")}]}])
def test_findings_refuse_infinite_numbers_inside_of_points(point):
    data = NOTHING_MEASURED.to_json() | {"examples": [{"points": [point], "values": [1.0]}]}
    with pytest.raises(ValueError, match="where finite numbers should be"):
        Findings.from_json(data)
