"""Exported runs of Weights & Biases: every layout of an export gives the same tasks."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import metaprior as mp
from metaprior.adapters.histories import LoggedRun
from metaprior.adapters.wandb import StudyUse, load_tasks, read_history
from metaprior.adapters.wandb._export import Export, read_export


def run_of(i, k):
    """What the public API of W&B says of a run, in plain values."""
    return {
        "name": f"calm-sea-{i}",
        "state": "finished",
        "group": f"g{k}",
        "created_at": f"2026-11-0{i + 1}T09:00:00Z",
        "summary": {"_step": 99, "_runtime": 3.5, "loss": 1.0 + i + k, "val": {"acc": 0.5}},
        "config": {
            "_wandb": {"cli_version": "0.22"},
            "optimizer": {"lr": 10.0**-i, "name": ("adam", "sgd")[i % 2]},
            "layers": i + 1,
        },
    }


RUNS = {"north": [run_of(i, 0) for i in range(4)], "south": [run_of(i, 3) for i in range(4)]}
OTHERS = [
    {**run_of(0, 0), "state": "crashed"},
    {**run_of(0, 0), "state": "running"},
    {**run_of(0, 0), "summary": {}},
    {**run_of(0, 0), "summary": {"loss": math.nan}},
    {**run_of(0, 0), "summary": {"loss": "NaN"}},
]


def frame_of(runs):
    """The frame of the script in the documentation of W&B."""
    return pd.DataFrame(
        {
            "summary": [run["summary"] for run in runs],
            "config": [
                {k: v for k, v in run["config"].items() if not k.startswith("_")} for run in runs
            ],
            "name": [run["name"] for run in runs],
        }
    )


def write_script_csv(path, runs):
    frame_of(runs).to_csv(f"{path}.csv")


def write_script_json(path, runs):
    frame_of(runs).to_json(f"{path}.json")


def write_list(path, runs):
    path.with_suffix(".json").write_text(json.dumps(runs[::-1]))  # the newest first


def write_lines(path, runs):
    lines = [
        {
            **run,
            "summary_metrics": run["summary"],
            "summary": None,
            "config": json.dumps({k: {"value": v, "desc": None} for k, v in run["config"].items()}),
        }
        for run in runs
    ]
    path.with_suffix(".jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_prefixed(path, runs):
    rows = [
        {
            "name": run["name"],
            "state": run["state"],
            "config.optimizer.lr": run["config"]["optimizer"]["lr"],
            "config.optimizer.name": run["config"]["optimizer"]["name"],
            "config.layers": run["config"]["layers"],
            "summary.loss": run["summary"].get("loss"),
            "summary._step": 99,
        }
        for run in runs
    ]
    pd.DataFrame(rows).to_csv(f"{path}.csv", index=False)


LAYOUTS = [write_script_csv, write_script_json, write_list, write_lines, write_prefixed]


@pytest.mark.parametrize("write", LAYOUTS)
def test_read_history_gives_the_same_tasks_from_every_layout(tmp_path, write):
    for name, runs in RUNS.items():
        write(tmp_path / name, runs)
    history = read_history(tmp_path, metric="loss", direction="minimize")
    assert history.names == ["north", "south"] and history.notes == []
    assert history.tasks.space == mp.Space(
        **{
            "optimizer.lr": mp.Real(0.001, 1.0, log=True),
            "optimizer.name": mp.Categorical(["adam", "sgd"]),
            "layers": mp.Integer(1, 4),
        }
    )
    points, values = history.tasks.run(1)
    np.testing.assert_array_equal(values, [4.0, 5.0, 6.0, 7.0])
    assert [point["layers"] for point in points] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "config",
    [
        {"lr": 0.1, "layers": 2},
        {"lr": {"value": 0.1, "desc": None}, "layers": {"value": 2, "desc": None}},
    ],
)
def test_read_export_takes_one_object_of_dicts_as_one_run(tmp_path, config):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"config": config, "summary": {"loss": 1.5}}))
    found = read_export(path)
    assert found == Export([LoggedRun({"lr": 0.1, "layers": 2}, {"loss": 1.5}, {}, "")], False)


def test_read_history_groups_runs_by_a_column_or_a_parameter(tmp_path):
    everything = [run for runs in RUNS.values() for run in runs]
    write_list(tmp_path / "all", [*everything, *OTHERS])
    history = read_history(
        str(tmp_path / "all.json"), metric="loss", direction="minimize", task="group"
    )
    left_out = {"crashed": 1, "running": 1, "without the metric": 1, "not finite": 2}
    assert sorted(history.studies) == [
        StudyUse("g0", True, 4, left_out, ""),
        StudyUse("g3", True, 4, {}, ""),
    ]
    name = "optimizer.name"
    by_name = load_tasks(tmp_path, metric="loss", direction="minimize", task=name, features=name)
    assert by_name.space.names == ("optimizer.lr", "layers")
    assert by_name.feature_values == ({name: "adam"}, {name: "sgd"})
    assert list(by_name.lengths) == [4, 4]


def test_read_history_of_a_web_table_says_that_results_may_be_taken_for_parameters(tmp_path):
    rows = [
        {
            "Name": run["name"],
            "State": run["state"],
            "Created": run["created_at"],
            "Sweep": "",
            "Tags": "",
            "lr": run["config"]["optimizer"]["lr"],
            "layers": run["config"]["layers"],
            "loss": run["summary"]["loss"],
            "acc": 0.1 * run["summary"]["loss"],
        }
        for run in RUNS["north"]
    ]
    pd.DataFrame(rows[::-1]).to_csv(tmp_path / "table.csv", index=False)
    options: dict[str, Any] = {"metric": "loss", "direction": "minimize"}
    history = read_history(tmp_path / "table.csv", ignore=["acc"], **options)
    assert history.tasks.space.names == ("lr", "layers")
    np.testing.assert_array_equal(history.tasks.run(0)[1], [1.0, 2.0, 3.0, 4.0])
    assert history.notes[0].startswith("The table does not say which columns are results: every")
    assert load_tasks(tmp_path, **options).space.names == ("lr", "layers", "acc")
    space = mp.Space(lr=mp.Real(1e-3, 1.0, log=True))
    within = read_history(tmp_path, space=space, **options)
    assert within.notes == ["Not in the space, and left out: 'acc', 'layers'."]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", "[1, 2]", "a.json is no list of runs; export one object per run."),
        ("a.json", "[]", "a.json has no runs; export them again."),
        ("a.json", '{"name": ', "a.json, line 1 is not JSON"),
        ("a.json", "[" * 100_000, "a.json, line 1 is not JSON (it is nested more than 60 levels"),
        ("a.jsonl", '{"a":' * 9999 + "1" + "}" * 9999, "line 1 is not JSON (it is nested more"),
        ("a.csv", "summary,config\n{'loss': 1},nothing\n", "run 1: 'config' is 'nothing' where a"),
        ("a.csv", "name,lr\nx,0.1\ny,0.2\n", "has the metric 'loss'; there are 'lr'."),
        ("a.txt", "", "a.txt is a file; give the path of an export of W&B runs."),
    ],
)
def test_read_history_answers_bad_input_in_one_sentence(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError) as raised:
        read_history(tmp_path / name, metric="loss", direction="minimize")
    assert sentence in str(raised.value) and "\n" not in str(raised.value)
