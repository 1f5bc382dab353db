"""`metaprior learn`: what it reads, says, saves and refuses; not how well it learns."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import metaprior as mp
from metaprior.cli import _learn, _place
from metaprior.cli._learn_progress import LearnBar
from metaprior.findings import Example, Findings, HeldOutScores, PastTask, PredictionScores, Replay
from tests.commands import invoke
from tests.quick_learn import quick_learn

pytestmark = pytest.mark.usefixtures("no_cache")

FINDINGS = Findings(
    verdict="This prior is calibrated and saves about 7 evaluations.",
    held_out=HeldOutScores(
        tasks=6,
        learned=PredictionScores(calibration_error=0.081, log_likelihood=1.25),
        baseline=PredictionScores(calibration_error=0.2, log_likelihood=-0.5),
    ),
    replay=Replay(saved_evaluations=7.3, saved_interval=(4.1, 10.2)),
    tasks=(PastTask(0), PastTask(3, outlier=True, name="oven-3")),
    notes=("Only 6 past runs.",),
)


@pytest.fixture
def runs(tmp_path, hill_runs):
    folder = tmp_path / "runs"
    folder.mkdir()
    for i, (points, values) in enumerate(hill_runs):
        rows = "".join(f"{x},{z},{y}\n" for (x, z), y in zip(points, values, strict=True))
        (folder / f"run{i}.csv").write_text("x,z,height\n" + rows)
    return folder


@pytest.fixture
def learned(learned):
    learned.findings = FINDINGS
    learned.stages = (("Searching", 0.1), ("Searching", 0.5), ("Training", 0.9))
    return learned


@pytest.mark.parametrize(
    ("options", "private", "examples"),
    [([], False, 1), (["--no-examples"], False, 0), (["--private"], True, 0)],
)
def test_learn_command_keeps_examples_only_if_it_may(
    runs, learned, tmp_path, options, private, examples
):
    told = Example(points=({"x": 0.5, "z": 1.0},), values=(1.25,))
    learned.findings = replace(FINDINGS, examples=(told,))
    done = invoke("learn", runs, "--out", tmp_path / "prior", *options)
    assert done.exit_code == 0, done.output
    assert learned.options["private"] is private
    findings = mp.load(tmp_path / "prior").findings
    assert findings is not None and len(findings.examples) == examples
    card = (tmp_path / "prior" / "README.md").read_text()
    assert ("points and values of 1 run" in card) == bool(examples)


def test_learn_command_says_which_points_stay_without_examples(
    runs, learned, tmp_path, monkeypatch
):
    monkeypatch.setattr("metaprior.cli._learn.runs_held", lambda arrays: 6)
    words = "Note: the arrays hold the points of 6 past runs"
    for name, options, is_said in (("all", [], False), ("none", ["--no-examples"], True)):
        done = invoke("learn", runs, "--out", tmp_path / name, *options)
        assert done.exit_code == 0 and (words in done.stdout) is is_said


def test_learn_command_ends_with_a_command_to_copy(runs, learned, tmp_path):
    out = tmp_path / "it's $HOME; ls"
    done = invoke("learn", runs, "--out", out)
    assert done.exit_code == 0
    command = done.stdout.rpartition("a report to read: ")[2]
    assert shlex.split(command) == ["metaprior", "report", str(out)]


def test_learn_command_reads_learns_and_saves(runs, learned, tmp_path, hill_runs):
    out = tmp_path / "deep" / "prior"
    done = invoke("learn", runs, "--out", out, "--seed", 3, "--budget", "fast")
    assert done.exit_code == 0, done.stderr
    assert (learned.options["budget"], learned.options["seed"]) == ("fast", 3)
    for i, (_, values) in enumerate(hill_runs):
        np.testing.assert_array_equal(learned.tasks.run(i)[1], values)
    assert mp.load(out).findings == FINDINGS
    words = " ".join(done.stdout.split())
    for phrase in (
        "Read 6 runs from 6 files: 36 points, 1 to 8 per run; height is maximized.",
        "Note: The value is taken from 'height', the last column of numbers.",
        '[x] kind = "real" low = -',
        "This prior is calibrated and saves about 7 evaluations.",
        "Predictions of held-out runs (6 runs)",
        "learned prior 1.250 0.081",
        "averaged GP -0.500 0.200",
        "Evaluations saved per run, relative to an averaged GP, in replays of recorded points: "
        "7.3 (95 % interval 4.1 to 10.2).",
        "Note: Only 6 past runs.",
        "Note: unlike the other runs, so check them: oven-3.",
        f"Saved in {out}. Next, a report to read: metaprior report {out}",
    ):
        assert phrase in words, phrase
    stages = [line.split(" (")[0] for line in done.stderr.splitlines()]
    assert stages == ["Searching", "Training"]
    assert "32 settings, best held-out score 1.250)" in done.stderr


def test_learn_command_accepts_the_space_it_printed(runs, learned, tmp_path):
    first = invoke("learn", f"{runs}/*.csv", "--out", tmp_path / "one")
    toml = first.stdout[first.stdout.index("[x]") : first.stdout.index("This prior")]
    (tmp_path / "space.toml").write_text(toml)
    inferred = learned.tasks.space
    done = invoke(
        *("learn", *sorted(runs.iterdir()), "--space", tmp_path / "space.toml"),
        *("--value", "height", "--direction", "minimize", "--out", tmp_path / "two"),
    )
    assert done.exit_code == 0, done.stderr
    assert learned.tasks.space == inferred and learned.tasks.direction == "minimize"
    assert "[x]" not in done.stdout and "Note: The value" not in done.stdout
    assert mp.load(tmp_path / "two").direction == "minimize"


def test_learn_command_json_is_one_object(runs, learned, tmp_path):
    done = invoke("learn", runs, "--out", tmp_path / "prior", "--json", "--budget", "2.5")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["prior"] == str(tmp_path / "prior") and learned.options["budget"] == 2.5
    assert found["runs"]["names"] == [f"run{i}" for i in range(6)]
    assert found["runs"]["points"] == [1, 5, 6, 8, 8, 8]
    assert found["space"]["inferred"] is True
    assert [each["name"] for each in found["space"]["dimensions"]] == ["x", "z"]
    assert found["findings"] == FINDINGS.to_json()
    assert found["findings"]["held_out"]["baseline"]["log_likelihood"] == -0.5
    assert "Searching" in done.stderr


def test_learn_command_saves_a_prior_without_findings(runs, learned, tmp_path):
    learned.findings = None
    done = invoke("learn", runs, "--out", tmp_path / "prior")
    assert done.exit_code == 0, done.stderr
    assert "Saved in" in done.stdout and "held-out" not in done.stdout
    assert mp.load(tmp_path / "prior").findings is None


def test_learn_command_saves_the_best_prior_when_interrupted(runs, learned, tmp_path):
    learned.findings = replace(FINDINGS, interrupted=True)
    done = invoke("learn", runs, "--out", tmp_path / "prior")
    assert done.exit_code == 130
    assert "Stopped early: this is the best prior so far." in done.stdout
    assert mp.load(tmp_path / "prior").findings == learned.findings


def test_learn_command_keeps_an_existing_prior_without_force(runs, learned, tmp_path):
    out = tmp_path / "prior"
    assert invoke("learn", runs, "--out", out).exit_code == 0
    (out / "report.html").write_text("about it")
    before = (out / "prior.json").read_bytes()
    del learned.tasks
    learned.findings = Findings("Another one.")
    done = invoke("learn", runs, "--out", out)
    assert done.exit_code == 2
    assert done.stderr == (
        f"Error: There is a prior in {out} already; name another folder with --out, or replace it "
        "with --force.\n"
    )
    assert (out / "prior.json").read_bytes() == before and not hasattr(learned, "tasks")
    done = invoke("learn", runs, "--out", out, "--force")
    assert done.exit_code == 0, done.stderr
    assert mp.load(out).findings == Findings("Another one.")


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("name", ["thesis.tex", "prior.safetensors"])
def test_learn_command_refuses_a_folder_that_is_not_a_prior(runs, learned, tmp_path, force, name):
    out = tmp_path / "mine"
    out.mkdir()
    (out / name).write_text("mine")
    done = invoke("learn", runs, "--out", out, *force)
    assert done.exit_code == 2 and not hasattr(learned, "tasks")
    assert done.stderr.startswith(f"Error: Cannot save a prior to {out}: it holds {name!r}")
    assert [path.read_text() for path in out.iterdir()] == ["mine"]


def test_learn_command_refuses_places_where_nothing_can_be_saved(runs, learned, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    for out, problem in (
        (tmp_path / "file", "it is a file; name a folder."),
        (
            tmp_path / "file" / "prior",
            f"{tmp_path / 'file'} cannot be written to (not a directory)",
        ),
        (tmp_path / "link", "it is a link to a folder that does not exist; make that, or remove"),
    ):
        done = invoke("learn", runs, "--out", out)
        assert done.exit_code == 2 and problem in done.stderr, done.stderr
    assert not hasattr(learned, "tasks")


def test_learn_command_checks_that_it_can_write_before_it_learns(
    runs, learned, tmp_path, monkeypatch
):
    def read_only(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    done = invoke("learn", runs, "--out", tmp_path / "prior")
    assert done.exit_code == 2 and "(read-only file system); name another" in done.stderr
    assert not hasattr(learned, "tasks") and not (tmp_path / "prior").exists()


def test_learn_command_saves_in_a_second_place_if_the_first_fails(
    runs, learned, tmp_path, monkeypatch
):
    """Another process puts a file there while the prior is being learned."""
    out = tmp_path / "prior"

    def learn(tasks, **options):
        out.write_text("mine")
        return quick_learn(tasks, Findings("Learned."))

    monkeypatch.setattr(_learn, "learn", learn)
    done = invoke("learn", runs, "--out", out)
    assert done.exit_code == 2 and out.read_text() == "mine"
    assert f"The prior that was learned is in {out}-2." in done.stderr
    assert f"Saved in {out}-2." in done.stdout
    assert mp.load(f"{out}-2").findings == Findings("Learned.")


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_learn_command_keeps_both_priors_of_two_that_end_at_once(
    runs, learned, tmp_path, monkeypatch, force
):
    out = tmp_path / "prior"
    if force:
        assert invoke("learn", runs, "--out", out).exit_code == 0

    def learn(tasks, **options):
        quick_learn(tasks, Findings("The other one.")).save(out)
        return quick_learn(tasks, Findings("This one."))

    monkeypatch.setattr(_learn, "learn", learn)
    done = invoke("learn", runs, "--out", out, *force)
    assert done.exit_code == 2
    assert f"Another prior has been saved in {out} already. The prior that was" in done.stderr
    assert mp.load(out).findings == Findings("The other one.")
    assert mp.load(f"{out}-2").findings == Findings("This one.")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("none.csv",), "none.csv cannot be read: no such file or directory; repair that or"),
        (("no*.csv",), "No file matches no*.csv; check the pattern."),
        (("runs", "--budget", "soon"), "--budget is 'soon'; give fast, normal, thorough, or a n"),
        (("runs", "--budget", "0"), "--budget is '0'; give fast, normal, thorough, or a number"),
        (("runs", "--budget", "nan"), "--budget is 'nan'; give fast, normal, thorough, or a num"),
        (("runs", "--direction", "up"), "Unknown direction 'up'; give 'maximize' or 'minimize'."),
        (("runs", "--space", "none.toml"), "The space file none.toml cannot be read: no such f"),
        (("runs", "--task", "who"), "No file has a column 'who'; name one of those in runs/run0"),
        (("runs", "--ignore", "z", "--ignore", "y"), "No file has a column 'y'; name one of th"),
        (("runs", "--value", "score"), "runs/run0.csv has no column 'score' for the value; add"),
        (("runs/run1.csv",), "Learning a prior needs at least 2 runs with values, received 1"),
    ],
)
def test_learn_command_answers_bad_input_in_one_sentence(
    runs, learned, tmp_path, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    done = invoke("learn", *arguments, "--out", "deep/prior")
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith(f"Error: {sentence}"), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not hasattr(learned, "tasks")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_learn_command_survives_an_interrupt_while_saving(runs, learned, tmp_path, monkeypatch):
    save, interrupts = _place.save_prior, []

    def interrupted(prior, folder, **options):
        interrupts.append(folder)
        os.kill(os.getpid(), signal.SIGINT)
        return save(prior, folder, **options)

    monkeypatch.setattr(_place, "save_prior", interrupted)
    before = signal.getsignal(signal.SIGINT)
    done = invoke("learn", runs, "--out", tmp_path / "prior")
    assert done.exit_code == 0, done.stderr
    assert interrupts == [tmp_path / "prior"]
    assert mp.load(tmp_path / "prior").findings == FINDINGS
    assert signal.getsignal(signal.SIGINT) is before


def test_learn_bar_shows_on_a_terminal(capsys):
    progress = SimpleNamespace(stage="Searching", fraction=0.25, trying="[8] settings", best=None)
    with LearnBar(Console(force_terminal=True, width=100)) as bar:
        bar(progress)
        bar._bar.refresh()
    shown = capsys.readouterr().out
    assert "25 %" in shown and "[8] settings" in shown and "best" not in shown


def test_learn_command_help_names_the_options():
    found = invoke("learn", "--help").stdout
    for option in ("--out", "--space", "--direction", "--value", "--task", "--budget", "--json"):
        assert option in found


@pytest.mark.slow
def test_learn_command_from_files_to_a_prior_as_a_process(runs, tmp_path):
    """Nothing replaced: files in, prior out, and the prior optimises."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "metaprior.cli", "learn", str(runs)),
            *("--out", str(tmp_path / "prior"), "--budget", "fast", "--json"),
        ],
        capture_output=True,
        text=True,
        # Most of it is compilation, and `learn` has compiled the same in other tests.
        env={**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["findings"]["held_out"]["tasks"] == 6
    prior = mp.load(tmp_path / "prior")
    point = mp.Optimizer(prior, seed=0).ask()
    assert set(point) == {"x", "z"}
