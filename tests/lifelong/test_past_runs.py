"""Past runs that begin a sequence or join it."""

import numpy as np
import pytest

import metaprior as mp
from metaprior.lifelong import PriorSequence
from tests.commands import invoke
from tests.quick_learn import findings_with, quick_learn

FILES = {
    "monday": "temp;operator;yield_pct\n20,5;Ines;81,25\n30,1;Ines;failed\n22,7;Ines;83\n",
    "tuesday": "temp;operator;yield_pct\n25;Mara;79,5\n29,9;Mara;84,75\n21,3;Mara;80\n",
}


@pytest.fixture
def runs(tmp_path):
    for name, text in FILES.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return sorted(tmp_path.glob("*.csv"))


@pytest.fixture
def learned(monkeypatch):
    """A stand-in for learning that keeps the tasks it was given."""
    given = []

    def learn(tasks, **options):
        given.append(tasks)
        return quick_learn(tasks, findings_with(tasks, 0.5))

    monkeypatch.setattr("metaprior.lifelong._learning.learn", learn)
    monkeypatch.setattr("metaprior.cli._app.prepare_jax", lambda: None)
    monkeypatch.setattr(
        "metaprior.lifelong._learning.held_out_log_likelihood",
        lambda prior, tasks, *, spread: np.zeros(len(tasks)),
    )
    return given


def begun(folder, read):
    quantity = read.tasks.quantity
    sequence = PriorSequence.begin(folder, space=read.space, quantity=quantity)
    return sequence, sequence.add(read.tasks)


def test_add_writes_runs_that_are_read_back_as_they_were(runs, tmp_path, learned):
    read = mp.data.csv.read_runs(runs)
    sequence, names = begun(tmp_path / "machine", read)
    assert names == ["monday", "tuesday"] and sequence.ledger.finished == ("monday", "tuesday")
    text = sequence.run_file("monday").read_text()
    assert text == "temp,yield_pct\n20.5,81.25\n22.7,83\n"
    version = sequence.learn()
    assert version is not None and version.kept and version.runs == names
    for before, after in zip((0, 1), (0, 1), strict=True):
        np.testing.assert_array_equal(learned[0].run(after)[1], read.tasks.run(before)[1])
    assert learned[0].quantity.label == "yield_pct in %"
    assert sequence.add(read.tasks) == names and sequence.learn() is None


def test_add_calls_runs_what_a_file_can_be_called(tmp_path):
    space = mp.Space(x=mp.Real(0.0, 1.0), kind=mp.Categorical(["a", "b"]), n=mp.Integer(1, 9))
    points = [{"x": 0.1, "kind": "a", "n": 3}, {"x": 1 / 3, "kind": "b", "n": 1}]
    names = ["runs/a.csv:1", "../..", "runs/a.csv-1", "x" * 300]
    tasks = mp.Tasks.from_runs([(points, [1.0, 2.0])] * 4, space=space, names=names)
    sequence = PriorSequence.begin(tmp_path / "machine", space=space)
    given = sequence.add(tasks)
    assert given[:3] == ["runs-a.csv-1", "run-2", "runs-a.csv-1-2"] and len(given[3]) < 200
    assert all(sequence.run_file(name).is_file() for name in given)
    assert sequence.add(tasks) == given


def test_add_refuses_what_the_sequence_cannot_keep(runs, tmp_path):
    read = mp.data.csv.read_runs(runs)
    sequence, _ = begun(tmp_path / "machine", read)
    other = mp.Tasks.from_runs([([[25.0]], [1.0])], space=read.space, names=["monday"])
    with pytest.raises(ValueError, match="There is another run in .*monday.csv; rename"):
        sequence.add(other)
    with pytest.raises(ValueError, match="The sequence in .* is over"):
        sequence.add(mp.Tasks.from_runs([([[0.5]], [1.0])], space=mp.Space(x=mp.Real(0, 1))))
    known = mp.Tasks.from_runs([([[25.0]], [1.0])], space=read.space, features=[{"load": 3.0}])
    with pytest.raises(ValueError, match="keeps no features of tasks"):
        sequence.add(known)


@pytest.mark.parametrize("option", ["--value-bounds 0 100", "--feature operator"])
def test_learn_lifelong_leaves_no_sequence_behind_when_it_is_refused(runs, tmp_path, option):
    refused = invoke("learn", "--lifelong", tmp_path / "machine", *option.split(), *runs)
    assert refused.exit_code == 2 and "A lifelong sequence keeps no" in refused.stderr
    assert not (tmp_path / "machine").exists()


def test_learn_lifelong_begins_a_sequence_and_runs_join_it(runs, tmp_path, learned):
    folder = tmp_path / "machine"
    command = ["learn", "--lifelong", folder, "--budget", "fast"]
    done = invoke(*command, *runs)
    assert done.exit_code == 0, done.output
    assert "Version 1 of" in done.stdout and "learned from 2 runs, is in use" in done.stdout
    asked = invoke("suggest", "--lifelong", folder, "--run", "today")
    assert asked.exit_code == 0 and "expected yield_pct:" in asked.stdout
    assert "already" in invoke(*command, *runs).stdout

    more = [tmp_path / "wednesday.csv", tmp_path / "friday.csv"]
    for path in more:
        path.write_text("temp,yield_pct\n24,80\n26.5,82\n")
    done = invoke(*command, *more)
    assert done.exit_code == 0 and "learned from 4 runs" in done.stdout, done.output
    assert PriorSequence(folder).ledger.finished[2:] == ("wednesday", "friday")
    alone = tmp_path / "saturday.csv"
    alone.write_text("temp,yield_pct\n23,81\n26,82.5\n")
    done = invoke(*command, alone)
    assert done.exit_code == 0 and "learned from 5 runs" in done.stdout, done.output
    assert invoke("learn", "--lifelong", tmp_path / "new", alone).exit_code == 2
    refused = invoke(*command, *runs, "--out", tmp_path / "prior")
    assert refused.exit_code == 2 and "leave --out and --force out" in refused.stderr
