"""Several priors in one folder: round trips, and what can be wrong."""

import json

import numpy as np
import pytest

import metaprior as mp
from metaprior.methods import SelfStandardisedGP, TrainedContents

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
    assert mp.load(folder / "0-val_accuracy").direction == "maximize"
    assert mp.load(folder / "1-val_accuracy").direction == "minimize"
    assert (folder / "2-memory" / "README.md").is_file()


def test_priors_are_replaced_by_later_ones(priors, tmp_path):
    folder = priors.save(tmp_path / "priors")
    mp.Priors({"other": prior("maximize", 0.3)}).save(folder)
    assert list(mp.load_priors(folder).learned) == ["other"]
    assert sorted(p.name for p in folder.iterdir()) == ["0-other", "priors.json"]


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
    ],
)
def test_load_priors_rejects_a_damaged_list(priors, tmp_path, change, words):
    folder = priors.save(tmp_path / "priors")
    index = json.loads((folder / "priors.json").read_text())
    index["priors"] = [e for e in index["priors"] if e["name"] != "val_accuracy"]
    change(index)
    (folder / "priors.json").write_text(json.dumps(index))
    with pytest.raises(mp.PriorFileError, match=words):
        mp.load_priors(folder)


def test_load_priors_rejects_what_is_not_json(priors, tmp_path):
    folder = priors.save(tmp_path / "priors")
    (folder / "priors.json").write_text("{")
    with pytest.raises(mp.PriorFileError, match="damaged"):
        mp.load_priors(folder)
