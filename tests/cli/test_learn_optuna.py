"""`metaprior learn optuna:...`: the summary of a storage, and what is refused."""

import json
import shutil
import subprocess
import sys

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from rich.console import Console

import metaprior as mp
from metaprior.adapters.optuna import StudyUse
from metaprior.cli._studies_table import studies_table
from tests.commands import invoke

pytestmark = pytest.mark.usefixtures("no_cache")

DISTRIBUTIONS: dict[str, BaseDistribution] = {
    "x": FloatDistribution(-1.0, 1.0),
    "z": FloatDistribution(0.0, 10.0),
}


@pytest.fixture(scope="module")
def database(tmp_path_factory, hill_runs):
    """Six studies on hills, the first with a single trial, one of two objectives, and one of
    our own."""
    path = tmp_path_factory.mktemp("database") / "past.db"
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    for i, (points, values) in enumerate(hill_runs):
        study = optuna.create_study(study_name=f"hill-{i}", storage=storage, direction="maximize")
        for (x, z), value in zip(points, values, strict=True):
            study.add_trial(
                optuna.create_trial(
                    params={"x": float(x), "z": float(z)},
                    distributions=DISTRIBUTIONS,
                    value=float(value),
                )
            )
    optuna.load_study(study_name="hill-1", storage=storage).ask()
    optuna.create_study(
        study_name="[b]pareto", storage=storage, directions=["minimize", "minimize"]
    )
    optuna.create_study(study_name="metaprior:ledger", storage=storage)
    return path


@pytest.fixture
def past(database, tmp_path):
    """The database as a source, while Optuna says what it does on standard error."""
    shutil.copy(database, tmp_path / "past.db")
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.INFO)
    yield f"optuna:sqlite:///{tmp_path}/past.db"
    optuna.logging.set_verbosity(verbosity)


def test_learn_optuna_reads_a_storage_learns_and_saves(past, learned, tmp_path, hill_runs):
    out = tmp_path / "prior"
    before = (tmp_path / "past.db").read_bytes()
    done = invoke("learn", past, "--out", out)
    assert done.exit_code == 0 and done.stderr == "", done.stderr
    assert (tmp_path / "past.db").read_bytes() == before
    for i, (_, values) in enumerate(hill_runs[1:]):
        np.testing.assert_array_equal(learned.tasks.run(i)[1], values)
    assert mp.load(out).direction == "maximize"
    words = " ".join(done.stdout.split())
    for phrase in (
        "Read 5 runs from 7 studies: 35 points, 5 to 8 per run; the value is maximized.",
        "study trials trials left out used",
        "hill-0 1 no: fewer than 2 complete trials with finite values",
        "hill-1 5 1 running yes",
        "hill-5 8 yes",
        "[b]pareto 0 no: several objectives",
        '[x] kind = "real" low = -1.0 high = 1.0 [z]',
        f"Saved in {out}.",
    ):
        assert phrase in words, phrase
    assert "ledger" not in words


def test_learn_optuna_chooses_studies_space_and_direction(past, learned, tmp_path):
    (tmp_path / "space.toml").write_text(
        '[x]\nkind = "real"\nlow = -1\nhigh = 1\n[z]\nkind = "real"\nlow = 0\nhigh = 10\n'
    )
    done = invoke(
        *("learn", past, "--studies", "hill-3", "--studies", "hill-5", "--studies", "hill-0"),
        *("--match", "hill-[1-9]", "--direction", "minimize", "--space", tmp_path / "space.toml"),
        *("--out", tmp_path / "prior"),
    )
    assert done.exit_code == 0, done.stderr
    assert len(learned.tasks) == 2 and learned.tasks.direction == "minimize"
    words = " ".join(done.stdout.split())
    assert "Note: 2 studies are maximized ('hill-3', 'hill-5'): values are negated" in words
    assert "[x]" not in words and "hill-0" not in words


def test_learn_optuna_json_lists_every_study(past, learned, tmp_path):
    done = invoke("learn", past, "--out", tmp_path / "prior", "--json")
    assert done.exit_code == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert runs["names"] == [f"hill-{i}" for i in range(1, 6)]
    assert (runs["direction"], runs["points"]) == ("maximize", [5, 6, 8, 8, 8])
    assert len(runs["studies"]) == 7
    assert runs["studies"][1] == {
        "name": "hill-1",
        "used": True,
        "trials": 5,
        "left_out": {"running": 1},
        "reason": "",
    }
    assert runs["studies"][6]["reason"] == "several objectives"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("optuna:sqlite:///none.db",), "There is no database file none.db; check the path"),
        (("optuna:none.db",), "'none.db' is not the address of an Optuna storage; give a database"),
        (("optuna:journal:none.log",), "There is no journal file none.log; check the path."),
        (("optuna:postgresql+psycopg://me@127.0.0.1:1/x",), "postgresql+psycopg://me@127.0.0.1:1"),
        (("PAST", "--match", "tree*"), "No study in sqlite:///past.db matches 'tree*'; the names"),
        (("PAST", "--studies", "tree"), "There is no study 'tree' in sqlite:///past.db; it has"),
        (("PAST", "--match", "?b]*"), "Nothing can be learned from the study in sqlite:///past.d"),
        (
            ("PAST", "--match", "hill-[01]"),
            "Learning a prior needs at least 2 studies with 2 complete trials, received 1 of 2 "
            "(skipped: 'hill-0', fewer than 2 complete trials with finite values); give more",
        ),
        (
            ("PAST", "runs.csv"),
            "A source that begins with optuna: must be the only one, received 2 sou",
        ),
        (
            ("PAST", "PAST"),
            "A source that begins with optuna: must be the only one, received 2 sou",
        ),
        (("PAST", "--value", "y"), "--value is about columns of CSV files, and the source is an"),
        (
            ("PAST", "--ignore", "y"),
            "--ignore is about CSV files and logged runs, and the source is",
        ),
        (("PAST", "--direction", "up"), "Unknown direction 'up'; give 'maximize' or 'minimize'."),
        (
            ("runs.csv", "--match", "x"),
            "--match is about studies of a host, and the source is CSV f",
        ),
    ],
)
def test_learn_optuna_answers_bad_input_in_one_sentence(
    past, learned, tmp_path, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    here = [each.replace("PAST", "optuna:sqlite:///past.db") for each in arguments]
    done = invoke("learn", *here, "--out", "prior")
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith(f"Error: {sentence}"), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["past.db"]


@pytest.mark.parametrize("command", [("learn", "--out", "p"), ("status", "--name", "ovens")])
def test_learn_optuna_names_a_missing_optuna(tmp_path, command):
    name, *options = command
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys; sys.modules['optuna'] = None\n"
            "from metaprior.cli import main\n"
            f"sys.argv = ['metaprior', '{name}', 'optuna:sqlite:///p.db', *{options}]\n"
            "main()",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: This part of metaprior needs Optuna, which cannot be imp")
    assert done.stderr.endswith("install it with `pip install 'metaprior[optuna]'`.\n")
    assert len(done.stderr.splitlines()) == 1


def test_learn_optuna_groups_a_thousand_studies():
    few = "fewer than 2 complete trials with finite values"
    studies = [StudyUse(f"study-{i}", True, 10, {"failed": 2}, "") for i in range(950)]
    studies += [StudyUse(f"short-{i}", False, 1, {"pruned": 3}, few) for i in range(50)]
    console = Console(width=120)
    with console.capture() as captured:
        console.print(studies_table(studies))
    lines = captured.get().splitlines()
    words = " ".join(" ".join(lines).split())
    assert len(lines) < 12
    assert "950: study-0, study-1, study-2 and 947 more 9500 1900 failed yes" in words
    assert f"50: short-0, short-1, short-2 and 47 more 50 150 pruned no: {few}" in words
    assert "--json" in words
