"""`metaprior learn wandb:... | ray:... | mlflow:... | ax:...`: the same summary for every host."""

import json
import subprocess
import sys

import numpy as np
import pytest

import metaprior as mp
from tests.commands import invoke

pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.fixture
def exports(tmp_path):
    """Two exports of W&B, one of them with a run that crashed."""
    for k, name in enumerate(("hill", "[b]dale")):
        runs = [
            {
                "state": "finished",
                "config": {"x": 0.1 * i, "seed": i, "site": name},
                "summary": {"score": float(i + k), "time": 1.0},
            }
            for i in range(4)
        ]
        runs += [{**runs[0], "state": "crashed"}] * k
        (tmp_path / f"{name}.json").write_text(json.dumps(runs))
    return tmp_path


WANTED = ("--metric", "score", "--direction", "maximize", "--ignore", "seed")


def test_learn_reads_exports_learns_and_saves(exports, learned):
    out = exports / "prior"
    sources = [f"wandb:{exports}/hill.json", f"wandb:{exports}/[[]b]dale.json"]
    done = invoke("learn", *sources, *WANTED, "--feature", "site", "--out", out)
    assert done.exit_code == 0 and done.stderr == "", done.stderr
    np.testing.assert_array_equal(learned.tasks.run(1)[1], [1.0, 2.0, 3.0, 4.0])
    assert learned.tasks.feature_values == ({"site": "hill"}, {"site": "[b]dale"})
    assert mp.load(out).space.names == ("x",)
    words = " ".join(done.stdout.split())
    for phrase in (
        "Read 2 runs from 2 studies: 8 points, 4 per run; score is maximized.",
        "study trials trials left out used",
        "hill 4 yes",
        "[b]dale 4 1 crashed yes",
        '[x] kind = "real" low = 0.0',
        f"Saved in {out}.",
    ):
        assert phrase in words, phrase


def test_learn_groups_runs_of_one_export(exports, learned):
    done = invoke(
        *("learn", f"wandb:{exports}", *WANTED, "--task", "site", "--json"),
        *("--out", exports / "prior"),
    )
    assert done.exit_code == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert sorted(runs["names"]) == ["[b]dale", "hill"]
    assert {study["name"]: study["left_out"] for study in runs["studies"]} == {
        "hill": {},
        "[b]dale": {"crashed": 1},
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("wandb:none.json",), "There is no none.json; give the path of an export of W&B runs."),
        (("wandb:hill.json",), "The runs in hill.json have 2 metrics; name the one to optimise as"),
        (("wandb:hill.json", "--metric", "score"), "Nothing in hill.json says whether high or lo"),
        (
            ("wandb:hill.json", *WANTED),
            "Learning a prior needs at least 2 studies with 2 complete trials, received 1 of 1; "
            "give more studies, or name with --task what says which runs belong together.",
        ),
        (("wandb:hill.json", "ray:x"), "A source that begins with wandb: must be of one kind, re"),
        (("wandb:hill.json", "hill.csv"), "A source that begins with wandb: must be of one kind"),
        (("mlflow:a", "mlflow:b"), "A source that begins with mlflow: must be the only one, recei"),
        (("wandb:hill.json", "--value", "y"), "--value is about columns of CSV files, and the so"),
        (("optuna:x", "--metric", "y"), "--metric is about hosts that record metrics, and the sou"),
        (("ax:x", "--ignore", "y"), "--ignore is about CSV files and logged runs, and the source "),
        (("hill.csv", "--metric", "y"), "--metric is about hosts that record metrics, and the sou"),
        (("mlfow:mlruns",), "A source that begins with mlfow: is not a CSV file; give CSV files, "),
        (("ray:.",), "There is no Ray Tune experiment in .; check the path."),
        (("mlflow:sqlite:///none.db",), "There is no database file none.db; check the path"),
        (("mlflow:http://a:secret@127.0.0.1:9",), "http://a:***@127.0.0.1:9 cannot be read (Fail"),
    ],
)
def test_learn_answers_bad_input_in_one_sentence(
    exports, learned, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(exports)
    done = invoke("learn", *arguments, "--out", "prior")
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith(f"Error: {sentence}"), done.stderr
    assert len(done.stderr.splitlines()) == 1 and "secret" not in done.stderr


@pytest.mark.parametrize(("host", "called"), [("mlflow", "MLflow"), ("ax", "Ax")])
def test_learn_names_a_missing_host(tmp_path, host, called):
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            f"import sys; sys.modules['{host}'] = None\n"
            "from metaprior.cli import main\n"
            f"sys.argv = ['metaprior', 'learn', '{host}:past', '--out', 'p']\n"
            "main()",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    start = f"Error: This part of metaprior needs {called}, which cannot be imported"
    assert done.stderr.startswith(start), done.stderr
    assert done.stderr.endswith(f"install it with `pip install 'metaprior[{host}]'`.\n")
    assert len(done.stderr.splitlines()) == 1
