"""The demo from the command line: what it writes and prints, and how it refuses."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import metaprior as mp
from metaprior.cli._app import app
from metaprior.cli._stages import Stages

WRITTEN = {"metaprior-demo.png", "results.json", "prior"}


def invoke(*arguments):
    # The suite's own settings of JAX stay what they are.
    settings = {"JAX_LOGGING_LEVEL": "WARNING", "JAX_COMPILATION_CACHE_DIR": "", "COLUMNS": "100"}
    return CliRunner().invoke(app, [str(each) for each in arguments], env=settings)


class Demo(NamedTuple):
    """What a quick demo left: its folder, its tables, the file of its numbers, its progress, and
    the JSON that the same demo printed when it ran again over its own output."""

    out: Path
    tables: str
    numbers: str
    progress: list[str]
    printed_json: str


BOTH_DEMOS = """
import sys
from pathlib import Path
from metaprior.cli._app import app

arguments = ["demo", "--quick", "--seed", "3", "--out", sys.argv[1]]
app(arguments, standalone_mode=False)
print(sys.argv[2], Path(sys.argv[1], "results.json").read_text(), sep="", end=sys.argv[2])
app([*arguments, "--json"], standalone_mode=False)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("somewhere") / "deep" / "demo"
    # The computations are tiny and compiling them is not: compiled carelessly, it takes half.
    settings = {
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_PLATFORMS": "cpu",
        "COLUMNS": "100",
    }
    done = subprocess.run(
        [sys.executable, "-c", BOTH_DEMOS, str(out), "=====\n"],
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tables, numbers, printed = done.stdout.split("=====\n")
    return Demo(out, tables, numbers, done.stderr.splitlines(), printed)


@pytest.mark.slow
def test_demo_writes_picture_numbers_and_prior(demo):
    assert {path.name for path in demo.out.iterdir()} == WRITTEN
    header = (demo.out / "metaprior-demo.png").read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", header[16:24]) == (2000, 1300)


@pytest.mark.slow
def test_demo_saves_a_usable_prior(demo):
    prior = mp.load(demo.out / "prior", space=mp.lab.environments.Branin().space)
    assert prior.trained_on["tasks"] == 4
    mean, std = prior.condition([], []).predict([{"x1": 0.0, "x2": 5.0}])
    assert -1000 < mean[0] < 1000 and 0 < std[0] < 1000


@pytest.mark.slow
def test_demo_prints_tables_that_say_what_was_done(demo):
    words = " ".join(demo.tables.split())
    for phrase in (
        "Simple regret on 3 unseen Branin tasks: mean ± 95 % interval",
        "5 queries 10 queries",
        "F-PACOH",
        "fixed GP",
        "random search",
        "4 past runs of 6 queries",
        "calibration error log-likelihood",
        str(demo.out / "metaprior-demo.png"),
    ):
        assert phrase in words, phrase


@pytest.mark.slow
def test_demo_reports_progress_as_lines_without_a_terminal(demo):
    places = [f"[{i}/9]" for i in range(1, 10)]
    assert [line.split()[0] for line in demo.progress] == 2 * places


@pytest.mark.slow
def test_demo_json_is_the_file_and_the_same_for_the_same_seed(demo):
    assert demo.printed_json == demo.numbers


@pytest.mark.slow
def test_demo_numbers_have_their_places(demo):
    found = json.loads(demo.numbers)
    assert found["seed"] == 3
    assert set(found["simple_regret"]) == {"F-PACOH", "fixed GP", "random search"}
    for regret in found["simple_regret"].values():
        assert set(regret) == {"5", "10"}
        assert -1e-9 <= regret["10"]["mean"] <= regret["5"]["mean"] < 400
        assert regret["5"]["half_width_95"] >= 0
    for by_size in found["predictions"].values():
        assert set(by_size) == {"1", "8"}
        for measures in by_size.values():
            assert 0 <= measures["calibration_error"] <= 1
            assert 0 <= measures["coverage_of_95_percent"] <= 1
            assert np.isfinite(measures["log_likelihood"])


def test_demo_refuses_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    result = invoke("demo", "--quick", "--out", path)
    assert result.exit_code == 2 and result.stdout == ""
    assert (
        result.stderr == f"Error: Cannot write the demo to {path}: it is a file; name a folder.\n"
    )
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.tex": "mine"},
        # The right names alone do not make a folder ours: this prior may be the only copy.
        {"prior": "mine"},
        {"results.json": '{"accuracy": 1}'},
        {"results.json": "not json"},
        {"results.json": '{"made_by": "metaprior demo"}', "thesis.tex": "mine"},
    ],
)
def test_demo_refuses_a_folder_with_foreign_files(tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    result = invoke("demo", "--quick", "--out", tmp_path)
    assert result.exit_code == 2
    assert "which no demo wrote" in result.stderr and len(result.stderr.splitlines()) == 1
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_demo_refuses_wrong_options():
    for arguments in (["demo", "--sedd", "1"], ["demo", "--seed", "-1"], ["demmo"]):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert "Usage" in result.stderr and "Traceback" not in result.output


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (
            ValueError("The runs are empty; give some."),
            2,
            "Error: The runs are empty; give some.\n",
        ),
        (mp.PriorFileError("No prior here."), 2, "Error: No prior here.\n"),
        (FloatingPointError("The mean is not finite."), 2, "Error: The mean is not finite.\n"),
        (
            OSError(28, "No space left on device", "d/x"),
            2,
            "Error: d/x: No space left on device.\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_cli_turns_what_the_library_raises_into_a_sentence(raised, code, message, monkeypatch):
    def fail(*_, **__):
        raise raised

    monkeypatch.setattr("metaprior.cli._demo.run_demo", fail)
    result = invoke("demo")
    assert (result.exit_code, result.stderr) == (code, message)


def test_demo_names_a_missing_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = invoke("demo", "--out", tmp_path)
    assert result.exit_code == 2 and "pip install 'metaprior[plots]'" in result.stderr


def test_cli_help_and_version():
    assert "demo" in invoke("--help").stdout
    assert "--quick" in invoke("demo", "--help").stdout
    assert invoke("--version").stdout == f"metaprior {mp.__version__}\n"


def test_cli_version_loads_neither_plots_nor_studies():
    code = (
        "import sys; sys.argv = ['metaprior', '--version']\n"
        "from metaprior.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print({'matplotlib', 'metaprior.lab.studies'} & set(sys.modules))"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"metaprior {mp.__version__}\nset()\n"


@pytest.mark.slow
def test_demo_as_a_module_refuses_bad_input_in_one_sentence(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    del environment["JAX_COMPILATION_CACHE_DIR"]  # the folder of the tests
    done = subprocess.run(
        [sys.executable, "-m", "metaprior.cli", "demo", "--out", str(path)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ") and len(done.stderr.splitlines()) == 1
    assert (tmp_path / "cache" / "metaprior").is_dir()


def test_demo_ends_at_an_interrupt_wherever_it_arrives():
    code = """
import gc, os, signal, sys
import metaprior.cli._demo
from metaprior.cli import main

def interrupted(*_, **__):
    # What is raised in a callback of the garbage collector is swallowed.
    gc.callbacks.append(lambda *_: os.kill(os.getpid(), signal.SIGINT))
    gc.collect()
    gc.callbacks.clear()
    print("went on")

metaprior.cli._demo.run_demo = interrupted
sys.argv = ["metaprior", "demo"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_stages_show_a_bar_on_a_terminal(capsys):
    console = Console(force_terminal=True, width=100)
    with Stages(2, console) as stages:
        with stages.stage("Learning") as advance:
            advance(0.5)
            stages._bar.refresh()
    shown = capsys.readouterr().out
    assert "25 %" in shown and "[1/2] Learning" in shown
