"""Several priors in one folder: round trips, and what can be wrong."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import metaprior as mp
from metaprior.methods import SelfStandardisedGP, TrainedContents
from tests.saved import reseal_json

SPACE = mp.Space(x=mp.Real(0.0, 1.0))


def prior(direction, lengthscale):
    method = SelfStandardisedGP(lengthscale=lengthscale)
    return mp.Prior(SPACE, direction, TrainedContents(method, method.blank_surrogate(1)))


@pytest.fixture
def priors():
    return mp.Priors(
        {"val/accuracy": prior("maximize", 0.2), "val_accuracy": prior("minimize", 0.5)},
        {"memory": prior("minimize", 0.9), "unknown": None},
    )


def test_priors_round_trip(priors, tmp_path):
    loaded = mp.load_priors(priors.save(tmp_path / "priors"))
    assert list(loaded.objectives) == list(priors.objectives)
    assert list(loaded.constraints) == ["memory", "unknown"]
    assert loaded.constraints["unknown"] is None
    x, points = [{"x": 0.4}], [{"x": 0.1}, {"x": 0.9}]
    for name in priors.learned:
        expected = priors[name].condition(x, [1.0]).predict(points)
        np.testing.assert_array_equal(loaded[name].condition(x, [1.0]).predict(points), expected)


def test_priors_each_have_a_folder_of_their_own(priors, tmp_path):
    folder = priors.save(tmp_path / "priors")
    first, second, third = (folder_of(folder, i) for i in range(3))
    assert first.name.startswith("0-val_accuracy-") and second.name.startswith("1-val_accuracy-")
    assert mp.load(first).direction == "maximize" and mp.load(second).direction == "minimize"
    assert third.name.startswith("2-memory-") and (third / "README.md").is_file()


def test_priors_are_replaced_by_later_ones(priors, tmp_path):
    folder = priors.save(tmp_path / "priors")
    mp.Priors({"other": prior("maximize", 0.3)}).save(folder)
    assert list(mp.load_priors(folder).learned) == ["other"]
    assert sorted(folder.iterdir()) == [folder_of(folder, 0), folder / "priors.json"]


KILLED = """
import os, signal, sys
import metaprior as mp
priors, step, left = mp.load_priors(sys.argv[1]), sys.argv[3], int(sys.argv[4])
original = getattr(os, step)
def killed(*args, **kwargs):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **kwargs)
setattr(os, step, killed)
priors.save(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("step", "at"),
    [
        pytest.param("replace", 4, marks=pytest.mark.slow),
        ("replace", 10),
        pytest.param("unlink", 8, marks=pytest.mark.slow),
    ],
)
def test_save_priors_that_is_killed_leaves_those_before_or_after(priors, tmp_path, step, at):
    """After one prior, before the list, and among the removals."""
    folder = priors.save(tmp_path / "priors")
    others = {n: prior(p.direction, 0.3) for n, p in priors.learned.items() if n != "memory"}
    other = mp.Priors(others, {"memory": prior("minimize", 0.3), "unknown": None})
    source = other.save(tmp_path / "other")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(source), str(folder), step, str(at)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        if done.returncode == 0:  # nothing was left to remove
            break
        assert done.returncode == -signal.SIGKILL
        found = {p.contents.settings["lengthscale"] for p in loaded_of(folder)}
        assert found in ({0.2, 0.5, 0.9}, {0.3}), "a prior of one save beside those of the other"
    other.save(folder)
    assert {p.contents.settings["lengthscale"] for p in loaded_of(folder)} == {0.3}
    assert sorted(folder.iterdir()) == [
        *(folder_of(folder, i) for i in range(3)),
        folder / "priors.json",
    ]


def loaded_of(folder):
    return mp.load_priors(folder).learned.values()


def folder_of(folder, i):
    return next(folder.glob(f"{i}-*"))


def test_save_priors_rejects_a_folder_with_other_files(priors, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(mp.PriorFileError, match=r"holds 'thesis\.tex'"):
        priors.save(tmp_path)


def test_load_priors_rejects_a_folder_of_one_prior(tmp_path):
    prior("maximize", 0.2).save(tmp_path / "one")
    with pytest.raises(mp.PriorFileError, match=r"no priors\.json"):
        mp.load_priors(tmp_path / "one")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda index: index.update(format="other"), "damaged"),
        (lambda index: index.update(format_version=99), "newer metaprior"),
        (lambda index: index["priors"][0].update(folder="../secrets"), "damaged"),
        (lambda index: index["priors"][0].update(kind="wish"), "damaged"),
        (lambda index: index["priors"][0].update(folder=None), "has no folder"),
        (lambda index: index["priors"].pop(0), "2-memory|do not fit|memory|no objective"),
        (lambda index: index.pop("priors"), "damaged"),
        (lambda index: index.update(format_version=True), "damaged"),
        (lambda index: index.update(priors=[1]), "damaged"),
        (lambda index: index["priors"].append(index["priors"][0]), "names a value twice"),
        (lambda index: index["priors"][0].update(kind=["objective"]), "damaged"),
    ],
)
def test_load_priors_rejects_a_damaged_list(priors, tmp_path, change, words):
    folder = priors.save(tmp_path / "priors")

    def changed(index):
        index["priors"] = [e for e in index["priors"] if e["name"] != "val_accuracy"]
        change(index)

    reseal_json(folder / "priors.json", changed)
    with pytest.raises(mp.PriorFileError, match=words):
        mp.load_priors(folder)


def test_load_priors_finds_every_flipped_bit_of_the_list(priors, tmp_path):
    path = priors.save(tmp_path / "priors") / "priors.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            mp.load_priors(path.parent)
        except mp.PriorFileError:
            continue
        # White space that is other white space says the same.
        assert json.loads(damaged) == json.loads(whole), (place, damaged)


def test_load_priors_reads_a_list_without_a_checksum(priors, tmp_path):
    """As it was written before."""
    path = priors.save(tmp_path / "priors") / "priors.json"
    index = json.loads(path.read_text())
    assert index.pop("sha256") and index["format_version"] == 2
    path.write_text(json.dumps(index | {"format_version": 1}))
    assert mp.load_priors(path.parent).learned.keys() == priors.learned.keys()


def test_load_priors_rejects_what_is_not_json(priors, tmp_path):
    folder = priors.save(tmp_path / "priors")
    for text in ("{", "[" * 100_000, '{"format": 1, "format": 2}', "9" * 5000, "null"):
        (folder / "priors.json").write_text(text)
        with pytest.raises(mp.PriorFileError, match="damaged or not a list of priors") as caught:
            mp.load_priors(folder)
        assert str(caught.value).endswith("restore the folder from a copy.")
