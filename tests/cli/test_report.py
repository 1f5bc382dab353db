"""`metaprior report`: where it writes, what it prints, how it refuses."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import metaprior as mp
from metaprior.cli._app import app

VERDICT = "This prior is calibrated and saves about 7 evaluations."
FINDINGS = {
    "verdict": VERDICT,
    "held_out": {"learned": {"calibration_error": 0.05}, "vanilla": {"calibration_error": 0.2}},
    "replay": {"saved_evaluations": 7.3, "saved_interval": [4.1, float("nan")]},
    "tasks": [{"task": 0}, {"task": "week 3", "outlier": True}],
}


def invoke(*arguments):
    # The suite's own settings of JAX stay what they are.
    settings = {"JAX_LOGGING_LEVEL": "WARNING", "JAX_COMPILATION_CACHE_DIR": "", "COLUMNS": "100"}
    return CliRunner().invoke(app, [str(each) for each in arguments], env=settings)


def learn_vanilla():
    runs = [([[0.1], [0.5]], [0.0, 1.0]), ([[0.2], [0.9]], [0.5, 0.1])]
    tasks = mp.Tasks.from_runs(runs, space=mp.Space(x=mp.Real(0.0, 1.0)))
    return replace(mp.learn(tasks, method=mp.methods.FixedGP()), findings=FINDINGS)


@pytest.fixture
def saved(tmp_path):
    return learn_vanilla().save(tmp_path / "prior")


def test_writes_into_the_folder_and_prints_the_verdict(saved):
    result = invoke("report", saved)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{VERDICT}\nReport: {saved / 'report.html'}\n"
    assert VERDICT in (saved / "report.html").read_text()
    assert invoke("report", saved).exit_code == 0


def test_the_prior_stays_valid_and_a_saved_one_drops_the_report(saved):
    invoke("report", saved)
    loaded = mp.load(saved)
    assert loaded.findings["verdict"] == VERDICT
    loaded.save(saved)
    assert not (saved / "report.html").exists() and mp.load(saved).method == loaded.method


def test_json_has_the_main_numbers(saved, tmp_path):
    out = tmp_path / "new" / "page.html"
    result = invoke("report", saved, "--out", out, "--json")
    assert result.exit_code == 0 and out.is_file() and not (saved / "report.html").exists()
    found = json.loads(result.stdout)
    assert found == {
        "report": str(out),
        "verdict": VERDICT,
        "saved_evaluations": 7.3,
        "saved_interval": None,
        "calibration_error": 0.05,
        "vanilla_calibration_error": 0.2,
        "log_likelihood": None,
        "vanilla_log_likelihood": None,
        "outliers": ["week 3"],
        "notes": [],
    }


def test_refusals_are_one_sentence(saved, tmp_path):
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    for arguments, words in (
        ([tmp_path / "nowhere"], "There is no prior in"),
        ([saved, "--out", tmp_path], "it is a folder; name a file"),
        ([saved, "--out", mine], "a file that is no report is there"),
    ):
        result = invoke("report", *arguments)
        assert result.exit_code == 2 and result.stdout == ""
        assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert mine.read_text() == "<p>mine</p>"


def test_damaged_findings_are_one_sentence(saved):
    path = saved / "prior.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"findings": {"tasks": 3}}))
    result = invoke("report", saved)
    assert result.exit_code == 2 and "'tasks' is 3 where a list" in result.stderr
    assert not (saved / "report.html").exists()


def test_a_missing_matplotlib_is_named(saved, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = invoke("report", saved)
    assert result.exit_code == 2 and "pip install 'metaprior[plots]'" in result.stderr
