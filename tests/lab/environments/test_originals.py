"""Reading the original tables, from small files written here in their layout."""

import numpy as np
import pytest

from metaprior.lab.environments import Table

FILE = "OpenMLRandomBotResultsFinal_mlr.classif.{}.csv"
# As R writes them: quoted names, NA for what is missing, measures and meta-features beside.
GLMNET = """\
"data_id","alpha","lambda","auc","accuracy","brier","runtime","scimark","NumberOfFeatures"
3,0.25,0.5,0.9,0.8,0.1,1.5,1800.5,37
3,0.25,0.5,0.8,0.8,0.1,1.5,1800.5,37
3,0.75,1024,0.5,0.5,0.25,1.5,1800.5,37
335,1,0.0009765625,0.75,0.5,0.25,1.5,1800.5,7
1464,0,1,0.6,0.5,0.25,1.5,1800.5,7
1464,NA,1,0.99,0.5,0.25,1.5,1800.5,7
1464,0.5,4096,0.99,0.5,0.25,1.5,1800.5,7
4534,0.5,1,0.99,0.5,0.25,1.5,1800.5,7
"""
XGBOOST = """\
"data_id","nrounds","eta","subsample","booster","max_depth","min_child_weight",\
"colsample_bytree","colsample_bylevel","lambda","alpha","auc","runtime"
3,100,0.5,0.55,"gbtree",8,64.5,0.25,0.75,1,1,0.9,2.5
3,200,0.5,0.55,"gblinear",NA,NA,NA,NA,1,1,0.7,2.5
3,300,NA,0.55,"gbtree",8,64.5,0.25,0.75,1,1,0.99,2.5
3,400,0.5,0.55,"gbtree",NA,64.5,0.25,0.75,1,1,0.99,2.5
335,1,1,1,"gbtree",1,1,0,0,1,1,0.6,2.5
1464,1,1,1,"gbtree",1,1,0,0,1,1,0.6,2.5
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / FILE.format("glmnet")).write_text(GLMNET)
    (tmp_path / FILE.format("xgboost")).write_text(XGBOOST)
    return tmp_path


def rows(table, task):
    """The valid rows of a task as a list of configurations and values."""
    points = table.space.decode(task.points[task.valid])
    return [(*point.values(), value) for point, value in zip(points, task.values, strict=False)]


def test_original_rows_average_repeated_configurations(folder):
    table = Table("glmnet", source=folder)
    (task,) = table.unstack(table.meta_train_tasks())
    assert task.data_id == 3
    found = sorted(rows(table, task))
    np.testing.assert_allclose(found, [(0.25, 0.5, 0.85), (0.75, 1024.0, 0.5)], rtol=1e-12)
    (test,) = table.unstack(table.meta_test_tasks())
    np.testing.assert_allclose(rows(table, test), [(1.0, 2.0**-10, 0.75)], rtol=1e-12)


def test_original_rows_leave_out_incomplete_and_foreign_rows(folder):
    table = Table("glmnet", source=folder)
    (task,) = table.unstack(table.extra_tasks())
    assert rows(table, task) == [(0.0, pytest.approx(1.0), 0.6)]
    assert table.available == (1, 1, 1)
    assert table.num_tasks == 20 and table.provenance == str(folder)
    assert table.optimum(table.meta_train_tasks()).value == pytest.approx([0.85])


def test_original_rows_put_what_a_linear_booster_ignores_in_the_middle(folder):
    table = Table("xgboost", source=folder)
    (task,) = table.unstack(table.meta_train_tasks())
    assert task.valid.sum() == 2
    linear, tree = task.points[np.argsort(-task.points[:, 5])][::-1]
    names = list(table.space.names)
    middle = [names.index(n) for n in ("max_depth", "min_child_weight")]
    middle += [names.index(n) for n in ("colsample_bytree", "colsample_bylevel")]
    np.testing.assert_array_equal(linear[middle], 0.5)
    np.testing.assert_allclose(tree[middle], [0.5, 0.5, 0.25, 0.75], atol=1e-12)
    assert table.space.decode([linear])[0]["booster"] == 0
    assert table.space.decode([tree])[0]["booster"] == 1
    values = {
        point["nrounds"]: value
        for point, value in zip(table.space.decode(task.points), task.values, strict=True)
    }
    assert values == {100: 0.9, 200: 0.7}


@pytest.mark.parametrize(
    "text, message",
    [
        (GLMNET.replace('"lambda"', '"s"'), "no column 'lambda'"),
        (GLMNET + "3,0.1,0.2\n", "Line 10 of .* has 3 entries instead of 9"),
        (GLMNET.replace("0.75,1024", "x,1024"), "Line 4 of .* no number .*'x'"),
        (GLMNET.splitlines(keepends=True)[0], "no usable row"),
        ("", "no column 'data_id'"),
    ],
)
def test_original_rows_explain_damaged_files(tmp_path, text, message):
    (tmp_path / FILE.format("glmnet")).write_text(text)
    with pytest.raises(ValueError, match=message):
        Table("glmnet", source=tmp_path).meta_train_tasks()


def test_original_rows_explain_missing_files_and_datasets(folder):
    with pytest.raises(ValueError, match="no OpenML.*rpart.csv in .*; fetch it with"):
        Table("rpart", source=folder).extra_tasks()
    (folder / FILE.format("rpart")).write_text(
        "data_id,cp,maxdepth,minbucket,minsplit,auc\n3,0.1,2,3,4,0.5\n"
    )
    assert Table("rpart", source=folder).meta_train_tasks().data_id.tolist() == [3]
    with pytest.raises(ValueError, match="none of the datasets .*1467"):
        Table("rpart", source=folder).extra_tasks()
