"""The table of model selection: what is in it, how it is looked up, and that real learners made
it."""

from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree
from sklearn.metrics import roc_auc_score

from metaprior.lab.environments import (
    MODEL_SELECTION,
    model_selection_tasks,
    model_selection_tuning_tasks,
)
from tools import make_model_selection as tool

# Written out again, so that a change of the space is a change of this file too.
ACTIVE = {
    "linear": {"learner", "keep", "kernel", "C"},
    "rbf": {"learner", "keep", "kernel", "C", "gamma"},
    "poly": {"learner", "keep", "kernel", "C", "gamma", "degree"},
    "forest": {"learner", "keep", "max_features", "min_leaf"},
    "boosting": {"learner", "keep", "max_features", "rounds", "rate", "max_depth"},
    "neighbours": {"learner", "keep", "neighbours", "weights"},
}
ROWS = {"linear": 60, "rbf": 140, "poly": 200, "forest": 140, "boosting": 200, "neighbours": 60}


def branch(point):
    return point.get("kernel", point["learner"])


def test_model_selection_tasks_are_forty_and_sixteen_others():
    reported, tuning = model_selection_tasks(), model_selection_tuning_tasks()
    assert (len(reported), len(tuning)) == (40, 16)
    assert {task.name for task in reported + tuning} == set(tool.questions())
    place = resources.files("metaprior.lab.environments") / "tables" / "model_selection.npz"
    assert len(place.read_bytes()) < 600_000


def test_model_selection_rows_have_the_parameters_of_their_branch():
    for task in model_selection_tasks() + model_selection_tuning_tasks():
        rows = task.rows()
        counts = dict.fromkeys(ROWS, 0)
        for point, value in rows:
            assert set(point) == ACTIVE[branch(point)]
            assert 0 <= value <= 1
            counts[branch(point)] += 1
        assert counts == ROWS
        values = [value for _, value in rows]
        assert task.best == max(values)
        assert task.best - task.median > 0.002  # there is something to gain


def test_model_selection_learner_that_is_best_depends_on_the_task():
    every = model_selection_tasks()
    best = [max(task.rows(), key=lambda row: row[1])[0]["learner"] for task in every]
    assert min(best.count(learner) for learner in ("svm", "forest", "boosting")) >= 2


def test_model_selection_lookup_agrees_with_a_tree_of_hand_scaled_points():
    def scaled(point):
        return [
            (point["keep"] - 0.1) / 0.9,
            np.log10(point["C"] / 0.001) / 5,
            np.log(point["gamma"] / 0.01) / np.log(3000),
        ]

    task = model_selection_tasks()[3]
    known = [(scaled(point), value) for point, value in task.rows() if branch(point) == "rbf"]
    tree = KDTree([position for position, _ in known])
    rng = np.random.default_rng(0)
    for _ in range(50):
        point = {
            "learner": "svm",
            "keep": rng.uniform(0.1, 1),
            "kernel": "rbf",
            "C": 10 ** rng.uniform(-3, 2),
            "gamma": rng.uniform(0.01, 30),
        }
        assert task.evaluate(point) == known[tree.query(scaled(point))[1]][1]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 799), st.integers(0, 39))
def test_model_selection_row_of_the_table_has_its_own_value(row, number):
    task = model_selection_tasks()[number]
    rows = task.rows()
    point, value = rows[row]
    twins = [other for same, other in rows if same == point]  # three digits may meet
    assert task.evaluate(point) in twins
    assert value in twins


@pytest.mark.parametrize(
    "change", [{"gamma": 1.0}, {"degree": 3}, {"rounds": 10}], ids=lambda change: next(iter(change))
)
def test_model_selection_refuses_parameters_of_another_branch(change):
    task = model_selection_tasks()[0]
    linear = {"learner": "svm", "keep": 0.5, "kernel": "linear", "C": 1.0}
    assert task.evaluate(linear) <= task.best
    with pytest.raises(ValueError, match="exists only if"):
        task.evaluate(linear | change)
    with pytest.raises(ValueError, match="'C'"):
        task.evaluate({name: linear[name] for name in ("learner", "keep", "kernel")})


def test_model_selection_space_has_the_parameters_of_each_branch():
    for point, _ in model_selection_tasks()[0].rows():
        [back] = MODEL_SELECTION.decode(MODEL_SELECTION.encode([point]))
        assert set(back) == ACTIVE[branch(point)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30))
def test_model_selection_tool_auc_agrees_with_scikit_learn(pairs):
    score = np.array([score for score, _ in pairs], float)
    answer = np.array([answer for _, answer in pairs])
    if answer.all() or not answer.any():
        answer[0] = not answer[0]
    np.testing.assert_allclose(tool.auc(score, answer), roc_auc_score(answer, score), rtol=1e-12)


def test_model_selection_table_holds_what_the_learners_score():
    """The first rows of the linear kernel, trained again."""
    names = list(tool.questions())
    tasks = {task.name: task for task in model_selection_tasks() + model_selection_tuning_tasks()}
    for number in (4, 40):
        x, y, difficulty = tool.questions()[names[number]]
        made = tool.rows_of(number, x, y, difficulty, {("svm", "linear"): 5})
        shipped = tasks[names[number]].rows()[:5]
        for row, (point, value) in zip(made, shipped, strict=True):
            assert {name: row[name] for name in point} == point
            np.testing.assert_allclose(row["auc"], value, atol=1e-6)
