"""Past experiments of Ray Tune, in folders laid out as Ray 2.5x writes them."""

import csv
import json

import numpy as np
import pytest

import metaprior as mp
from metaprior.adapters.ray import StudyUse, load_tasks, read_history


def report(number, iteration, metrics, config):
    """A line of `result.json`."""
    return {
        **metrics,
        "timestamp": 1795064114 + 10 * number,
        "checkpoint_dir_name": None,
        "done": False,
        "training_iteration": iteration,
        "trial_id": f"61b86_{number:05}",
        "date": "2026-11-19_04-55-14",
        "time_this_iter_s": 0.0005,
        "time_total_s": 0.0005 * iteration,
        "pid": 22592,
        "hostname": "node",
        "node_ip": "192.0.2.2",
        "config": config,
        "time_since_restore": 0.0005,
        "iterations_since_restore": iteration,
    }


def write_trial(experiment, number, config, losses, *, error=False, as_csv=False):
    """The folder of one trial, which reported these losses."""
    path = experiment / f"train_61b86_{number:05}_{number}_lr={config['lr']:.4f}_2026-11-19"
    path.mkdir(parents=True)
    (path / "params.json").write_text(json.dumps(config, indent=2, sort_keys=True))
    (path / "params.pkl").write_bytes(b"\x80\x05")
    rows = [
        report(number, i + 1, {"loss": loss, "inner": {"acc": -loss}}, config)
        for i, loss in enumerate(losses)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (path / "result.json").write_text("" if as_csv else lines)
    if rows and as_csv:
        flat = [{k: v for k, v in row.items() if k not in ("config", "inner")} for row in rows]
        with open(path / "progress.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, list(flat[0]))
            writer.writeheader()
            writer.writerows(flat)
    if error:
        (path / "error.txt").write_text("RuntimeError: bad\n")
    return path


def write_state(experiment, status):
    """The state of an experiment as Ray keeps it: each trial is JSON inside of JSON."""
    trials = [
        [json.dumps({"trial_id": f"61b86_{n:05}", "status": s}), "{}"] for n, s in status.items()
    ]
    state = {"trial_data": trials, "runner_data": {"_metric": "loss"}, "stats": {}}
    (experiment / "experiment_state-2026-11-19_04-55-03.json").write_text(json.dumps(state))


def config_of(i):
    return {
        "lr": 0.1 * (i + 1),
        "net": {"width": 16 * (i + 1), "act": ("relu", "tanh")[i % 2]},
        "data": "a",
        "layers": [1, 2],
    }


@pytest.fixture
def results(tmp_path):
    """Two experiments of three good trials, the second with others beside them."""
    for k, name in enumerate(("exp_a", "exp_b")):
        for i in range(3):
            losses = [9.0, 1.0 + i + k, 2.0 + i + k]
            write_trial(tmp_path / name, i, {**config_of(i), "data": name}, losses)
        (tmp_path / name / "tuner.pkl").write_bytes(b"\x80\x05")
    second = tmp_path / "exp_b"
    write_trial(second, 3, config_of(3), [5.0])
    write_trial(second, 4, config_of(4), [], error=True)
    write_trial(second, 5, config_of(5), [5.0, 4.0])
    write_state(second, {**dict.fromkeys(range(4), "TERMINATED"), 4: "ERROR", 5: "RUNNING"})
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


def test_read_history_reads_every_experiment_of_a_folder(results):
    history = read_history(results, metric="loss", direction="minimize")
    assert history.tasks.space.names == ("lr", "net/act", "net/width")
    assert history.studies == [
        StudyUse("exp_a", True, 3, {}, ""),
        StudyUse("exp_b", True, 3, {"stopped early": 1, "failed": 1, "running": 1}, ""),
    ]
    points, values = history.tasks.run(1)
    np.testing.assert_array_equal(values, [3.0, 4.0, 5.0])
    assert [point["net/width"] for point in points] == [16, 32, 48]
    assert [point["net/act"] for point in points] == ["relu", "tanh", "relu"]
    assert history.notes == [
        "The same in all trials of each study, and left out of the space: 'data'; as a feature it "
        "would say something of the task.",
        "Only one value, and left out of the space: 'layers'.",
    ]


def test_read_history_finds_the_folder_of_the_user(results, monkeypatch):
    monkeypatch.setenv("HOME", str(results))
    found = read_history(["~/exp_a", "~/exp_[b]"], metric="loss", direction="minimize")
    assert found.names == ["exp_a", "exp_b"]


def test_read_history_takes_the_best_report_of_every_trial(results):
    history = read_history(
        results / "exp_b", metric="loss", direction="minimize", report="best", ignore="data"
    )
    assert history.studies == [StudyUse("exp_b", True, 4, {"failed": 1, "running": 1}, "")]
    np.testing.assert_array_equal(history.tasks.run(0)[1], [2.0, 3.0, 4.0, 5.0])
    most = load_tasks(results / "exp_b", metric="loss", direction="maximize", report="best")
    np.testing.assert_array_equal(most.run(0)[1], [9.0, 9.0, 9.0, 5.0])


def test_read_history_reads_nested_metrics_and_several_folders(results):
    folders = [str(results / "exp_b"), str(results / "exp_*")]
    history = read_history(folders, metric="inner/acc", direction="maximize", features="data")
    assert history.names == ["exp_b", "exp_a"]
    assert history.tasks.feature_values == ({"data": "exp_b"}, {"data": "exp_a"})
    np.testing.assert_array_equal(history.tasks.run(1)[1], [-2.0, -3.0, -4.0])


def test_read_history_falls_back_to_progress_csv_and_error_txt(tmp_path):
    for i in range(3):
        write_trial(tmp_path / "exp", i, config_of(i), [3.0, 1.5 * i], as_csv=True)
    write_trial(tmp_path / "exp", 3, config_of(3), [3.0, 1.0], error=True)
    history = read_history(tmp_path / "exp", direction="minimize", metric="loss")
    assert history.studies == [StudyUse("exp", True, 3, {"failed": 1}, "")]
    np.testing.assert_array_equal(history.tasks.run(0)[1], [0.0, 1.5, 3.0])


def test_read_history_forgives_a_last_line_that_is_cut_off(tmp_path):
    paths = [write_trial(tmp_path / "exp", i, config_of(i), [1.0 * i]) for i in range(3)]
    with open(paths[0] / "result.json", "a") as file:
        file.write('{"loss": 0.3, "trai')
    assert len(load_tasks(tmp_path, metric="loss", direction="minimize").run(0)[1]) == 3
    (paths[1] / "result.json").write_text('{"loss": \n{"loss": 0.1}\n')
    with pytest.raises(ValueError, match="line 1 is not a report of Ray Tune; restore"):
        load_tasks(tmp_path, metric="loss", direction="minimize")
    (paths[0] / "params.json").write_text("lr: 1")
    with pytest.raises(ValueError, match=r"params.json is not JSON \(Expecting value"):
        load_tasks(tmp_path, metric="loss", direction="minimize")
    (paths[0] / "params.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"params.json is not JSON \(it is nested more than 60"):
        load_tasks(tmp_path, metric="loss", direction="minimize")


@pytest.mark.parametrize(
    ("folder", "options", "sentence"),
    [
        (
            "",
            {},
            "The runs in 2 folders have 2 metrics; name the one to optimise as the metric: 'l",
        ),
        ("", {"metric": "loss"}, "Nothing in 2 folders says whether high or low values of 'loss'"),
        ("none", {}, "none; give the path of a Ray Tune experiment."),
        ("notes.txt", {}, "notes.txt is a file; give the path of a Ray Tune experiment."),
        ("exp_a/*", {"match": "x"}, "There is no Ray Tune experiment in"),
        ("", {"report": "first"}, "Unknown report 'first'; give 'last' or 'best'."),
        (
            "exp_b",
            {"metric": "loss", "direction": "minimize", "space": mp.Space(x=mp.Real(0, 1))},
            "no parameter of the space (1), trials left out are 3 without parameters, 1 stopped",
        ),
    ],
)
def test_read_history_answers_bad_input_in_one_sentence(results, folder, options, sentence):
    with pytest.raises(ValueError) as raised:
        read_history(str(results / folder), **options)
    assert sentence in str(raised.value) and "\n" not in str(raised.value)
