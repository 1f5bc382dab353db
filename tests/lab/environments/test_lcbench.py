"""LCBench as a family: the file as it is, and a split that the public benchmark agrees with."""

import json

import jax.random as jr
import numpy as np
import pytest

from benchmarks._tables import LCBENCH as FILE
from benchmarks.field._pools import LCBENCH_SPACE, SPLIT
from metaprior.lab.environments import LCBENCH, Mixture1d, Table
from metaprior.lab.environments._learners import Split


def test_lcbench_tasks_are_the_rows_of_the_file():
    tasks = Table("lcbench").meta_test_tasks()
    with np.load(FILE) as arrays:
        ids = arrays["openml_task_id"].astype(int).tolist()
        for i, data_id in enumerate(tasks.data_id.tolist()):
            recorded = arrays["val_accuracy"][ids.index(data_id)]
            np.testing.assert_array_equal(tasks.values[i], recorded)
        native = LCBENCH.space.decode(tasks.points[0, :5])
        for name in LCBENCH.space.names:
            np.testing.assert_allclose(
                [row[name] for row in native], arrays[name][:5].astype(float), rtol=1e-6
            )
    assert tasks.valid.all() and tasks.points.shape == (11, 2000, 7)
    asked = {name: native[4][name] for name in LCBENCH.space.names}
    assert Table("lcbench").unstack(tasks)[0].evaluate([asked])[0] == tasks.values[0, 4]


def test_lcbench_split_is_that_of_the_public_benchmark():
    theirs = {k: set(map(int, v)) for k, v in json.loads(SPLIT.read_text())["lcbench"].items()}
    split = Table("lcbench").split
    assert set(split.test) == theirs["test"]
    assert {*split.training, *split.validation} == theirs["development"]
    assert Table("lcbench").available == (20, 4, 11) and LCBENCH.space == LCBENCH_SPACE
    with pytest.raises(ValueError, match="no original tables of lcbench; leave `source` out"):
        Table("lcbench", source="somewhere")


@pytest.mark.parametrize("name", ["lcbench", "glmnet"])
def test_rehearsals_validate_on_every_development_dataset_once(name):
    whole = Table(name).split
    folds = [Table(name).rehearsal(i).split for i in range(3)]
    held_out = [each for fold in folds for each in fold.validation]
    assert sorted(held_out) == sorted((*whole.training, *whole.validation))
    for fold in folds:
        assert not {*fold.training} & {*fold.validation} and fold.test == ()
        assert len(fold.validation) == len(folds[0].validation)
        assert sorted((*fold.training, *fold.validation)) == sorted(held_out)
    assert Table(name).rehearsal(3).split == folds[0]


def test_rehearsal_has_no_task_to_report_on():
    with pytest.raises(ValueError, match="The glmnet table has none of the datasets .* for test"):
        Table("glmnet").rehearsal(0).test_tasks(2, key=jr.key(0))
    assert Mixture1d().rehearsal(1) == Mixture1d()


def test_rehearsal_folds_have_one_size():
    fold = Split(tuple(range(20)), (20, 21, 22), (99,)).rehearsal(1)
    assert len(fold.validation) == 7 and len(fold.training) == 16
