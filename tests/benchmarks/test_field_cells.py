"""Cells of the field benchmark: their tasks, what is there to do, and a page of what was done."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.field._cells import jobs_of, record_file
from benchmarks.field._methods import METHODS, greedy_portfolio, label
from benchmarks.field._past import GRID_SIZE, Cell, cells_of, order_by_sampler
from benchmarks.field._pools import FAMILIES, SHARED_ROWS, Pool, family_named
from benchmarks.field._records import gather, note_run, read, read_rows
from benchmarks.field._show import show, text_of
from metaprior.data import Real, Space, Tasks

SQUARE = Space(x0=Real(0.0, 1.0), x1=Real(0.0, 1.0))


def a_pool(num=30, seed=0):
    """A pool in the square, with its values."""
    x = np.random.default_rng(seed).random((num, 2))
    return Pool(str(seed), x, -np.sum((x - 0.3) ** 2, axis=1))


@pytest.mark.parametrize("name", FAMILIES)
def test_test_tasks_are_never_development_tasks(name):
    family = family_named(name)
    development = {pool.name for pool in family.development}
    assert len(development) == len(family.development) > 0 < len(family.test)
    assert not development & {pool.name for pool in family.test}


@pytest.mark.parametrize("name", FAMILIES)
def test_validation_uses_development_tasks_only_and_asks_each_of_them_once(name):
    family = family_named(name)
    asked = []
    for seed in range(3):
        cell = Cell(name, "gp", "validation", seed)
        new = {pool.name for pool in cell.new_tasks(family)}
        past = {pool.name for pool in cell.past_tasks(family)}
        assert not new & past
        assert new | past == {pool.name for pool in family.development}
        asked += sorted(new)
    assert sorted(asked) == sorted(pool.name for pool in family.development)


def test_all_tasks_of_a_family_with_shared_rows_have_the_same_configurations():
    for name in SHARED_ROWS:
        family = family_named(name)
        first = family.development[0].x
        assert all(np.array_equal(pool.x, first) for pool in family.development + family.test)


def test_cells_of_leaves_the_grid_to_families_with_shared_rows():
    cells = cells_of(["lcbench", "xgboost"], ["gp", "grid", "off-grid"], "test", range(2))
    assert [cell.name for cell in cells if cell.seed == 0] == [
        "lcbench-gp-test-0",
        "xgboost-gp-test-0",
        "lcbench-grid-test-0",
        "lcbench-off-grid-test-0",
    ]
    assert [cell.seed for cell in cells] == [0] * 4 + [1] * 4


def test_off_grid_has_the_past_of_the_grid_and_none_of_its_configurations():
    family = family_named("lcbench")
    grid, off_grid = (Cell("lcbench", regime, "test", 0) for regime in ("grid", "off-grid"))
    past = off_grid.past_runs(family)
    np.testing.assert_array_equal(past.x, grid.past_runs(family).x)
    assert past.lengths.tolist() == [GRID_SIZE] * len(family.development)
    assert all(np.array_equal(x, past.x[0]) for x in past.x)
    tried = {tuple(row) for row in np.round(past.x[0, :GRID_SIZE], 9)}
    for pool, full in zip(off_grid.new_tasks(family), family.test, strict=True):
        assert len(pool.y) == len(full.y) - GRID_SIZE
        assert not tried & {tuple(row) for row in np.round(pool.x, 9)}


def test_label_of_what_learn_gives_names_a_budget_that_is_not_normal():
    assert label("learn", "fast") == "learn (fast)"
    assert (label("learn", "normal"), label("ABLR", "fast")) == ("learn", "ABLR")


def test_records_of_two_budgets_are_two_files(tmp_path):
    cell = Cell("rpart", "gp", "validation", 0)
    files = {record_file(cell, label("learn", b), tmp_path) for b in ("fast", "normal")}
    assert len(files) == 2


def test_jobs_of_puts_the_past_before_priors_before_searches(tmp_path):
    cells = cells_of(["rpart"], ["gp", "tpe"], "validation", range(2))
    jobs = jobs_of(cells, ["learn", "random"], "fast", tmp_path)
    names = [job.name for job in jobs if "validation-0" in job.name]
    assert names == [
        "rpart-gp-validation-0: past",
        "rpart-tpe-validation-0: past",
        "rpart-gp-validation-0: fast",
        "rpart-tpe-validation-0: fast",
        "rpart-gp-validation-0: learn (fast), search",
        "rpart-gp-validation-0: random, search",
        "rpart-tpe-validation-0: learn (fast), search",
        "rpart-tpe-validation-0: random, search",
    ]
    by_name = {job.name: job for job in jobs}
    assert set(by_name[names[4]].after) == {names[0], names[2]}
    assert names[5] in by_name[names[7]].after  # the same search, done once
    assert len(jobs) == 2 * len(names)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Records of three cells, of methods that need no past."""
    out = tmp_path_factory.mktemp("field")
    cells = cells_of(["rpart"], ["gp", "tpe"], "validation", range(2))
    for job in jobs_of(cells, ["random"], "normal", out):
        job.call(*job.arguments)
    note_run(out, {"date": "1 January 2026", "software": {"jax": "0"}}, ["a command"])
    return out, cells


def test_jobs_of_leaves_out_finished_jobs(done):
    out, cells = done
    assert jobs_of(cells, ["random"], "normal", out) == []
    assert len(jobs_of(cells, ["random", "TPE"], "normal", out)) == len(cells)
    assert len(jobs_of(cells, ["TPE"], "normal", out)) == len(cells)


def test_records_of_searches_without_past_runs_are_the_same_in_both_regimes(done):
    out, cells = done
    gp, tpe = (read_rows(record_file(cell, "random", out)) for cell in cells[:2])
    assert [row["regret"] for row in gp] == [row["regret"] for row in tpe]
    assert {row["regime"] for row in tpe} == {"tpe"}
    assert len(gp) == len(cells[0].new_tasks(family_named("rpart")))


def test_gather_keeps_everything_that_the_page_shows(done, tmp_path):
    out, _ = done
    gather(out, tmp_path / "all.parquet")
    assert text_of(*read(tmp_path / "all.parquet")) == text_of(*read(out))


def test_page_has_the_command_a_table_for_each_cell_and_plain_answers(done):
    records, made = read(done[0])
    other = records.assign(method="learn", regret=[r * 0.5 for r in records["regret"]])
    text = text_of(other, made)
    both = text_of(pd.concat([other, records]), made)
    assert "Measured on 1 January 2026 with jax 0, by\n\n```console\na command" in text
    assert "## rpart, gp, validation tasks" in both
    assert "## Where `learn` wins, ties and loses: validation tasks" in both
    against = both[both.index("| against |") :].splitlines()[2]
    assert against.startswith("| random | ")
    assert "`learn` loses in no cell." in both


def test_page_is_written_with_a_figure_for_each_family(done, tmp_path):
    show(done[0], tmp_path / "field.md", None)
    assert (
        "![Regret over queries](images/field-validation-rpart.svg)"
        in (tmp_path / "field.md").read_text()
    )
    assert (tmp_path / "images" / "field-validation-rpart.svg").stat().st_size > 1000


def test_read_names_a_place_without_records(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no records"):
        read(tmp_path)


def test_text_of_names_the_methods_if_the_baseline_is_none_of_them(done):
    with pytest.raises(ValueError, match="no records of 'nothing'; give one of random"):
        text_of(*read(done[0]), "nothing")


def test_greedy_portfolio_takes_complementary_configurations_first():
    """Two runs, each best at a corner of its own: one corner, then the other."""
    x = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]])
    tasks = Tasks.from_runs(
        [(SQUARE.decode(x), [1.0, 0.0, 0.6]), (SQUARE.decode(x), [0.0, 1.0, 0.6])], space=SQUARE
    )
    assert greedy_portfolio(tasks, Pool("", x, np.zeros(3)), 3)[0] == 2
    assert sorted(greedy_portfolio(tasks, Pool("", x, np.zeros(3)), 3)) == [0, 1, 2]


def test_order_by_sampler_names_each_row_once_and_begins_with_those_given():
    from optuna.samplers import RandomSampler

    pool = a_pool(num=12)
    order = order_by_sampler(pool, 20, RandomSampler(seed=0), first=[3, 5])
    assert order[:2] == [3, 5]
    assert sorted(order) == list(range(12))


def test_random_search_begins_with_the_rows_that_are_given():
    search = METHODS["random"].search
    record = search(None)(a_pool(), 10, 0, [4, 2])  # pyright: ignore[reportArgumentType]
    assert record["rows"][:2] == [4, 2]
    assert len(set(record["rows"])) == 10
