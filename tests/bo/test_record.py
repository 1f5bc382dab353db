"""A run that survives a restart, and what an optimiser is told and made of."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import metaprior as mp
from metaprior.data import Quantity


@pytest.fixture(scope="module")
def prior(hill_space, hill_runs):
    tasks = mp.Tasks.from_runs(
        hill_runs, space=hill_space, direction="minimize", quantity=Quantity("cost", "EUR")
    )
    return mp.learn(tasks, method=mp.methods.FixedGP())


def begun(prior):
    optimizer = mp.Optimizer(prior, seed=3)
    first, second, third, _ = optimizer.ask(4)
    optimizer.tell(first, 4.5)
    optimizer.tell({"x": np.float64(0.5), "z": 2}, None)
    optimizer.tell(second, 7.0, stopped=True)
    optimizer.tell(third, 1.5)
    return optimizer


def test_optimizer_asks_the_same_after_a_restart(prior, tmp_path):
    before = begun(prior)
    path = before.save(tmp_path / "run.json")
    after = mp.Optimizer.load(path, prior)
    assert after.history == before.history and after.pending == before.pending
    assert after.best == before.best and len(before.pending) == 1
    assert after.ask(2) == before.ask(2)
    # A later file replaces an earlier one.
    after.save(path)
    assert len(mp.Optimizer.load(path, prior).pending) == 3


def test_optimizer_history_has_failures_and_the_name_of_the_value(prior):
    history = begun(prior).history
    assert [each["state"] for each in history] == ["observed", "failed", "stopped", "observed"]
    assert [each["cost"] for each in history] == [4.5, None, 7.0, 1.5]
    assert history[1] == {"x": 0.5, "z": 2, "cost": None, "state": "failed"}
    observed = begun(prior).observations
    assert [value for _, value in observed] == [4.5, 1.5]


def test_optimizer_load_refuses_other_priors_and_other_files(prior, hill_runs, tmp_path):
    path = begun(prior).save(tmp_path / "run.json")
    tasks = mp.Tasks.from_runs(hill_runs, space=prior.space)
    other = mp.learn(tasks, method=mp.methods.FixedGP())
    with pytest.raises(ValueError, match="is to minimize over another space than that of the prio"):
        mp.Optimizer.load(path, other)
    whole = path.read_text()
    for damaged in (
        whole[: len(whole) // 2],
        "[]",
        "{}",
        "null",
        whole.replace('"told"', '"old"'),
        whole.replace("metaprior-run", "other"),
        "[" * 100_000,
    ):
        path.write_text(damaged)
        with pytest.raises(ValueError, match=r"run\.json is no run that Optimizer\.save wrote"):
            mp.Optimizer.load(path, prior)
    with pytest.raises(ValueError, match="cannot be read: no such file"):
        mp.Optimizer.load(tmp_path / "none.json", prior)


def resealed(path, change):
    """Damage by a writer who makes the checksum right."""
    said = json.loads(path.read_text())
    del said["sha256"]
    change(said)
    plain = json.dumps(said, sort_keys=True, separators=(",", ":"))
    said["sha256"] = hashlib.sha256(plain.encode()).hexdigest()
    path.write_text(json.dumps(said))


FORGED = {
    "asked is text": lambda run: run.update(num_asked="3"),
    "asked is negative": lambda run: run.update(num_asked=-1),
    "asked is a fraction": lambda run: run.update(num_asked=1.5),
    "seed is text": lambda run: run.update(seed="x"),
    "pending is narrow": lambda run: run.update(pending=[[0.5]]),
    "pending is ragged": lambda run: run.update(pending=[[0.5, 0.5], [0.5]]),
    "pending is empty rows": lambda run: run.update(pending=[[]]),
    "pending is outside": lambda run: run.update(pending=[[0.5, 1.5]]),
    "pending is huge": lambda run: run.update(pending=[[0.5, 10**400]]),
    "pending is no number": lambda run: run.update(pending=[[0.5, None]]),
    "value is text": lambda run: run["told"][0].update(value="4.5"),
    "value is huge": lambda run: run["told"][0].update(value=10**200),
    "point is a list": lambda run: run["told"][0].update(point=[0.5]),
    "point is elsewhere": lambda run: run["told"][0].update(point={"x": 1e9, "z": 2}),
    "stopped is a number": lambda run: run["told"][0].update(stopped=0),
    "features are a list": lambda run: run.update(features=[1]),
    "version is newer": lambda run: run.update(format_version=3),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED.keys())
def test_optimizer_load_refuses_what_save_never_wrote_in_one_sentence(prior, tmp_path, change):
    path = begun(prior).save(tmp_path / "run.json")
    resealed(path, change)
    with pytest.raises(ValueError, match=r"run\.json is no run that Optimizer.save") as caught:
        mp.Optimizer.load(path, prior)
    assert "\n" not in str(caught.value) and str(caught.value).endswith("restore it from a copy.")


def test_optimizer_load_says_that_the_prior_lacks_the_features_of_the_run(prior, tmp_path):
    path = begun(prior).save(tmp_path / "run.json")
    resealed(path, lambda run: run.update(features={"size": 3.0}))
    with pytest.raises(
        ValueError, match=r"features that the prior does not take \('size'\); give"
    ) as caught:
        mp.Optimizer.load(path, prior)
    assert "damaged" not in str(caught.value)


def test_optimizer_load_refuses_damage_and_pipes_at_once(prior, tmp_path):
    path = begun(prior).save(tmp_path / "run.json")
    path.write_text(path.read_text().replace("4.5", "4.6"))
    with pytest.raises(ValueError, match="its SHA-256 is not the one it was saved with"):
        mp.Optimizer.load(path, prior)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="run.json cannot be read: not a plain file; check it."):
        mp.Optimizer.load(path, prior)


def test_optimizer_load_takes_a_run_without_pending_queries(prior, tmp_path):
    optimizer = mp.Optimizer(prior)
    assert mp.Optimizer.load(optimizer.save(tmp_path / "none.json"), prior).pending == []
    optimizer.tell({"x": 0.0, "z": 1.0}, 1.5)
    loaded = mp.Optimizer.load(optimizer.save(tmp_path / "run.json"), prior)
    assert loaded.pending == [] and loaded.history == optimizer.history


def test_optimizer_load_reads_runs_without_a_checksum(prior, tmp_path):
    """As they were written before."""
    path = begun(prior).save(tmp_path / "run.json")
    said = json.loads(path.read_text())
    del said["sha256"]
    path.write_text(json.dumps(said | {"format_version": 1}))
    assert mp.Optimizer.load(path, prior).history == begun(prior).history


def test_condition_refuses_texts_and_bools(prior):
    for values in (["1.5"], [True], np.array(["1"])):
        with pytest.raises(ValueError, match="which is not a number"):
            prior.condition([{"x": 0.0, "z": 1.0}], values)


# Without the shape checks of the tests, which would be the first to complain.
WRONG = """
import json, sys
import numpy as np
import metaprior as mp
from metaprior.data import Quantity
prior = mp.load(sys.argv[1])
def refused(value):
    optimizer = mp.Optimizer(prior)
    for number in (3, np.float32(0.5), np.ones(()), np.int64(7)):
        optimizer.tell({"x": 0.0, "z": 1.0}, number)
    try:
        optimizer.tell({"x": 0.0, "z": 1.0}, value)
    except ValueError as error:
        assert "tell a finite number of at most 1e+150 in size, or None" in str(error)
        assert [value for _, value in optimizer.observations] == [3.0, 0.5, 1.0, 7.0]
    else:
        raise SystemExit(f"took {value!r}")

taken = mp.Optimizer(prior, seed=np.int64(3))
taken.tell([0.5, 2.0], 1.5)
assert taken.observations == [({"x": 0.5, "z": 2.0}, 1.5)] and len(taken.ask(np.int64(2))) == 2
for optimizer in (taken, taken.fork(seed=np.int64(4))):
    path = optimizer.save(sys.argv[1] + ".json")
    assert mp.Optimizer.load(path, prior).ask() == optimizer.ask()
run = sys.argv[1] + ".csv"
mp.lifelong.suggest(prior, run)
RUNS = [([[0.0, 1.0]], [1.0])]
cases = {
    "folder": lambda: mp.Optimizer("prior/"),
    "nothing": lambda: mp.Optimizer(None),
    "negative": lambda: mp.Optimizer(prior, seed=-1),
    "none": lambda: mp.Optimizer(prior, seed=None),
    "bool": lambda: mp.Optimizer(prior, seed=True),
    "fraction": lambda: mp.Optimizer(prior, seed=0.5),
    "acquisition": lambda: mp.Optimizer(prior, acquisition="ei"),
    "search": lambda: mp.Optimizer(prior, search=100),
    "window": lambda: mp.Optimizer(prior, window={"x": (0, 1)}),
    "multi": lambda: mp.MultiOptimizer(mp.Priors({"y": prior}), seed=-1),
    "multi search": lambda: mp.MultiOptimizer(mp.Priors({"y": prior}), search=100),
    "fork": lambda: mp.Optimizer(prior).fork(seed=-1),
    "fork acquisition": lambda: mp.Optimizer(prior).fork(seed=0, acquisition="ei"),
    "fixed": lambda: mp.Optimizer(prior).ask(fixed=5),
    "tolerance": lambda: mp.Optimizer(prior).stopping("1"),
    "true tolerance": lambda: mp.Optimizer(prior).stopping(True),
    "confidence": lambda: mp.bo.StoppingHint(1.0, 0.1, 0.5).is_done(95),
    "load": lambda: mp.load(None),
    "load zero": lambda: mp.load("a\\0b"),
    "save": lambda: prior.save(5),
    "save run": lambda: mp.Optimizer(prior).save(None),
    "load run": lambda: mp.Optimizer.load("run.json", "prior/"),
    "load priors": lambda: mp.load_priors(None),
    "suggest": lambda: mp.lifelong.suggest("prior/", "run.csv"),
    "file": lambda: mp.lifelong.tell(prior, run, 10**400),
    "bool into file": lambda: mp.lifelong.tell(prior, run, True),
    "sequence": lambda: mp.lifelong.PriorSequence(None),
    "ask": lambda: mp.Optimizer(prior).ask("3"),
    "all": lambda: mp.Optimizer(prior).ask(True),
    "quantity": lambda: mp.Tasks.from_runs(RUNS, space=prior.space, quantity="y"),
    "told": lambda: [refused(value) for value in (True, np.True_, "1.5", b"1", [1.0], np.ones(2))],
    "names": lambda: mp.Tasks.from_runs(RUNS, space=prior.space, names=["a", "b"]),
}
said = {}
for name, case in cases.items():
    try:
        case()
    except (TypeError, ValueError) as error:
        said[name] = str(error)
print(json.dumps(said))
"""


def test_wrong_arguments_get_one_sentence_each(prior, tmp_path):
    folder = prior.save(tmp_path / "prior")
    done = subprocess.run(
        [sys.executable, "-c", WRONG, str(folder)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for name, words in {
        "folder": "`prior` is 'prior/', which is no prior; give one: metaprior.load('prior/').",
        "nothing": "`prior` is None, which is no prior; give one: metaprior.learn(tasks).",
        "negative": "The seed is -1; give a whole number of at least 0.",
        "none": "The seed is None; give a whole number of at least 0.",
        "bool": "The seed is True; give a whole number of at least 0.",
        "fraction": "The seed is 0.5; give a whole number of at least 0.",
        "acquisition": "`acquisition` is 'ei'; give an object, such as",
        "search": "`search` is 100; give a metaprior.bo.Search, or leave it out.",
        "window": "`window` is {'x': (0, 1)}; give a metaprior.bo.Window, or leave it out.",
        "multi": "The seed is -1; give a whole number of at least 0.",
        "multi search": "`search` is 100; give a metaprior.bo.Search, or leave it out.",
        "fork": "The seed is -1; give a whole number of at least 0.",
        "fork acquisition": "`acquisition` is 'ei'; give an object, such as",
        "fixed": "`fixed` is 5; give a dict of values by name, or leave it out.",
        "tolerance": "The tolerance is '1'; give a positive number.",
        "true tolerance": "The tolerance is True; give a positive number.",
        "confidence": "The confidence is 95; give a positive number of at most 1.",
        "load": "`folder` is None, which is no path; give a text or a Path.",
        "load zero": "`folder` is 'a\\x00b', which is no path; give a text or a Path.",
        "save": "`folder` is 5, which is no path; give a text or a Path.",
        "save run": "`path` is None, which is no path; give a text or a Path.",
        "load run": "`prior` is 'prior/', which is no prior; give one: metaprior.load('prior/').",
        "load priors": "`folder` is None, which is no path; give a text or a Path.",
        "suggest": "`prior` is 'prior/', which is no prior; give one: metaprior.load('prior/').",
        "file": "The value 1000000000",
        "bool into file": "The value True is not a finite number of at most 1e+150 in size",
        "sequence": "`folder` is None, which is no path; give a text or a Path.",
        "ask": "Cannot ask for '3' points; give a whole number, at least 1 and at most",
        "all": "Cannot ask for True points; give a whole number, at least 1 and at most",
        "quantity": "`quantity` is 'y'; give a Quantity, such as",
        "names": "`names` is ['a', 'b']; give one text for each of the 1 runs.",
    }.items():
        assert said[name].startswith(words), (name, said.get(name))
