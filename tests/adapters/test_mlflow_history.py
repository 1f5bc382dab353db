"""Past runs from stores that MLflow itself wrote: what is used, what is not, what is said of it."""

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread

import numpy as np
import pytest

import metaprior as mp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

from metaprior.adapters.mlflow import StudyUse, load_tasks, read_history

VALUES = [0.5, 0.25, 0.75, 0.125]


def client_of(uri):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MlflowClient(tracking_uri=uri)


def log_run(client, experiment, params, metrics, *, status="FINISHED", tags=None, at=0):
    """One run; a metric may be a list, logged step by step."""
    run = client.create_run(experiment, start_time=1000 + at, tags=tags)
    steps = {k: v if isinstance(v, list) else [v] for k, v in metrics.items()}
    client.log_batch(
        run.info.run_id,
        params=[Param(name, str(value)) for name, value in params.items()],
        metrics=[Metric(k, v, 2000 + i, i) for k, vs in steps.items() for i, v in enumerate(vs)],
        tags=[RunTag("team", "a")],
    )
    if status != "RUNNING":
        client.set_terminated(run.info.run_id, status)
    return run.info.run_id


def fill(client):
    """Two experiments of four good runs, and whatever else a store may hold."""
    for k, name in enumerate(("north", "south")):
        experiment = client.create_experiment(name, tags={"rows": str(1000 * (k + 1))})
        for i, value in enumerate(VALUES):
            params = {"rate": 10.0**-i, "depth": i + 1, "act": ("relu", "tanh")[i % 2], "out": name}
            metrics = {"loss": [9.0, value + k], "accuracy": 1.0}
            log_run(client, experiment, params, metrics, at=3 - i if k else i)
    log_run(client, experiment, {"rate": 0.1}, {"loss": 1.0}, status="FAILED")
    log_run(client, experiment, {"rate": 0.1}, {"loss": 1.0}, status="KILLED")
    log_run(client, experiment, {"rate": 0.1}, {"loss": 1.0}, status="RUNNING")
    log_run(client, experiment, {"rate": 0.1}, {"accuracy": 1.0})
    log_run(client, experiment, {"rate": 0.1}, {"loss": float("nan")})
    client.delete_run(log_run(client, experiment, {"rate": 0.1}, {"loss": 1.0}))
    empty = client.create_experiment("gone")
    log_run(client, empty, {"rate": 0.1}, {"loss": 1.0})
    client.delete_experiment(empty)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file store."""
    path = tmp_path_factory.mktemp("mlflow") / "mlruns"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        fill(client_of(str(path)))
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """The same runs in an SQLite database: MLflow needs seconds to make its tables."""
    path = tmp_path_factory.mktemp("mlflow") / "past.db"
    fill(client_of(f"sqlite:///{path}"))
    return path


@pytest.fixture
def store(request):
    """A store, named as users name it."""
    name, prefix = request.param
    return f"{prefix}{request.getfixturevalue(name)}"


STORES = pytest.mark.parametrize(
    "store",
    [
        pytest.param(("folder", ""), id="folder"),
        pytest.param(("folder", "file://"), id="URI of a folder"),
        pytest.param(("database", "sqlite:///"), id="database", marks=pytest.mark.slow),
        pytest.param(("database", ""), id="file of a database", marks=pytest.mark.slow),
    ],
    indirect=True,
)


@STORES
def test_read_history_gives_the_same_tasks_from_every_store(store):
    history = read_history(store, metric="loss", direction="minimize")
    assert history.names == ["north", "south"]
    assert history.tasks.space == mp.Space(
        rate=mp.Real(0.001, 1.0, log=True),
        depth=mp.Integer(1, 4),
        act=mp.Categorical(["relu", "tanh"]),
    )
    assert history.tasks.direction == "minimize" and history.tasks.quantity.name == "loss"
    points, values = history.tasks.run(0)
    np.testing.assert_array_equal(values, VALUES)
    assert [point["depth"] for point in points] == [1, 2, 3, 4]
    # Runs are in the order in which they started.
    np.testing.assert_array_equal(history.tasks.run(1)[1], [1 + v for v in reversed(VALUES)])
    left_out = {"failed": 1, "killed": 1, "running": 1, "without the metric": 1, "not finite": 1}
    assert history.studies == [
        StudyUse("north", True, 4, {}, ""),
        StudyUse("south", True, 4, left_out, ""),
    ]
    assert history.notes == [
        "The same in all trials of each study, and left out of the space: 'out'; as a feature it "
        "would say something of the task."
    ]


@STORES
def test_read_history_does_not_alter_the_store(store):
    parts = store.partition("//")
    path = Path(parts[2].replace("//", "/") or parts[0])
    before = files_in(path.parent)
    load_tasks(store, metric="loss", direction="minimize")
    assert before and files_in(path.parent) == before


def files_in(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_read_history_takes_tags_and_settled_parameters_as_features(folder):
    tasks = load_tasks(folder, metric="loss", direction="minimize", features=["rows", "out"])
    assert tasks.feature_values == (
        {"rows": 1000, "out": "north"},
        {"rows": 2000, "out": "south"},
    )


def test_read_history_chooses_experiments_and_space(folder):
    space = mp.Space(rate=mp.Real(0.001, 1.0, log=True), depth=mp.Integer(1, 3))
    history = read_history(folder, metric="loss", direction="maximize", match="n*", space=space)
    assert history.names == ["north"] and history.tasks.space == space
    assert history.studies == [StudyUse("north", True, 3, {"outside the space": 1}, "")]


def test_read_history_groups_the_children_of_a_parent_run(tmp_path, monkeypatch):
    store = tmp_path / "mlruns"
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = client_of(str(store))
    experiment = client.create_experiment("sweeps")
    for start, sweep in ((0, "first"), (10, "second")):
        tags = {"mlflow.runName": sweep}
        parent = log_run(client, experiment, {"best": 1}, {"loss": 0.0}, tags=tags, at=start)
        for i in range(3):
            tags = {"mlflow.parentRunId": parent}
            log_run(client, experiment, {"x": 0.1 * i}, {"loss": float(i)}, tags=tags, at=start + i)
    log_run(client, experiment, {"x": 0.3}, {"loss": 1.0})
    history = read_history(
        store, metric="loss", direction="minimize", task="mlflow.parentRunId", ignore="best"
    )
    assert history.studies == [
        StudyUse("first", True, 3, {}, ""),
        StudyUse("second", True, 3, {}, ""),
        StudyUse("sweeps, others", False, 1, {"parent of others": 2}, "no 'mlflow.parentRunId'"),
    ]
    whole = read_history(store, metric="loss", direction="minimize")
    assert whole.studies == [StudyUse("sweeps", True, 7, {"parent of others": 2}, "")]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "have 2 metrics; name the one to optimise as the metric: 'loss', 'accuracy'."),
        ({"metric": "auc"}, "has the metric 'auc'; there are 'loss', 'accuracy'."),
        ({"metric": "loss"}, "says whether high or low values of 'loss' are good; give a direct"),
        ({"direction": "up"}, "Unknown direction 'up'; give 'maximize' or 'minimize'."),
        ({"match": "x*"}, "matches 'x*'; the names are 'Default', 'north', 'south'."),
        (
            {"metric": "loss", "direction": "minimize", "task": "colour"},
            "has a parameter or label 'colour'; there are 'rows', 'team', 'mlflow.runName', 'rate'",
        ),
        (
            {"metric": "loss", "direction": "minimize", "ignore": ["seed"]},
            "has a parameter 'seed' to leave out; there are 'rate', 'depth', 'act', 'out'.",
        ),
        (
            {"metric": "loss", "direction": "minimize", "features": ["depth"]},
            "'depth' is no label or parameter that is the same in all runs of a study; name one",
        ),
    ],
)
def test_read_history_answers_bad_options_in_one_sentence(folder, options, sentence):
    with pytest.raises(ValueError) as raised:
        read_history(folder, **options)
    assert sentence in str(raised.value) and "\n" not in str(raised.value)


def test_read_history_refuses_what_is_no_store(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no database")
    for store, sentence in {
        f"{tmp_path}/none": "There is no folder or file",
        f"{tmp_path}/empty": "is not a file store of MLflow: no folder in it has a meta.yaml",
        f"{tmp_path}/notes.txt": "cannot be read (file is not a database)",
        f"sqlite:///{tmp_path}/none.db": "There is no database file",
        "postgresql+nodriver://me:secret@h/x": "postgresql+nodriver://me:***@h/x cannot be read",
    }.items():
        with pytest.raises(ValueError) as raised:
            read_history(store)
        assert sentence in str(raised.value) and "secret" not in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "notes.txt"]


def test_read_history_refuses_a_database_of_another_version_of_mlflow(tmp_path):
    with closing(sqlite3.connect(tmp_path / "old.db")) as database:
        database.executescript(
            "CREATE TABLE experiments (x); CREATE TABLE runs (x);"
            "CREATE TABLE alembic_version (version_num); INSERT INTO alembic_version VALUES ('1');"
        )
        before = (tmp_path / "old.db").read_bytes()
        with pytest.raises(ValueError, match="was written by another version of MLflow than the i"):
            read_history(f"sqlite:///{tmp_path}/old.db")
        assert (tmp_path / "old.db").read_bytes() == before
        database.execute("DROP TABLE runs")
    with pytest.raises(ValueError, match="holds no MLflow runs; check that it is the right data"):
        read_history(f"sqlite:///{tmp_path}/old.db")


def test_read_history_says_that_a_server_cannot_be_reached():
    with pytest.raises(ValueError) as raised:
        read_history("http://me:secret@127.0.0.1:9", metric="loss")
    assert str(raised.value) == (
        "http://me:***@127.0.0.1:9 cannot be read (Failed to establish a new connection: [Errno "
        "111] Connection refused); check the address, and that a server is running."
    )


def test_read_history_gives_a_silent_server_up_after_one_more_attempt():
    """MLflow's own patience is seven attempts, minutes in all."""
    attempts = []

    class HangUp(BaseRequestHandler):
        def handle(self):
            attempts.append(self.client_address)

    with TCPServer(("127.0.0.1", 0), HangUp) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        with pytest.raises(ValueError, match="cannot be read") as raised:
            read_history(f"http://127.0.0.1:{server.server_address[1]}", metric="loss")
        server.shutdown()
    assert len(attempts) == 2 and "\n" not in str(raised.value)
