"""A sequence of runs in a folder: versions, the judgement between them, and what can go wrong."""

import json
import os
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import metaprior as mp
from metaprior.findings import Findings, PastTask
from metaprior.learning import held_out_log_likelihood
from metaprior.lifelong import PriorSequence, Version, learn_version, untrained_prior
from tests.commands import invoke
from tests.quick_learn import findings_with, quick_learn
from tests.saved import arrays_of

SPACE = mp.Space(x=mp.Real(-1.0, 1.0), z=mp.Real(0.0, 10.0))
SPACE_FILE = """[x]
kind = "real"
low = -1
high = 1

[z]
kind = "real"
low = 0
high = 10
"""


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setattr("metaprior.cli._app.prepare_jax", lambda: None)


@pytest.fixture
def learned(monkeypatch):
    """A stand-in for learning whose held-out scores can be chosen."""
    calls = SimpleNamespace(scores=[], tasks=[], error=None, unfinished=None, during=lambda: None)

    def learn(tasks, **options):
        if calls.error is not None:
            raise calls.error
        calls.during()
        if calls.unfinished is not None:
            return quick_learn(tasks, calls.unfinished)
        calls.tasks.append(tasks)
        return quick_learn(tasks, findings_with(tasks, calls.scores.pop(0)))

    monkeypatch.setattr("metaprior.lifelong._learning.learn", learn)
    # Runs that the old version has not seen are examined elsewhere; here they score 0.
    monkeypatch.setattr(
        "metaprior.lifelong._learning.held_out_log_likelihood",
        lambda prior, tasks, *, spread: np.zeros(len(tasks)),
    )
    return calls


def sequence_with(folder, values):
    """A sequence with a run for each of the lists of values, none of them finished."""
    sequence = PriorSequence.begin(folder, space=SPACE)
    (folder / "runs").mkdir()
    for name, numbers in values.items():
        rows = "".join(f"{0.1 * i},{i},{value}\n" for i, value in enumerate(numbers))
        (folder / "runs" / f"{name}.csv").write_text("x,z,value\n" + rows)
    return sequence


@pytest.fixture
def sequence(tmp_path):
    return sequence_with(
        tmp_path / "machine",
        {"a": [1.0, 2.0], "b": [2.0, 3.0], "c": [1.0, 5.0], "d": [0.0, 1.0, "failed", ""]},
    )


def test_sequence_keeps_a_version_only_if_it_is_not_worse(sequence, learned):
    learned.scores = [0.5, -3.0, 0.7]
    assert sequence.finish("a") is None and sequence.ledger.versions == ()
    first = sequence.finish("b")
    assert first is not None and first.kept and first.runs == ["a", "b"]
    second = sequence.finish("c")
    assert second is not None and not second.kept and "worse" in second.reason
    assert sequence.ledger.current == 1
    third = sequence.finish("d")
    assert third is not None and third.kept and sequence.ledger.current == 3
    assert third.runs == ["a", "b", "c", "d"]
    assert learned.tasks[-1].run(3)[1].tolist() == [0.0, 1.0]
    assert sorted(os.listdir(sequence.folder / "priors")) == ["0001", "0002", "0003"]
    restored = sequence.restore(2)
    assert restored.number == 2 and PriorSequence(sequence.folder).ledger.current == 2
    assert sequence.prior.trained_on["tasks"] == 3
    with pytest.raises(ValueError, match="no version 7; name one of those there are: 1, 2, 3"):
        sequence.restore(7)


def test_sequence_compares_scores_in_one_unit(sequence, learned, monkeypatch):
    learned.scores = [0.5, 0.5]
    first = sequence.finish("a") or sequence.finish("b")
    assert first is not None
    # The old version predicts the new run as well as it did the others.
    monkeypatch.setattr(
        "metaprior.lifelong._learning.held_out_log_likelihood",
        lambda prior, tasks, *, spread: np.full(
            len(tasks), 0.5 + np.log(spread) - np.log(first.spread)
        ),
    )
    # Equal scores in units of a larger spread are worse: that is where the values lie.
    (sequence.folder / "runs" / "c.csv").write_text("x,z,value\n0,0,1000\n0,1,-1000\n")
    second = sequence.finish("c")
    assert second is not None and second.spread > 100 * first.spread
    assert not second.kept


def test_sequence_keeps_the_last_version_after_a_failure_and_recovers(sequence, learned):
    learned.scores = [0.5, 0.6]
    sequence.finish("a")
    sequence.finish("b")
    learned.error = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space"):
        sequence.finish("c")
    ledger = sequence.ledger
    assert ledger.finished == ("a", "b", "c") and ledger.current == 1 and len(ledger.versions) == 1
    learned.error = None
    made_up = sequence.finish("c")
    assert made_up is not None and made_up.runs == ["a", "b", "c"]
    assert sequence.finish("c") is None, "there is nothing new to learn"


# What `learn` finds after Ctrl-C at the end and in the middle, and within too short a time.
UNFINISHED = {
    "interrupted": (Findings("", interrupted=True), KeyboardInterrupt),
    "interrupted late": (
        Findings("", interrupted=True, tasks=(PastTask(0, log_likelihood=1.0),)),
        KeyboardInterrupt,
    ),
    "too short": (Findings(""), ValueError),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_sequence_makes_no_version_of_unfinished_learning(sequence, learned, name):
    learned.scores = [0.5, 0.6]
    sequence.finish("a")
    sequence.finish("b")
    learned.unfinished, error = UNFINISHED[name]
    with pytest.raises(error):
        sequence.finish("c", budget=0.01)
    ledger = sequence.ledger
    assert ledger.finished == ("a", "b", "c") and ledger.current == 1 and len(ledger.versions) == 1
    assert os.listdir(sequence.folder / "priors") == ["0001"]
    learned.unfinished = None
    made_up = sequence.finish("c")
    assert made_up is not None and made_up.runs == ["a", "b", "c"]


@pytest.mark.parametrize("restored", [1, 2])
def test_sequence_keeps_a_version_restored_during_learning(sequence, learned, restored):
    learned.scores = [0.5, 0.6, 0.7, 0.8]
    for run in "abc":
        sequence.finish(run)
    assert sequence.ledger.current == 2
    learned.during = lambda: sequence.restore(restored)
    done = invoke("tell", "--lifelong", sequence.folder, "--run", "d", "--finish")
    assert done.exit_code == 0, done.stderr
    assert f"not in use, since version {restored} was restored during learning" in done.stdout
    assert sequence.ledger.current == restored and sequence.ledger.versions[-1].kept
    # The next one is compared with what is in use, and takes its place.
    learned.during = lambda: None
    (sequence.folder / "runs" / "e.csv").write_text("x,z,value\n0,0,1\n0,1,2\n")
    sequence.finish("e")
    assert sequence.ledger.current == 4


def test_sequence_reads_ledgers_without_a_count_of_restorations(sequence):
    path = sequence.folder / "lifelong.json"
    data = json.loads(path.read_text())
    del data["restorations"], data["sha256"]
    path.write_text(json.dumps(data | {"format_version": 1}))
    assert PriorSequence(sequence.folder).ledger == replace(sequence.ledger, restorations=0)


def test_sequence_finds_every_flipped_bit_of_its_ledger(sequence, learned):
    learned.scores = [0.5]
    sequence.finish("a")
    sequence.finish("b")
    path = sequence.folder / "lifelong.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            PriorSequence(sequence.folder)
        except ValueError as error:
            assert str(error).endswith("restore it from a copy.")
        else:  # white space that is other white space says the same
            assert json.loads(damaged) == json.loads(whole), (place, damaged)


def test_untrained_prior_can_be_saved(tmp_path):
    space = mp.Space(x=mp.Real(-1.0, 1.0), kind=mp.Categorical(["a", "b", "c"]))
    prior = untrained_prior(space, "minimize")
    points, values = [{"x": 0.1, "kind": "a"}, {"x": 0.7, "kind": "c"}], [3.0, 5.0]
    for copy in (mp.load(prior.save(tmp_path / "prior")), pickle.loads(pickle.dumps(prior))):
        assert (copy.space, copy.direction, copy.method) == (space, "minimize", prior.method)
        found = copy.condition(points, values).predict(points)
        np.testing.assert_array_equal(found, prior.condition(points, values).predict(points))


def test_sequence_keeps_what_the_value_is_called(tmp_path, learned):
    folder = tmp_path / "machine"
    force = mp.data.Quantity("force_max", "N")
    sequence = PriorSequence.begin(folder, space=SPACE, quantity=force)
    sequence.suggest("monday")
    assert (folder / "runs" / "monday.csv").read_text().startswith("x,z,force_max\n")
    assert PriorSequence.begin(folder, space=SPACE).prior.quantity == force
    with pytest.raises(ValueError, match="is called 'force_max in N'; leave --value and --unit"):
        PriorSequence.begin(folder, space=SPACE, quantity=mp.data.Quantity("force"))
    learned.scores = [0.5]
    for name in ("a", "b"):
        rows = "x,z,force_max\n0.1,1,2.0\n0.2,3,4.0\n"
        (folder / "runs" / f"{name}.csv").write_text(rows)
        sequence.finish(name)
    assert sequence.ledger.current == 1 and sequence.prior.quantity == force


def test_suggest_begins_a_sequence_with_a_named_value(tmp_path):
    (tmp_path / "space.toml").write_text(SPACE_FILE)
    begin = ["--space", tmp_path / "space.toml", "--value", "force_max", "--unit", "N"]
    options = ["suggest", "--lifelong", tmp_path / "machine", "--run", "monday"]
    result = invoke(*options, *begin)
    assert result.exit_code == 0 and "expected force_max:" in result.output
    assert PriorSequence(tmp_path / "machine").ledger.quantity.label == "force_max in N"
    result = invoke(*options, "--value", "torque")
    assert result.exit_code == 2 and "leave --value and --unit out" in result.output


def test_sequence_refuses_bad_input(sequence, tmp_path, learned):
    with pytest.raises(ValueError, match="no lifelong sequence in"):
        PriorSequence(tmp_path)
    with pytest.raises(ValueError, match="There is a sequence over"):
        PriorSequence.begin(sequence.folder, space=SPACE, direction="minimize")
    for name in ("", "../a", ".a", "a/b"):
        with pytest.raises(ValueError, match="cannot be called"):
            sequence.run_file(name)
    with pytest.raises(ValueError, match="There is no run"):
        sequence.tell("tomorrow", 1.0)
    (sequence.folder / "runs" / "empty.csv").write_text("x,z,value\n0,0,\n")
    for value in (1e200, "1e200", "many"):
        with pytest.raises(ValueError, match="is not a finite number of at most 1e"):
            sequence.tell("empty", value)
    with pytest.raises(ValueError, match="has no value yet"):
        sequence.finish("empty")
    sequence.finish("a")
    with pytest.raises(ValueError, match="The run a is finished"):
        sequence.suggest("a")
    ledger = sequence.folder / "lifelong.json"
    ledger.write_text(ledger.read_text()[:-20])
    with pytest.raises(ValueError, match=r"lifelong.json is damaged \(JSONDecodeError"):
        PriorSequence(sequence.folder)


def test_sequence_says_how_to_restore_a_damaged_version(sequence, learned):
    learned.scores = [0.5]
    sequence.finish("a")
    sequence.finish("b")
    arrays_of(sequence.folder / "priors" / "0001").write_bytes(b"half")
    with pytest.raises(mp.PriorFileError, match="--restore N"):
        _ = sequence.prior


def test_sequence_by_the_command_line(tmp_path, learned):
    learned.scores = [0.5, 0.25]
    (tmp_path / "space.toml").write_text(SPACE_FILE)
    machine = tmp_path / "machine"
    missing = invoke("suggest", "--lifelong", machine, "--run", "mon")
    assert missing.exit_code == 2 and "begin one by giving its space" in missing.stderr
    begin = ("--space", tmp_path / "space.toml", "--direction", "minimize")
    for run in ("mon", "tue"):
        done = invoke("suggest", "--lifelong", machine, "--run", run, *begin, "-n", 2)
        assert done.exit_code == 0, done.stderr
        assert invoke("tell", "--lifelong", machine, "--run", run, 3.5).exit_code == 0
        ended = invoke("tell", "--lifelong", machine, "--run", run, 1.5, "--finish")
        assert ended.exit_code == 0, ended.stderr
    assert "Version 1, learned from 2 runs: in use from now on." in ended.stdout
    assert learned.tasks[0].direction == "minimize"
    assert (
        json.loads(invoke("status", "--lifelong", machine, "--run", "tue", "--json").stdout)[
            "best"
        ]["value"]
        == 1.5
    )
    found = json.loads(invoke("status", "--lifelong", machine, "--json").stdout)
    assert found["current"] == 1 and found["finished"] == ["mon", "tue"]
    assert found["versions"][0]["by_run"] == {"mon": 0.5, "tue": 0.5}
    words = invoke("status", "--lifelong", machine, "--restore", 1)
    assert "version 1 (in use): 2 runs, held-out score 0.500" in words.stdout
    again = invoke("suggest", "--lifelong", machine, "--run", "tue")
    assert again.exit_code == 2 and "is finished" in again.stderr


def test_sequence_tells_how_a_run_ended(sequence, learned):
    def finish(run, *options):
        return invoke("tell", "--lifelong", sequence.folder, "--run", run, "--finish", *options)

    assert "The run a is finished. Learning begins with the second" in finish("a").stdout
    learned.unfinished = Findings("", interrupted=True)
    interrupted = finish("b")
    assert interrupted.exit_code == 130
    assert interrupted.stderr == (
        "Learning was interrupted, so there is no new version; the run b is finished, and the "
        "next --finish learns from it.\n"
    )
    learned.unfinished = Findings("")
    short = finish("b", "--budget", "0.5")
    assert short.exit_code == 2 and short.stderr.count("\n") == 1
    assert "Error: The budget (0.5 seconds) was too small to judge the prior" in short.stderr
    assert sequence.ledger.versions == () and sequence.ledger.finished == ("a", "b")
    learned.unfinished, learned.scores = None, [0.5]
    assert "Version 1, learned from 2 runs: in use from now on" in finish("b").stdout
    again = finish("b")
    assert again.exit_code == 0
    assert (
        "The run b is finished. The prior has already learned from all finished runs."
        in again.stdout
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tell", "--run", "a", "--finish", "--row", 2], "--row says where a value goes"),
        (["status", "--name", "ovens"], "--name is about a sequence in an Optuna storage"),
    ],
)
def test_sequence_command_refuses_options_that_would_be_ignored(sequence, arguments, words):
    done = invoke(*arguments, "--lifelong", sequence.folder)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: ") and words in done.stderr
    assert sequence.ledger.finished == ()


def test_held_out_log_likelihood_is_that_of_the_public_posterior(hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    prior = mp.learn(tasks.subset([1, 2, 3]), method=mp.methods.FixedGP(noise_variance=0.1))
    spread = 1.7
    found = held_out_log_likelihood(prior, tasks.subset([0, 4]), spread=spread)
    for value, index in zip(found, (0, 4), strict=True):
        points, values = hill_runs[index]
        by_context = [
            np.mean(
                np.maximum(
                    prior.condition(points[:c], values[:c]).log_density(points[c:], values[c:])
                    + np.log(spread),
                    -12.0,
                )
            )
            for c in (0, 1, 2, 4)
            if c < len(values)
        ]
        np.testing.assert_allclose(value, np.mean(by_context), rtol=1e-6)


def test_held_out_log_likelihood_knows_the_features_of_the_tasks(hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(
        hill_runs, space=hill_space, features=[{"height": i} for i in range(len(hill_runs))]
    )
    method = mp.methods.Guarded(mp.methods.FPacohMap(num_steps=2))
    prior = mp.learn(tasks, method=method)
    assert prior.features.used
    for i in (0, 4):
        (found,) = held_out_log_likelihood(prior, tasks.subset([i]), spread=1.0)
        told = prior.for_task({"height": i}).belief.unguarded
        x, y = tasks.x[i, : tasks.lengths[i]], tasks.y[i, : tasks.lengths[i]]
        by_context = [
            np.mean(np.maximum(told.condition(x[:c], y[:c]).log_density(x[c:], y[c:]), -12.0))
            for c in (0, 1, 2, 4)
            if c < len(y)
        ]
        np.testing.assert_allclose(found, np.mean(by_context), rtol=1e-6)


def test_learn_version_compares_runs_that_both_versions_had_to_predict(
    hill_space, hill_runs, monkeypatch
):
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    names = list("abcdef")
    old_prior = mp.learn(tasks.subset([1, 2, 3, 4]), method=mp.methods.FixedGP())
    (unseen,) = held_out_log_likelihood(old_prior, tasks.subset([5]), spread=1.0)
    before = Version(1, list("bcde"), 0.0, {"b": 0.0}, 1.0, True, "")
    seen = {}

    def judge(new, old):
        seen.update(new=new, old=old)
        return True, ""

    monkeypatch.setattr("metaprior.lifelong._learning.judge", judge)
    monkeypatch.setattr("metaprior.lifelong._learning.spread_of", lambda tasks: 2.0)
    monkeypatch.setattr(
        "metaprior.lifelong._learning.learn",
        lambda tasks, **_: replace(
            old_prior, findings=Findings("", tasks=(PastTask(5, log_likelihood=1.0),))
        ),
    )
    version, _ = learn_version(2, tasks, names, before=(before, old_prior), budget="fast", seed=0)
    assert seen["new"] == {"f": 1.0} and version.by_run == {"f": 1.0}
    assert set(seen["old"]) == {"a", "b", "f"}
    np.testing.assert_allclose(seen["old"]["b"], np.log(2.0))
    np.testing.assert_allclose(seen["old"]["f"], unseen + np.log(2.0), rtol=1e-6)
