"""HPO-B: its layout, written here in small, and the format of its results."""

import json

import numpy as np
import pytest

from benchmarks.field._hpob import (
    family_of,
    first_rows,
    past_runs,
    read_results,
    regret_at,
    search_spaces,
    searched,
    table,
)
from benchmarks.field._hpob_jobs import combine, hpob_jobs
from benchmarks.field._methods import METHODS


def task(num, seed):
    """A data set as HPO-B writes it."""
    x = np.random.default_rng(seed).random((num, 2))
    return {"X": x.tolist(), "y": np.sum(x, axis=1, keepdims=True).tolist()}


@pytest.fixture
def folder(tmp_path):
    """HPO-B's four files, with one search space."""
    seeds = {f"test{i}": [i, i + 1, i + 2, i + 3, i + 4] for i in range(5)}
    contents = {
        "meta-train-dataset.json": {"4796": {"3": task(8, 0), "6": task(20, 1)}, "5000": {}},
        "meta-validation-dataset.json": {"4796": {"9": task(5, 2)}},
        "meta-test-dataset.json": {"4796": {"31": task(12, 3)}},
        "bo-initializations.json": {"4796": {"31": seeds}},
    }
    for name, value in contents.items():
        (tmp_path / name).write_text(json.dumps(value))
    return tmp_path


def test_family_of_reads_past_and_new_tasks(folder):
    family = family_of(folder, "4796")
    assert search_spaces(folder) == ["4796"]
    assert [pool.name for pool in family.development] == ["3", "6", "9"]
    assert [pool.name for pool in family.test] == ["31"]
    pool = family.test[0]
    assert (pool.x.shape, pool.y.shape) == ((12, 2), (12,))
    np.testing.assert_allclose(pool.y, pool.x.sum(axis=1))


def test_family_of_names_a_missing_space_and_a_missing_file(folder):
    with pytest.raises(ValueError, match="no search space 1; it has 4796"):
        family_of(folder, "1")
    with pytest.raises(FileNotFoundError, match="give the folder of HPO-B's JSON files"):
        family_of(folder / "elsewhere", "4796")


def test_family_of_rejects_configurations_outside_the_unit_cube(folder):
    wrong = {"4796": {"31": {"X": [[0.5, 2.0]], "y": [[0.1]]}}}
    (folder / "meta-test-dataset.json").write_text(json.dumps(wrong))
    with pytest.raises(ValueError, match="X between 0 and 1"):
        family_of(folder, "4796")


def test_past_runs_are_at_most_so_many_evaluations_of_each_past_task(folder):
    tasks = past_runs(family_of(folder, "4796"), 10, seed=0)
    assert tasks.lengths.tolist() == [8, 10, 5]


def test_searched_starts_after_the_first_rows_and_is_scaled_to_the_task(folder):
    pool = family_of(folder, "4796").test[0]
    first = first_rows(folder)["4796"]["31"]["test0"]
    random = METHODS["random"].search(None)  # pyright: ignore[reportArgumentType]
    found = searched(random, pool, first, 100, 0)
    given = (pool.y[first].max() - pool.y.min()) / np.ptp(pool.y)
    assert len(found) == 101
    assert found[0] == pytest.approx(given)
    assert found == sorted(found)
    assert found[7:] == [1.0] * 94  # all twelve rows are asked by then


def test_regret_at_averages_searches_of_a_space_and_then_spaces():
    results = {
        "a": {"1": {"test0": [0.5, 0.6], "test1": [0.7, 1.0]}},
        "b": {"2": {"test0": [0.0, 0.4]}},
    }
    assert regret_at(results, (0, 1)) == pytest.approx({0: 0.7, 1: 0.4})


def test_table_compares_methods_on_the_searches_that_all_have():
    curve = [0.9] * 101
    ours = {"a": {"1": {"test0": [1.0] * 101}}}
    published = {"a": {"1": {"test0": curve, "test1": [0.0] * 101}}}
    rows = table({"published": published, "ours": ours}).splitlines()
    assert rows[2:] == [
        "| ours | 0.0000 | 0.0000 | 0.0000 | 0.0000 |",
        "| published | 0.1000 | 0.1000 | 0.1000 | 0.1000 |",
    ]
    with pytest.raises(ValueError, match="no search in common"):
        table({"ours": ours, "other": {"c": {"1": {"test0": curve}}}})


def test_hpob_jobs_leave_files_of_results_and_are_not_done_again(folder, tmp_path):
    out = tmp_path / "out"
    for job in hpob_jobs(folder, out, ["random"], "normal"):
        job.call(*job.arguments)
    (file,) = combine(out)
    found = read_results(file)
    assert file.name == "random.json"
    assert list(found["4796"]["31"]) == [f"test{i}" for i in range(5)]
    assert len(found["4796"]["31"]["test4"]) == 101
    assert hpob_jobs(folder, out, ["random"], "normal") == []
