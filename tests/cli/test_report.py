"""`metaprior report`: where it writes, what it prints, what it refuses."""

import json
import os
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import metaprior as mp
from metaprior.cli._app import app
from metaprior.findings import Findings, HeldOutScores, PastTask, PredictionScores, Replay
from tests.saved import reseal

VERDICT = "This prior is calibrated and saves about 7 evaluations."
FINDINGS = Findings(
    verdict=VERDICT,
    held_out=HeldOutScores(
        learned=PredictionScores(calibration_error=0.05),
        baseline=PredictionScores(calibration_error=0.2),
    ),
    replay=Replay(saved_evaluations=7.3, saved_interval=(4.1, 10.2)),
    tasks=(PastTask(0), PastTask(3, outlier=True)),
)


def invoke(*arguments):
    # The suite's own settings of JAX stay what they are.
    settings = {"JAX_LOGGING_LEVEL": "WARNING", "JAX_COMPILATION_CACHE_DIR": "", "COLUMNS": "100"}
    return CliRunner().invoke(app, [str(each) for each in arguments], env=settings)


def learn_fixed():
    runs = [([[0.1], [0.5]], [0.0, 1.0]), ([[0.2], [0.9]], [0.5, 0.1])]
    tasks = mp.Tasks.from_runs(runs, space=mp.Space(x=mp.Real(0.0, 1.0)))
    return replace(mp.learn(tasks, method=mp.methods.FixedGP()), findings=FINDINGS)


@pytest.fixture
def saved(tmp_path):
    return learn_fixed().save(tmp_path / "prior")


def test_report_is_written_into_the_folder_and_the_verdict_printed(saved):
    result = invoke("report", saved)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{VERDICT}\nReport: {saved / 'report.html'}\n"
    assert VERDICT in (saved / "report.html").read_text()
    assert invoke("report", saved).exit_code == 0


def test_report_leaves_the_prior_valid_and_saving_again_drops_it(saved):
    invoke("report", saved)
    loaded = mp.load(saved)
    assert loaded.findings == FINDINGS
    loaded.save(saved)
    assert not (saved / "report.html").exists() and mp.load(saved).method == loaded.method


def test_report_json_has_the_main_numbers(saved, tmp_path):
    out = tmp_path / "new" / "page.html"
    result = invoke("report", saved, "--out", out, "--json")
    assert result.exit_code == 0 and out.is_file() and not (saved / "report.html").exists()
    found = json.loads(result.stdout)
    assert found == {
        "report": str(out),
        "verdict": VERDICT,
        "baseline": "averaged GP",
        "saved_evaluations": 7.3,
        "saved_interval": [4.1, 10.2],
        "calibration_error": 0.05,
        "calibration_interval": None,
        "baseline_calibration_error": 0.2,
        "log_likelihood": None,
        "baseline_log_likelihood": None,
        "outliers": ["run 4"],
        "notes": [],
    }


def test_report_refuses_in_one_sentence(saved, tmp_path):
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # to read from it is to wait forever
    for arguments, words in (
        ([tmp_path / "nowhere"], "There is no prior in"),
        ([saved, "--out", tmp_path], "it is a folder; name a file"),
        ([saved, "--out", mine], "a file that is not a report is there"),
        ([saved, "--out", pipe], "a file that is not a report is there"),
    ):
        result = invoke("report", *arguments)
        assert result.exit_code == 2 and result.stdout == ""
        assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert mine.read_text() == "<p>mine</p>"


def test_report_names_damaged_findings_in_one_sentence(saved):
    damaged = {"findings": {"verdict": VERDICT, "tasks": 3}}
    reseal(saved, description=lambda content: content | damaged)
    result = invoke("report", saved)
    assert result.exit_code == 2 and "'findings.tasks' is 3 where a list" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (saved / "report.html").exists()


def test_report_names_a_missing_matplotlib(saved, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = invoke("report", saved)
    assert result.exit_code == 2 and "pip install 'metaprior[plots]'" in result.stderr
