"""The benchmark of hosts, small: what regret is, which tasks are new, what is kept and shown."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.integrate import trapezoid

from benchmarks.hosts import _lcbench, _methods, _zdt
from benchmarks.hosts._cells import records_of_cells, run_of
from benchmarks.hosts._measures import hypervolume_regret
from benchmarks.hosts._past import Cell, past_runs
from benchmarks.hosts._records import TREES, fit_file, note_command, pack, read, unpack, write
from benchmarks.hosts._show import page
from benchmarks.hosts._tables import difference, runs_of
from benchmarks.hosts._tasks import Task
from metaprior.bo import on_front

CELL = Cell("zdt", past=2, seed=3, tasks=2, budget="fast")
UNINFORMED = [_methods.TPE, _methods.RANDOM]


def task_of(directions, reference, volume):
    """A task whose values are given to what measures them."""
    return Task("t", _zdt.SPACE, directions, lambda points: np.zeros((0, 2)), reference, volume)


@settings(max_examples=30, deadline=None)
@given(arrays(int, st.tuples(st.integers(1, 6), st.just(2)), elements=st.integers(-1, 6)))
def test_hypervolume_regret_counts_cells(values):
    """On whole numbers the volume is a number of cells: the first is maximised, the second not."""
    task = task_of({"a": "maximize", "b": "minimize"}, np.array([0.0, 5.0]), 30.0)
    found = hypervolume_regret(task, values.astype(float))
    for t in range(len(values)):
        cells = [
            any(a >= i + 1 and b <= j for a, b in values[: t + 1])
            for i, j in itertools.product(range(6), range(-1, 5))
        ]
        assert found[t] == pytest.approx(1.0 - sum(cells) / 30.0)


def test_hypervolume_regret_of_one_objective_is_a_share_of_the_gap():
    task = task_of({"a": "minimize"}, np.array([10.0]), 8.0)
    values = np.array([[11.0], [6.0], [9.0], [2.0]])
    np.testing.assert_allclose(hypervolume_regret(task, values), [1.0, 0.5, 0.5, 0.0])


@settings(max_examples=30, deadline=None)
@given(arrays(int, st.tuples(st.integers(1, 12), st.just(2)), elements=st.integers(0, 6)))
def test_front_of_accuracy_and_cost_is_the_front(values):
    found = _lcbench.on_front_of(values.astype(float))
    expected = values[on_front(values * np.array([1.0, -1.0]))]
    assert sorted(map(tuple, values[found])) == sorted(map(tuple, expected))


@pytest.mark.parametrize("seed", range(4))
def test_zdt_front_and_volume_are_known(seed):
    task = _zdt.task(seed)
    rng = np.random.default_rng(seed)
    points = task.space.decode(rng.uniform(size=(300, 4)))
    anywhere = task.evaluate(points)
    first = np.linspace(0.0, 1.0, 2001)
    power = min(_zdt.POWERS, key=lambda p: abs(volume_above(first, 1.0 - first**p) - task.volume))
    front = np.column_stack([first, 1.0 - first**power])
    assert volume_above(*front.T) == pytest.approx(task.volume, abs=2e-3)
    # No point lies below the front, and one that is on it can be reached.
    assert np.all(anywhere[:, 1] >= 1.0 - anywhere[:, 0] ** power - 1e-9)
    assert 0.0 < hypervolume_regret(task, anywhere)[-1] < 1.0
    assert hypervolume_regret(task, front[::100])[-1] == pytest.approx(0.0, abs=0.05)


def volume_above(first, second):
    """The area between a front and the reference of ZDT."""
    return float(trapezoid(2.0 - second, first) + 0.1 * (2.0 - second[-1]))


def test_zdt_reaches_its_front_at_the_shift():
    task = _zdt.task(5)
    lowest = min(
        task.evaluate([{"x1": 0.0, "x2": a, "x3": b, "x4": c}])[0, 1]
        for a, b, c in itertools.product(np.linspace(0.3, 0.7, 13), repeat=3)
    )
    assert lowest == pytest.approx(1.0, abs=0.05)


def test_past_runs_are_nested_and_their_tasks_are_not_asked():
    few, more = (past_runs(Cell("lcbench", past, 1, 4, "fast")) for past in (1, 2))
    assert few["accuracy"].lengths.tolist() == [25]
    for name in _lcbench.OBJECTIVES:
        np.testing.assert_allclose(more[name].run(0)[1], few[name].run(0)[1])
    assert not {*_lcbench.names("development")} & {*_lcbench.names("test")}
    points, cost = more["cost"].run(1)
    np.testing.assert_allclose(cost, _lcbench.cost(points))


@pytest.mark.slow
def test_lcbench_task_returns_what_is_recorded():
    name = _lcbench.names("test")[0]
    both, one = _lcbench.task(name, 2), _lcbench.task(name, 1)
    known = _lcbench.recorded(name)
    np.testing.assert_allclose(both.evaluate(_lcbench.rows()), known, atol=1e-3)
    # The rows' own front is close to the best known one, and never beyond it.
    assert 0.0 <= hypervolume_regret(both, known[_lcbench.on_front_of(known)])[-1] < 0.05
    best = known[[np.argmax(known[:, 0])], :1]
    assert hypervolume_regret(one, best)[-1] == pytest.approx(0.0, abs=1e-9)


def without_times(folder):
    """What the records say, but for the times."""
    found = {}
    for file in sorted((folder / "records").glob("*.json")):
        record = json.loads(file.read_text())
        found[file.name] = {run["task"]: run["regret"] for run in record["runs"]}
    return found


def test_records_resume_after_the_last_finished_task(tmp_path):
    records_of_cells([CELL], UNINFORMED, 4, tmp_path)
    first = without_times(tmp_path)
    assert [*first] == ["zdt-any-3--TPESampler.json", "zdt-any-3--random.json"]
    assert all([*runs] == [t.name for t in CELL.unseen()] for runs in first.values())
    file = tmp_path / "records" / "zdt-any-3--random.json"
    text = file.read_text()
    records_of_cells([CELL], UNINFORMED, 4, tmp_path)
    assert file.read_text() == text
    record = json.loads(text)
    file.write_text(json.dumps({**record, "runs": record["runs"][:1]}))
    records_of_cells([CELL], UNINFORMED, 4, tmp_path)
    assert without_times(tmp_path) == first
    records_of_cells([CELL], UNINFORMED, 6, tmp_path)
    longer = without_times(tmp_path)
    assert {n: {t: r[:4] for t, r in runs.items()} for n, runs in longer.items()} == first


def test_run_is_the_same_for_the_same_seed(tmp_path):
    (task, _), setting = CELL.unseen(), _methods.Setting(CELL, tmp_path)
    made = [
        run_of(_methods.METHODS[_methods.TPE].searcher(setting, task, 7), task, 12)["regret"]
        for _ in range(2)
    ]
    assert made[0] == made[1] and np.all(np.diff(made[0]) <= 0.0)


def written(folder, method, seed, curves, *, past=None, family="zdt"):
    runs = [{"task": f"{i}", "regret": c, "seconds": [0.1]} for i, c in enumerate(curves)]
    file = folder / "records" / f"{family}-{seed}--{method}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    head = {"family": family, "past": past, "seed": seed, "method": method, "budget": "fast"}
    file.write_text(json.dumps({**head, "runs": runs}))


def test_page_pairs_methods_by_prior_and_task(tmp_path):
    """Three priors; one method lacks a task, which then does not count for either."""
    rng = np.random.default_rng(0)
    ours, theirs = rng.uniform(0.0, 0.2, (3, 2, 30)), rng.uniform(0.5, 1.0, (3, 2, 30))
    for seed in range(3):
        written(tmp_path, _methods.SAMPLER, seed, ours[seed].tolist(), past=24)
        written(tmp_path, _methods.TPE, seed, theirs[seed, : 1 + (seed > 0)].tolist())
        written(tmp_path, _methods.OURS, seed, ours[seed, :1, :10].tolist(), past=24)
    note_command(tmp_path, "python -m benchmarks.hosts run --out hosts/ --priors 3")
    gaps = (ours - theirs)[:, :, 19]
    by_prior = [gaps[0, 0], gaps[1].mean(), gaps[2].mean()]
    low, high = stats.t.interval(0.95, 2, np.mean(by_prior), stats.sem(by_prior))
    found = difference(runs_of(read(tmp_path).runs, "zdt", 24), _methods.SAMPLER, _methods.TPE, 20)
    assert found is not None
    assert (found.mean, found.half) == pytest.approx((np.mean(by_prior), (high - low) / 2))
    fit = {"past": 24, "points": 600, "told": 1, "learning": {"seconds": 9.5}}
    (tmp_path / "fits").mkdir()
    times = {_methods.OURS: 0.02, _methods.AX_TRANSFER: None}
    (tmp_path / "fits" / "fit.json").write_text(json.dumps({**fit, "proposal": times}))
    text = page(read(tmp_path))
    for lines in text.split("\n\n"):
        rows = [line.count(" | ") for line in lines.splitlines() if line.startswith("| ")]
        assert len({*rows}) <= 1
    assert "| 24 | 600 | 1 | not finished | 0.02 | 9.5 |" in text
    assert f"| 20 | {np.mean(by_prior):+.3f} ± {(high - low) / 2:.3f} | 3 | met |" in text
    assert "python -m benchmarks.hosts run --out hosts/ --priors 3\n" in text
    # Our optimiser made ten trials only.
    assert "| Optimizer | 3 | 3 |" in text and "| – | – | 0.1 |" in text


def test_packed_records_show_the_same_page(tmp_path):
    written(tmp_path, _methods.TPE, 0, [[0.5] * 30])
    written(tmp_path, _methods.SAMPLER, 0, [[0.25] * 30], past=10)
    records = read(tmp_path)
    pack(records, tmp_path / "packed.json.gz")
    again = read(tmp_path / "packed.json.gz")
    assert again == records and page(again) == page(records)
    assert "-0.250 (one prior) | 1 | not shown" in page(again)
    with pytest.raises(ValueError, match="There are no records in"):
        read(tmp_path / "empty")


def test_unpacked_records_are_continued(tmp_path):
    records_of_cells([CELL], UNINFORMED, 4, tmp_path / "made")
    note_command(tmp_path / "made", "python -m benchmarks.hosts run")
    fit = {"family": "zdt", "past": 2, "seed": 3, "proposal": {_methods.OURS: 0.02}}
    write(fit_file(tmp_path / "made", CELL.name), fit)
    write(tmp_path / "made" / TREES, {"1": {"trees rank": 0.9}})
    records = read(tmp_path / "made")
    pack(records, tmp_path / "packed.json.gz")
    unpack(tmp_path / "packed.json.gz", tmp_path / "again")
    assert replace(read(tmp_path / "again"), made=records.made) == records
    names = [file.name for file in sorted((tmp_path / "again").glob("*/*.json"))]
    assert names == [file.name for file in sorted((tmp_path / "made").glob("*/*.json"))]
    records_of_cells([replace(CELL, tasks=1)], UNINFORMED, 4, tmp_path / "again")
    assert replace(read(tmp_path / "again"), made=records.made) == records


@pytest.mark.oracle
@pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ax\..*")
def test_past_runs_become_experiments_that_transfer_reads():
    name = "ax.adapter.transfer_learning.adapter"
    transfer = pytest.importorskip(name, reason="`make oracle` installs Ax")
    from benchmarks.hosts._ax_reference import attach, new_client

    past, task = past_runs(CELL), CELL.unseen()[0]
    client = new_client(task.space, dict(task.directions), "new", 0)
    attach(client, past, list(task.directions))
    sources = client._experiment.auxiliary_experiments_by_purpose[transfer.TL_EXP]
    assert [each.experiment.name for each in sources] == ["past 0", "past 1"]
    for i, source in enumerate(sources):
        frame = source.experiment.lookup_data().df
        for name in task.directions:
            points, values = past[name].run(i)
            own = frame[frame["metric_name"] == name].sort_values("trial_index")
            np.testing.assert_allclose(own["mean"], values)
            arms = source.experiment.arms_by_name
            first = arms[own["arm_name"].iloc[0]].parameters
            assert first == pytest.approx(points[0])
