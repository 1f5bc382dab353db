"""`metaprior suggest`, `tell` and `status` with a run in a CSV file: a technician's loop."""

import json
import math
import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import metaprior as mp
from metaprior.cli._app import app
from metaprior.data.csv import space_as_toml
from tests.commands import invoke

pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.fixture(scope="module")
def prior(tmp_path_factory, hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    learned = mp.learn(tasks, method=mp.methods.FixedGP())
    return learned.save(tmp_path_factory.mktemp("fixed") / "prior")


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run.csv"


def test_suggest_tell_and_status_in_turns(prior, run):
    done = invoke("suggest", "--prior", prior, "--run", run, "-n", 2)
    assert done.exit_code == 0, done.stderr
    assert "row 2: x = " in done.stdout and "row 3: x = " in done.stdout
    lines = run.read_text().splitlines()
    assert lines[0] == "x,z,value" and [line.endswith(",") for line in lines[1:]] == [True, True]
    assert lines[1] != lines[2]

    told = invoke("tell", "--prior", prior, "--run", run, "--row", 3, "-2.5")
    assert told.exit_code == 0, told.stderr
    assert told.stdout.startswith("row 3: ") and told.stdout.endswith("-> -2.5\n")
    assert invoke("tell", "--prior", prior, "--run", run, "--failed").exit_code == 0
    assert [line.rsplit(",", 1)[1] for line in run.read_text().splitlines()[1:]] == [
        "failed",
        "-2.5",
    ]
    assert run.read_text().splitlines()[2].startswith(lines[2])

    answer = json.loads(invoke("suggest", "--prior", prior, "--run", run, "--json").stdout)
    (row,) = answer["rows"]
    assert row["row"] == 4 and set(row["point"]) == {"x", "z"}
    status = json.loads(invoke("status", "--prior", prior, "--run", run, "--json").stdout)
    assert (status["observed"], status["failed"]) == (1, 1)
    row.pop("expected")
    assert status["pending"] == [row] and status["best"]["value"] == -2.5
    words = invoke("status", "--prior", prior, "--run", run).stdout
    assert "Best so far: -2.5 at x = " in words and "row 4 waits for a value" in words


def test_suggest_says_what_to_expect_of_points_that_can_be_set(prior, run, hill_runs):
    known = mp.load(prior)
    done = invoke("suggest", "--prior", prior, "--run", run, "--json")
    answer = json.loads(done.stdout)
    (row,) = answer["rows"]
    assert answer["stopping"] is None and row["expected"]["chance"] is None
    mean, std = known.condition([], []).predict([row["point"]])
    assert row["expected"]["value"] == pytest.approx(mean[0], rel=1e-9)
    assert row["expected"]["std"] == pytest.approx(std[0], rel=1e-9)
    assert invoke("tell", "--prior", prior, "--run", run, "0,5").exit_code == 0
    answer = json.loads(invoke("suggest", "--prior", prior, "--run", run, "--json").stdout)
    (row,) = answer["rows"]
    point = {name: float(f"{number:.3g}") for name, number in row["point"].items()}
    assert point == row["point"]
    after = known.condition([[run_point(run, "x"), run_point(run, "z")]], [0.5])
    mean, std = after.predict([point])
    beaten = 0.5 * math.erfc((0.5 - mean[0]) / (std[0] * math.sqrt(2.0)))
    assert row["expected"]["chance"] == pytest.approx(beaten, rel=1e-6)
    assert answer["stopping"]["improvement_left"] > 0 and not answer["stopping"]["done"]
    words = invoke("suggest", "--prior", prior, "--run", run).stdout
    assert re.search(r"expected \S+: \S+ \+- \S+ \(one standard deviation\); chance to", words)
    words = invoke("status", "--prior", prior, "--run", run).stdout
    assert "Improvement left: about " in words and "of the optimum is " in words


def run_point(path, name):
    """What the first row of the file says."""
    header, first = (line.split(",") for line in path.read_text().splitlines()[:2])
    return float(first[header.index(name)])


def test_tell_writes_a_value_that_is_far_from_plausible_when_asked(prior, run):
    run.write_text("x,z,value\n0.1,5,1\n0.3,6,\n")
    assert invoke("tell", "--prior", prior, "--run", run, "--yes", "-200").exit_code == 0
    assert run.read_text().endswith("0.3,6,-200\n")


def test_suggest_gives_the_same_points_for_the_same_file_and_seed(prior, tmp_path):
    text = "x,z,value\n0.1,5,1.5\n-0.5,2,\n"
    found = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        assert invoke("suggest", "--prior", prior, "--run", path, "--seed", seed).exit_code == 0
        assert path.read_text().startswith(text)
        found.append(path.read_text())
    assert found[0] == found[1]


def test_status_reads_values_typed_into_the_file(prior, run):
    run.write_bytes("x;z;value\r\n0,25;5;1,5\r\n".encode("utf-8-sig"))
    assert invoke("suggest", "--prior", prior, "--run", run).exit_code == 0
    assert invoke("tell", "--prior", prior, "--run", run, "1,75").exit_code == 0
    assert run.read_bytes().startswith(b"\xef\xbb\xbfx;z;value\r\n0,25;5;1,5\r\n")
    assert run.read_bytes().endswith(b";1,75\r\n") and b"." not in run.read_bytes()
    status = json.loads(invoke("status", "--prior", prior, "--run", run, "--json").stdout)
    assert status["best"]["value"] == 1.75


def test_status_shows_the_trust_of_a_guarded_prior(tmp_path, run, hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    method = mp.methods.Guarded(mp.methods.FixedGP())
    folder = mp.learn(tasks, method=method).save(tmp_path / "guarded")
    run.write_text("x,z,value\n0.3,6,2\n")
    done = invoke("status", "--prior", folder, "--run", run, "--json")
    assert 0.0 < json.loads(done.stdout)["trust"] < 1.0


BAD = "x,z,value\n0.1,5,good\n"


@pytest.mark.parametrize(
    ("arguments", "text", "words"),
    [
        (["suggest"], BAD, "row 2, column 'value': received 'good'"),
        (["tell", "1,234"], "x,z,value\n0.1,5,\n", "can be read as 1.234 and as 1234"),
        (["tell", "-200"], "x,z,value\n0.1,5,1\n0.3,6,\n", "check it, and say --yes"),
        (["suggest"], "a,b,value\n", "no column 'x', which is a dimension of the prior's space"),
        (["suggest", "--space", "s.toml"], "", "--space is for a new lifelong sequence"),
        (["suggest", "--lifelong", "m"], "", "Give either --prior"),
        (["tell", "1"], "x,z,value\n0.1,5,2\n", "no row that waits for a value"),
        (["tell", "1", "--row", "2"], "x,z,value\n0.1,5,2\n", "row 2 has the value 2 already"),
        (
            ["tell", "1", "--row", "9"],
            "x,z,value\n0.1,5,\n",
            "row 9 does not exist (rows that wait",
        ),
        (["tell", "nan"], "x,z,value\n0.1,5,\n", "'nan' is not a finite number"),
        (
            ["tell", "--yes", "1e200"],
            "x,z,value\n0.1,5,\n",
            "not a finite number of at most 1e+150",
        ),
        (["tell", "9" * 400], "x,z,value\n0.1,5,\n", "not a finite number of at most 1e+150"),
        (["suggest"], "x,z,value\n0.1,5,1e200\n", "row 2, column 'value': received '1e200'"),
        (["tell"], "x,z,value\n0.1,5,\n", "Give the value that was measured, or --failed"),
        (["tell", "1", "--failed"], "x,z,value\n0.1,5,\n", "give one of them"),
        (["tell", "1", "--finish"], "x,z,value\n0.1,5,\n", "give --lifelong"),
        (["status", "--restore", "1"], "x,z,value\n", "--restore makes a version"),
    ],
)
def test_suggest_and_tell_answer_bad_input_in_one_sentence(prior, run, arguments, text, words):
    run.write_text(text)
    command, *others = arguments
    done = invoke(command, "--prior", prior, "--run", run, *others)
    assert done.exit_code == 2
    assert words in done.stderr and done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert run.read_text() == text


def test_suggest_and_tell_name_files_that_cannot_be_written(prior, tmp_path):
    done = invoke("suggest", "--prior", prior, "--run", tmp_path / "no" / "run.csv")
    assert done.exit_code == 2 and "cannot be written (no such file" in done.stderr
    missing = invoke("status", "--prior", prior, "--run", tmp_path / "run.csv")
    assert missing.exit_code == 2 and "begin the run with" in missing.stderr
    assert os.listdir(tmp_path) == []


FULL_DISK = """
import resource, sys
from metaprior.data import Real, Space
from metaprior.lifelong import tell, untrained_prior
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
try:
    tell(untrained_prior(Space(x=Real(0, 1)), "maximize"), sys.argv[1], 1.5)
except ValueError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_tell_on_a_full_disk_leaves_the_file_unchanged(run):
    text = "x,value\n0.125,\n0.25,\n0.5,\n"
    run.write_text(text)
    command = [sys.executable, "-c", FULL_DISK, str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "cannot be written (file too large)" in done.stdout, done.stderr
    assert run.read_text() == text
    assert os.listdir(run.parent) == ["run.csv"]


TELLING = """
import sys
from metaprior.data import Real, Space
from metaprior.lifelong import tell, untrained_prior
prior = untrained_prior(Space(x=Real(0, 1)), "maximize")
for i in range(20):
    tell(prior, sys.argv[1], float(sys.argv[2]) + i, sure=True)
"""


def test_tell_from_several_processes_loses_nothing(run):
    run.write_text("x,value\n" + "".join(f"{i / 64},\n" for i in range(60)))
    workers = [
        subprocess.Popen([sys.executable, "-c", TELLING, str(run), str(100 * k)]) for k in range(3)
    ]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    values = [float(line.split(",")[1]) for line in run.read_text().splitlines()[1:]]
    assert sorted(values) == sorted(100.0 * k + i for k in range(3) for i in range(20))


def test_learn_command_reads_a_run_with_failed_and_pending_rows(tmp_path):
    from metaprior.data.csv import read_runs

    (tmp_path / "a.csv").write_text("x,value\n0.1,1\n0.2,failed\n0.3,\n0.4,2\n")
    (tmp_path / "b.csv").write_text("x,value\n0.1,3\n0.9,FAILED\n0.8,2\n")
    read = read_runs(tmp_path)
    assert [read.tasks.run(i)[1].tolist() for i in range(2)] == [[1.0, 2.0], [3.0, 2.0]]
    assert "3 rows have no value" in read.notes[0]


def test_commands_write_out_control_characters_of_names(tmp_path, monkeypatch):
    """A name from a foreign file must not set the title of the terminal, or hide a line."""
    monkeypatch.chdir(tmp_path)
    name = "\x1b]0;owned\x07\u202eevil"
    space = mp.Space(**{name: mp.Real(0.0, 1.0), "c": mp.Categorical(["a", "\x1b[2J"])})
    (tmp_path / "space.toml").write_text(space_as_toml(space))
    runner = CliRunner()
    for command in (
        ["suggest", "--lifelong", "m", "--run", "one", "--space", "space.toml"],
        ["tell", "1.5", "--lifelong", "m", "--run", "one"],
        ["status", "--lifelong", "m", "--run", "one"],
        ["suggest", "--lifelong", "m\x1b[31m", "--run", "one"],
    ):
        done = runner.invoke(app, command)
        assert not set("\x1b\x07\u202e") & set(done.output), command
        assert "\\x1b" in done.output, done.output
