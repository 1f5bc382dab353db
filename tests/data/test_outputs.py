"""Several named values of the same runs."""

import numpy as np
import pandas as pd
import pytest

import metaprior as mp

SPACE = mp.Space(x=mp.Real(0.0, 1.0))
ROLES = {"accuracy": "maximize", "cost": "minimize", "memory": "constraint"}
POINTS = [{"x": 0.1}, {"x": 0.5}, {"x": 0.9}]
ROWS = [
    {"accuracy": 1.0, "cost": 10.0, "memory": -1.0},
    {"accuracy": 2.0, "cost": 20.0, "memory": None},
    {"accuracy": 3.0, "cost": 30.0, "memory": 1.0},
]


@pytest.mark.parametrize(
    "values",
    [ROWS, pd.DataFrame(ROWS), np.array([[1, 10, -1], [2, 20, np.nan], [3, 30, 1]])],
    ids=["dicts", "frame", "array"],
)
def test_outputs_from_runs_has_one_tasks_per_output(values):
    outputs = mp.Outputs.from_runs([(POINTS, values)] * 2, space=SPACE, outputs=ROLES)
    assert list(outputs.by_name) == ["accuracy", "cost", "memory"]
    assert list(outputs.constraints) == ["memory"]
    assert outputs["cost"].direction == "minimize" and outputs["memory"].direction == "minimize"
    points, cost = outputs["cost"].run(1)
    assert points == POINTS and cost.tolist() == [10.0, 20.0, 30.0]
    points, memory = outputs["memory"].run(0)
    assert points == [{"x": 0.1}, {"x": 0.9}] and memory.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("values", [ROWS, pd.DataFrame(ROWS)], ids=["dicts", "frame"])
def test_outputs_ignore_values_that_are_not_named(values):
    outputs = mp.Outputs.from_runs([(POINTS, values)], space=SPACE, outputs={"cost": "minimize"})
    assert list(outputs.by_name) == ["cost"]


def test_outputs_keep_features_and_bounds():
    outputs = mp.Outputs.from_runs(
        [(POINTS, ROWS)] * 2,
        space=SPACE,
        outputs=ROLES,
        features=[{"size": 1.0}, {"size": 2.0}],
        value_bounds={"accuracy": (0, 100)},
    )
    assert outputs["accuracy"].value_bounds == (0.0, 100.0)
    assert outputs["cost"].value_bounds is None
    assert outputs["memory"].feature_values == ({"size": 1.0}, {"size": 2.0})


@pytest.mark.parametrize(
    ("runs", "outputs", "words"),
    [
        ([(POINTS, ROWS)], {}, "give names and roles"),
        ([(POINTS, ROWS)], {"accuracy": "up"}, "'maximize', 'minimize' or 'constraint'"),
        ([(POINTS, ROWS)], {"memory": "constraint"}, "no objective"),
        ([(POINTS, ROWS[:2])], ROLES, "3 points but 2 values"),
        ([POINTS], ROLES, r"pair \(points, values\)"),
        ([(POINTS, [{"accuracy": 1.0}] * 3)], ROLES, "no value of 'cost' is known"),
    ],
)
def test_outputs_from_runs_rejects(runs, outputs, words):
    with pytest.raises(ValueError, match=words):
        mp.Outputs.from_runs(runs, space=SPACE, outputs=outputs)


def test_outputs_reject_bounds_of_an_unknown_output():
    with pytest.raises(ValueError, match="`value_bounds` has 'acc'"):
        mp.Outputs.from_runs(
            [(POINTS, ROWS)], space=SPACE, outputs=ROLES, value_bounds={"acc": (0, 1)}
        )


def test_outputs_rejects_tasks_over_different_spaces():
    here = mp.Tasks.from_runs([(POINTS, [1.0, 2.0, 3.0])], space=SPACE)
    there = mp.Tasks.from_runs([([[0.5]], [1.0])], space=mp.Space(z=mp.Real(0.0, 1.0)))
    with pytest.raises(ValueError, match="over another space"):
        mp.Outputs({"a": here, "b": there})
