"""The shipped tables: what is in them, and that tasks look it up as it is."""

from importlib import resources

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest

from metaprior.lab.environments import Branin, Family, Table
from tools.make_tables import checked, compact

NAMES = ("glmnet", "rpart", "xgboost")
TRAINING = {3, 31, 37, 44, 50, 151, 1046, 1049, 1050, 1063, 1067, 1068, 1461, 1462, 1570}
TEST = {333, 334, 335, 1120, 1479, 1480, 1485, 1487, 1489, 1494, 1504, 1510}
VALIDATION = {1464, 1467, 1471}
# Of the files that the tables were made from: rows and best value of some datasets.
ROWS = {
    "glmnet": {3: 3000, 1479: 400, 1485: 600, 1049: 2991, 1471: 926},
    "rpart": {3: 2300, 44: 1800, 1485: 350, 1471: 1800},
    "xgboost": {3: 484, 1467: 973, 1485: 473, 1510: 961},
}
BEST = {
    "glmnet": {31: 0.797333, 334: 0.544451, 1504: 1.0, 1464: 0.760885},
    "rpart": {31: 0.740476, 334: 0.990633, 1504: 1.0, 1464: 0.73452},
    "xgboost": {31: 0.793769, 334: 0.985024, 1504: 0.999915, 1464: 0.75584},
}
# And single rows: dataset, number of the row, configuration, value.
EXAMPLES = {
    "glmnet": [
        (3, 700, {"alpha": 0.6271962866, "lambda": 516.4627908397}, 0.5),
        (1485, 599, {"alpha": 0.1323720033, "lambda": 0.0013656719}, 0.5814260355),
    ],
    "rpart": [
        (31, 1000, {"cp": 0.6556234881, "maxdepth": 26, "minbucket": 27, "minsplit": 5}, 0.5),
        (
            1120,
            77,
            {"cp": 0.0006374429, "maxdepth": 8, "minbucket": 4, "minsplit": 17},
            0.8675586559,
        ),
    ],
    "xgboost": [
        (
            1570,
            400,
            {
                "nrounds": 377,
                "eta": 0.122455289,
                "lambda": 2.98572826,
                "alpha": 1.42392905,
                "subsample": 0.834343086,
                "booster": 0,
                "max_depth": 12,
                "min_child_weight": 1.10345378,
                "colsample_bytree": 0.223097988,
                "colsample_bylevel": 0.253957522,
            },
            0.668593674,
        ),
        (
            333,
            5,
            {
                "nrounds": 1123,
                "eta": 0.324728722,
                "lambda": 4.65209357,
                "alpha": 33.4177745,
                "subsample": 0.146359788,
                "booster": 1,
                "max_depth": 5,
                "min_child_weight": 6.34427215,
                "colsample_bytree": 0.316115295,
                "colsample_bylevel": 0.365250286,
            },
            0.5,
        ),
    ],
}


def all_tasks(table):
    """Every dataset of a table as a task, by its identifier."""
    stacks = (table.meta_train_tasks(), table.meta_test_tasks(), table.extra_tasks())
    return {int(task.data_id): task for stack in stacks for task in table.unstack(stack)}


@pytest.fixture(scope="module", params=NAMES)
def table(request):
    return Table(request.param)


@pytest.fixture(scope="module")
def tasks(table):
    return all_tasks(table)


def test_table_sizes_are_the_papers_but_for_missing_datasets(table):
    sizes = (table.space.num_columns, table.num_tasks, table.run_length)
    assert (
        sizes == {"glmnet": (2, 15, 10), "rpart": (4, 15, 20), "xgboost": (10, 15, 50)}[table.name]
    )
    assert table.available == (15, 3, 12)


def test_table_split_is_the_papers(table):
    assert set(table.meta_train_tasks().data_id.tolist()) == TRAINING
    assert set(table.meta_test_tasks().data_id.tolist()) == TEST
    assert set(table.extra_tasks().data_id.tolist()) == VALIDATION


def test_table_rows_and_best_values_of_the_datasets(table, tasks):
    for data_id, count in ROWS[table.name].items():
        assert tasks[data_id].valid.sum() == count == tasks[data_id].num_points()
    for data_id, best in BEST[table.name].items():
        assert tasks[data_id].values.max() == pytest.approx(best, abs=5e-7)


def test_table_values_and_points_are_valid(table, tasks):
    for task in tasks.values():
        assert task.points.shape == (*task.values.shape, table.space.num_columns)
        assert task.points.dtype == task.values.dtype == np.float64
        assert (task.points >= 0).all() and (task.points <= 1).all()
        assert (task.values >= 0).all() and (task.values <= 1).all()
        rows = task.points[task.valid]
        assert len(np.unique(rows, axis=0)) == len(rows)
        # Padding repeats rows and their values, in order.
        filled = np.resize(np.arange(len(rows)), len(task.values))
        np.testing.assert_array_equal(task.points, rows[filled])
        np.testing.assert_array_equal(task.values, task.values[task.valid][filled])


def test_table_rows_decode_to_configurations_inside_the_space(table, tasks):
    task = tasks[1485]
    for point in table.space.decode(task.points[task.valid]):
        for dimension, value in zip(table.space.dimensions, point.values(), strict=True):
            assert dimension.low <= value <= dimension.high
    again = table.space.encode(table.space.decode(task.points[task.valid]))
    np.testing.assert_allclose(again, task.points[task.valid], atol=1e-12)


def test_table_rows_are_those_of_the_files(table, tasks):
    for data_id, row, configuration, value in EXAMPLES[table.name]:
        task = tasks[data_id]
        (found,) = table.space.decode(task.points[row : row + 1])
        assert found == pytest.approx(configuration, rel=1e-12)
        assert task.values[row] == value
        np.testing.assert_array_equal(task.evaluate([configuration]), [value])


# The paper's transformations, each an affine function of the column of the unit cube.
TRANSFORMATIONS = {
    "glmnet": {"alpha": lambda v: v, "lambda": lambda v: np.log2(v) / 10},
    "rpart": {
        "cp": lambda v: 4 * v,
        "maxdepth": lambda v: v / 10,
        "minbucket": lambda v: v / 20,
        "minsplit": lambda v: v / 20,
    },
    "xgboost": {
        "nrounds": lambda v: (v - 2000) / 1000,
        "eta": lambda v: (np.log2(v) + 5) / 2,
        "lambda": lambda v: np.log2(v) / 5,
        "alpha": lambda v: np.log2(v) / 5,
        "subsample": lambda v: (v - 0.5) / 2,
        "booster": lambda v: 2 * v - 1,
        "max_depth": lambda v: v,
        "min_child_weight": lambda v: (v - 50) / 20,
        "colsample_bytree": lambda v: v,
        "colsample_bylevel": lambda v: v,
    },
}


def test_table_unit_cube_is_the_papers_space_up_to_affine_maps(table, tasks):
    task = tasks[1485]
    points = table.space.decode(task.points[task.valid])
    assert tuple(TRANSFORMATIONS[table.name]) == table.space.names
    for column, (name, transform) in zip(
        task.points[task.valid].T, TRANSFORMATIONS[table.name].items(), strict=True
    ):
        theirs = transform(np.array([point[name] for point in points], float))
        slope, intercept = np.polyfit(column, theirs, 1)
        np.testing.assert_allclose(theirs, slope * column + intercept, atol=1e-8)
        assert slope > 0


def test_table_task_looks_up_the_nearest_row(tasks):
    task = tasks[1485]
    some = np.flatnonzero(task.valid)[::50]
    np.testing.assert_array_equal(jax.vmap(task)(jnp.asarray(task.points[some])), task.values[some])
    u = np.random.default_rng(0).uniform(size=(20, task.points.shape[1]))
    nearest = [np.argmin(np.linalg.norm(task.points - each, axis=1)) for each in u]
    np.testing.assert_array_equal(jax.vmap(task)(jnp.asarray(u)), task.values[nearest])


def test_table_optimum_is_its_best_value(table):
    stack = table.meta_test_tasks()
    found = table.optimum(stack)
    for i, task in enumerate(table.unstack(stack)):
        assert found.value[i] == max(task.values[: int(task.valid.sum())])
        assert task(jnp.asarray(found.x[i])) == found.value[i]


def test_table_keys_decide_which_datasets_and_never_the_side_of_the_split():
    table = Table("glmnet")
    seen = set()
    for seed in range(30):
        key = jr.key(seed)
        some = table.training_tasks(4, key=key).data_id.tolist()
        assert some == table.training_tasks(4, key=key).data_id.tolist()
        assert len(set(some)) == 4
        seen |= set(some)
        assert set(table.test_tasks(5, key=key).data_id.tolist()) < TEST
        assert set(table.validation_tasks(2, key=key).data_id.tolist()) < VALIDATION
    assert seen == TRAINING
    orders = [table.test_tasks(100, key=jr.key(seed)).data_id.tolist() for seed in (0, 1)]
    assert orders[0] != orders[1] and set(orders[0]) == set(orders[1]) == TEST
    with pytest.raises(ValueError, match="Cannot sample 0 tasks"):
        table.training_tasks(0, key=jr.key(0))


def test_simulated_families_have_all_kinds_of_tasks_too():
    family: Family = Branin()
    key = jr.key(0)
    expected = Branin().sample_tasks(3, key=key)
    for draw in (family.training_tasks, family.validation_tasks, family.test_tasks):
        np.testing.assert_array_equal(draw(3, key=key).a, expected.a)
    assert family.available == (None, None, None)
    task = family.unstack(expected)[0]
    first, second = task.uniform((4, 2), key=key)
    assert task.choices is None and np.isinf(task.num_points())
    assert first.shape == (4, 2) and second.shape == (2, 2)
    assert ((first >= 0) & (first <= 1)).all()


def test_uniform_sets_of_a_table_share_no_row(tasks):
    task = tasks[1485]
    count = int(task.valid.sum())
    first, second = task.uniform((count - 100, 100), key=jr.key(0))
    drawn = np.concatenate([first, second])
    assert len(np.unique(drawn, axis=0)) == count
    np.testing.assert_array_equal(
        np.unique(drawn, axis=0), np.unique(task.points[task.valid], axis=0)
    )


def test_table_is_a_value_and_explains_misuse():
    assert Table("rpart") == Table("rpart") and hash(Table("rpart")) == hash(Table("rpart"))
    assert Table("rpart") != Table("rpart", run_length=5)
    assert Table("rpart", num_tasks=3, noise_std=0.1).num_tasks == 3
    with pytest.raises(
        ValueError, match="no table 'svm'; name one of glmnet, rpart, xgboost, lcbench"
    ):
        Table("svm")
    with pytest.raises(ValueError, match="`run_length` of Table is 0"):
        Table("rpart", run_length=0)
    stack = Table("rpart").extra_tasks()
    with pytest.raises(TypeError, match="Expected tasks of Table"):
        Table("glmnet").optimum(stack)
    with pytest.raises(ValueError, match="got a single TableTask"):
        Table("rpart").optimum(Table("rpart").unstack(stack)[0])


def test_table_files_are_small_and_documented():
    folder = resources.files("metaprior.lab.environments") / "tables"
    sizes = {each.name: len(each.read_bytes()) for each in folder.iterdir()}
    others = {"README.md", "model_selection.npz", "lcbench.npz", "lcbench_split.json"}
    assert set(sizes) == {*others, *(f"{name}.npz" for name in NAMES)}
    assert sum(size for name, size in sizes.items() if name not in others) < 1_000_000
    assert "What they are not" in (folder / "README.md").read_text()


def test_make_tables_compact_loses_nothing():
    frame = pd.DataFrame({"auc": [0.3, 0.1, 0.3, 0.2], "data_id": [3, 3, 31, 31]})
    arrays = compact(frame, ["auc", "data_id"])
    for name in frame:
        np.testing.assert_array_equal(
            arrays[f"{name}_values"][arrays[f"{name}_codes"]], frame[name]
        )
    with pytest.raises(ValueError, match="missing or too many"):
        compact(pd.DataFrame({"auc": [0.1, np.nan]}), ["auc"])


def test_make_tables_refuses_another_split():
    frame = pd.DataFrame({"data_id": [3, 31], "split": "train", "alpha": 0.5})
    assert checked(frame, ["alpha"]) is frame
    with pytest.raises(ValueError, match=r"Datasets \[3, 31\] are not in the split 'test'"):
        checked(frame.assign(split="test"), ["alpha"])
    with pytest.raises(ValueError, match="twice"):
        checked(frame.assign(data_id=3), ["alpha"])
