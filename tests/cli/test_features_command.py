"""`--feature` and `--value-bounds`: what is known of a task, from the first command to the last."""

import json

import pytest

import metaprior as mp
from metaprior.cli._features import features_from
from tests.commands import invoke
from tests.featured import featured_prior
from tests.quick_learn import quick_learn

pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.fixture(scope="module")
def prior(tmp_path_factory):
    return featured_prior().save(tmp_path_factory.mktemp("featured") / "prior")


def test_features_of_the_command_line_are_read_as_cells_are():
    texts = ["size=12.5", "n=3", "wet=true", "site=north = 7", "id=007a"]
    expected = {"size": 12.5, "n": 3, "wet": True, "site": "north = 7", "id": "007a"}
    assert features_from(texts) == expected
    for bad in ("size", "=3", "size="):
        with pytest.raises(ValueError, match="is not a name and a value; write --feature NAME=VA"):
            features_from([bad])
    with pytest.raises(ValueError, match="--feature names 'n' twice"):
        features_from(["n=1", "n=2"])


def test_suggest_keeps_features_in_the_file_where_tell_and_status_read_them(prior, tmp_path):
    run = tmp_path / "run.csv"
    begun = invoke(
        "suggest", "--prior", prior, "--run", run, "--feature", "size=3", "--feature", "site=B"
    )
    assert begun.exit_code == 0, begun.stderr
    header, row = run.read_text().splitlines()
    assert header == "x,z,value,size,site" and row.endswith(",,3,B")
    # The same point as from Python, and another one than for another task.
    x = float(row.split(",")[0])
    known = {"size": 3, "site": "B"}
    points = [
        json.loads(
            invoke("suggest", "--prior", prior, "--run", tmp_path / name, *options, "--json").stdout
        )["rows"][0]["point"]
        for name, options in (
            ("same.csv", ["--feature", "size=3", "--feature", "site=B"]),
            ("other.csv", ["--feature", "size=1", "--feature", "site=A"]),
        )
    ]
    assert points[0]["x"] == x and points[1] != points[0]

    assert invoke("tell", "--prior", prior, "--run", run, "0.25").exit_code == 0
    status = invoke("status", "--prior", prior, "--run", run, "--json")
    assert json.loads(status.stdout)["best"]["value"] == 0.25
    loaded, told = mp.load(prior), {"x": x, "z": float(row.split(",")[1])}
    optimizer = mp.Optimizer(loaded, features=known)
    optimizer.tell(told, 0.25)
    assert json.loads(status.stdout)["trust"] == optimizer.trust
    again = invoke("suggest", "--prior", prior, "--run", run)
    assert again.exit_code == 0 and run.read_text().splitlines()[-1].endswith(",,3,B")


@pytest.mark.parametrize(
    "options, problem",
    [
        (["--feature", "colour=red"], "there is no feature 'colour' among those that the prior"),
        (["--feature", "size=big"], "the feature 'size' is 'big', and other tasks have numbers"),
        (["--feature", "size"], "--feature 'size' is not a name and a value"),
    ],
)
def test_suggest_refuses_bad_features_and_writes_nothing(prior, tmp_path, options, problem):
    run = tmp_path / "run.csv"
    done = invoke("suggest", "--prior", prior, "--run", run, *options)
    assert done.exit_code == 2 and problem in done.stderr
    assert not run.exists()


def test_suggest_refuses_features_for_a_sequence(tmp_path):
    done = invoke("suggest", "--lifelong", tmp_path, "--run", "r", "--feature", "size=3")
    assert done.exit_code == 2 and "not for a lifelong sequence" in done.stderr


def test_tell_refuses_a_value_beyond_the_bounds_of_the_prior(prior, tmp_path):
    run = tmp_path / "run.csv"
    run.write_text("x,z,value\n0.1,5,\n")
    done = invoke("tell", "--prior", prior, "--run", run, "0.75")
    assert done.exit_code == 2 and "not between the bounds -0.5 and 0.5" in done.stderr
    assert run.read_text() == "x,z,value\n0.1,5,\n"


def test_report_shows_features_bounds_and_the_task(prior, tmp_path):
    pages = {}
    for name, options in (("plain", []), ("task", ["--feature", "size=3"])):
        page = tmp_path / f"{name}.html"
        assert invoke("report", prior, "--out", page, *options).exit_code == 0
        pages[name] = page.read_text()
    assert "2 task features" in pages["plain"] and "number, 1 to 3" in pages["plain"]
    assert "The value is between \N{MINUS SIGN}0.5 and 0.5." in pages["plain"]
    assert pages["plain"].split("<svg")[1:] != pages["task"].split("<svg")[1:]


def test_learn_reads_features_and_bounds(tmp_path, monkeypatch):
    received = []

    def learn(tasks, **options):
        received.append(tasks)
        return quick_learn(tasks, None)

    monkeypatch.setattr("metaprior.cli._learn.learn", learn)
    for i, size in enumerate((10, 20, 40)):
        rows = "".join(f"{0.1 * j},{size},mon{i},{j}\n" for j in range(1, 4))
        (tmp_path / f"{i}.csv").write_text(f"x,size,day,y\n{rows}")
    options = ["--feature", "size", "--value-bounds", "0", "100", "--out", tmp_path / "prior"]
    done = invoke("learn", tmp_path / "*.csv", *options)
    assert done.exit_code == 0, done.stderr
    assert received[0].feature_values == ({"size": 10}, {"size": 20}, {"size": 40})
    assert received[0].value_bounds == (0.0, 100.0)
    assert "The column 'day' never changes within a run" in done.stdout
    saved = json.loads((tmp_path / "prior" / "prior.json").read_text())
    assert saved["value_bounds"] == [0.0, 100.0]
    # A non-transfer GP does not see features, and says so.
    assert saved["features"]["unused"][0]["name"] == "size"
