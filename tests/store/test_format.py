"""Saving and loading: exact, all or nothing, and one clear sentence for every damaged file."""

import json
import os
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import metaprior as mp
from metaprior.methods import Ensemble, FixedGP, FPacohMap, Guarded, known_methods
from metaprior.store import PriorFileError

SPACE = mp.Space(x=mp.Real(0.0, 1.0), c=mp.Categorical(["a", "ü"]))


def learn_fixed(space=SPACE, **settings):
    rng = np.random.default_rng(0)
    runs = [
        (space.decode(rng.uniform(size=(4, space.num_columns))), rng.normal(size=4))
        for _ in range(3)
    ]
    tasks = mp.Tasks.from_runs(runs, space=space, direction="minimize")
    return mp.learn(tasks, method=FixedGP(**settings))


@pytest.fixture
def saved(tmp_path):
    return learn_fixed().save(tmp_path / "prior")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def prior_of(name, tasks):
    """A prior by the method of that name; where training takes time, with numbers made up."""
    method = known_methods()[name]()
    if not hasattr(method, "learning_rate"):
        return mp.learn(tasks, method=method)
    rng = np.random.default_rng(0)
    surrogate = jax.tree.map(
        lambda leaf: (
            leaf + 0.1 * rng.normal(size=leaf.shape) if eqx.is_inexact_array(leaf) else leaf
        ),
        method.blank_surrogate(tasks.space.num_columns),
    )
    history = {"fit": rng.normal(size=7)}
    trained = mp.methods.TrainedContents(method, surrogate)
    return mp.Prior(tasks.space, "minimize", trained, history, {"tasks": 6, "seed": 3})


# One with a training and one without; the conformance suite saves and loads every method.
@pytest.mark.parametrize("name", ["FPacohMap", "FixedGP"])
def test_load_predicts_the_same_bit_for_bit(name, hill_space, hill_runs, tmp_path):
    prior = prior_of(name, mp.Tasks.from_runs(hill_runs, space=hill_space))
    loaded = mp.load(prior.save(tmp_path / "prior"))
    assert (loaded.space, loaded.direction) == (prior.space, prior.direction)
    assert loaded.method == prior.method
    assert loaded.trained_on == prior.trained_on and loaded.trained_on["tasks"] == 6
    assert loaded.history.keys() == prior.history.keys()
    for term, history in prior.history.items():
        np.testing.assert_array_equal(loaded.history[term], history)
    points = hill_runs[3][0]
    for x, y in ([], []), hill_runs[2]:
        np.testing.assert_array_equal(
            loaded.condition(x, y).predict(points), prior.condition(x, y).predict(points)
        )


def test_save_writes_a_folder_that_describes_itself(saved):
    assert names(saved) == ["README.md", "prior.json", "prior.safetensors"]
    card = (saved / "README.md").read_text(encoding="utf-8")
    assert "FixedGP" in card and "minimized" in card and "Categorical(['a', 'ü'])" in card
    description = json.loads((saved / "prior.json").read_text())
    assert description["format"] == "metaprior-prior" and description["format_version"] == 2
    assert description["findings"] is None


def test_save_replaces_an_earlier_prior(saved):
    again = learn_fixed(lengthscale=0.7).save(str(saved))
    assert again == saved and names(saved.parent) == ["prior"]
    assert mp.load(saved).method == FixedGP(lengthscale=0.7)
    assert names(saved) == ["README.md", "prior.json", "prior.safetensors"]


def test_save_fills_new_and_empty_folders(tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "one" / "two" / "prior"):
        assert mp.load(learn_fixed().save(folder)).method == FixedGP()


@pytest.mark.parametrize("with_prior", [False, True])
def test_save_refuses_a_folder_with_other_files(tmp_path, with_prior):
    folder = tmp_path / "work"
    if with_prior:
        learn_fixed().save(folder)
    else:
        folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    before = names(folder)
    with pytest.raises(PriorFileError, match="^Cannot save a prior to .*; name an empty or a new"):
        learn_fixed().save(folder)
    assert names(folder) == before and (folder / "thesis.txt").read_text() == "years of work"
    assert names(tmp_path) == ["work"]


def test_save_does_not_overwrite_a_file(tmp_path):
    (tmp_path / "prior").write_text("mine")
    with pytest.raises(PriorFileError, match="it is a file; name a folder[.]$"):
        learn_fixed().save(tmp_path / "prior")
    assert (tmp_path / "prior").read_text() == "mine"


def disk_full(*args, **kwargs):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("exists", [False, True])
def test_save_on_a_full_disk_leaves_the_old_prior(tmp_path, monkeypatch, exists):
    folder = tmp_path / "prior"
    if exists:
        learn_fixed().save(folder)
    other = learn_fixed(lengthscale=0.7)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", disk_full)
        with pytest.raises(OSError, match="No space left"):
            other.save(folder)
    assert names(tmp_path) == (["prior"] if exists else [])
    if exists:
        assert mp.load(folder).method == FixedGP()


def test_save_restores_the_old_prior_when_a_move_fails(saved, monkeypatch):
    """The old folder is moved away before the new one takes its place: it must come back."""
    moves = []

    def second_fails(source, target):
        moves.append(target)
        if len(moves) == 2:
            disk_full()
        original(source, target)

    original = os.replace
    other = learn_fixed(lengthscale=0.7)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", second_fails)
        with pytest.raises(OSError, match="No space left"):
            other.save(saved)
    assert names(saved.parent) == ["prior"]
    assert mp.load(saved).method == FixedGP()


def edited(change):
    """Damage done to the description."""

    def damage(folder):
        path = folder / "prior.json"
        description = json.loads(path.read_text())
        path.write_text(json.dumps(change(description)))

    return damage


def truncated(name, keep):
    """A file of which only the beginning is left."""

    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(keep * len(content))])

    return damage


def arrays(change):
    """Damage done to the arrays."""

    def damage(folder):
        path = folder / "prior.safetensors"
        save_file(change(load_file(path)), path)

    return damage


def without_first(tensors):
    return dict(sorted(tensors.items())[1:])


DAMAGES = {
    "truncated arrays": truncated("prior.safetensors", 0.6),
    "truncated header": truncated("prior.safetensors", 0.02),
    "empty arrays": truncated("prior.safetensors", 0.0),
    "truncated description": truncated("prior.json", 0.5),
    "empty description": truncated("prior.json", 0.0),
    "binary description": lambda f: (f / "prior.json").write_bytes(b"\xff\xfe\x00\x80"),
    "foreign description": lambda f: (f / "prior.json").write_text('{"name": "a package"}'),
    "description is a list": lambda f: (f / "prior.json").write_text("[1, 2]"),
    "arrays are text": lambda f: (f / "prior.safetensors").write_text("not tensors at all"),
    "no arrays": lambda f: (f / "prior.safetensors").unlink(),
    "no description": lambda f: (f / "prior.json").unlink(),
    "newer format": edited(lambda d: d | {"format_version": 3}),
    "no version": edited(lambda d: {k: v for k, v in d.items() if k != "format_version"}),
    "unknown method": edited(lambda d: d | {"method": {"name": "Oracle"}}),
    "unknown setting": edited(lambda d: d | {"method": {"name": "FixedGP", "magic": 1}}),
    "setting is text": edited(lambda d: d | {"method": {"name": "FittedGP", "num_steps": "x"}}),
    "size is text": edited(lambda d: d | {"method": {"name": "FPacohMap", "feature_dim": "x"}}),
    "no method": edited(lambda d: {k: v for k, v in d.items() if k != "method"}),
    "method is text": edited(lambda d: d | {"method": "FixedGP"}),
    "no space": edited(lambda d: d | {"space": None}),
    "damaged space": edited(lambda d: d | {"space": {"dimensions": [{"type": "real"}]}}),
    "damaged direction": edited(lambda d: d | {"direction": "sideways"}),
    "direction is a list": edited(lambda d: d | {"direction": ["maximize"]}),
    "damaged training": edited(lambda d: d | {"trained_on": 3}),
    "damaged history": edited(lambda d: d | {"history": 3}),
    "no findings": edited(lambda d: {k: v for k, v in d.items() if k != "findings"}),
    "findings are a list": edited(lambda d: d | {"findings": [1]}),
    "damaged findings": edited(lambda d: d | {"findings": {"verdict": 3}}),
    "huge number": edited(lambda d: d | {"findings": {"verdict": "", "seconds": 10**400}}),
    "other method": edited(lambda d: d | {"method": {"name": "FPacohMap"}}),
    "missing array": arrays(without_first),
    "extra array": arrays(lambda t: t | {"more": np.zeros(3)}),
    "other shape": arrays(lambda t: {k: np.zeros((2, 2)) for k in t}),
    "single precision": arrays(lambda t: {k: v.astype(np.float32) for k, v in t.items()}),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_load_names_damage_in_one_sentence(saved, damage):
    damage(saved)
    with pytest.raises(PriorFileError) as caught:
        mp.load(saved)
    text = str(caught.value)
    assert str(saved) in text and "\n" not in text
    assert text.endswith(".") and (";" in text or ":" in text), text


NESTED = Guarded(Ensemble(FPacohMap(feature_dim=3, kappa=0.25), members=2), prior_trust=0.9)


@pytest.fixture
def saved_nested(tmp_path):
    trained = mp.methods.TrainedContents(NESTED, NESTED.blank_surrogate(SPACE.num_columns))
    prior = mp.Prior(SPACE, "minimize", trained)
    return prior.save(tmp_path / "prior")


def test_load_rebuilds_nested_methods(saved_nested):
    described = json.loads((saved_nested / "prior.json").read_text())["method"]
    assert described["name"] == "Guarded" and described["base"]["name"] == "Ensemble"
    assert described["base"]["base"]["kappa"] == 0.25
    assert mp.load(saved_nested).method == NESTED


def nested(change):
    """Damage done to the description of the method inside the guard."""
    return edited(lambda d: d | {"method": d["method"] | {"base": change(d["method"]["base"])}})


def wrapped(times):
    """A method in very many guards."""
    described = {"name": "FixedGP"}
    for _ in range(times):
        described = {"name": "Guarded", "base": described}
    return described


NESTED_DAMAGES = {
    "base is text": (nested(lambda b: "Ensemble"), "base of Guarded is 'Ensemble', which is not"),
    "base is a number": (nested(lambda b: 3), "base of Guarded is 3, which is not a method"),
    "base is nothing": (nested(lambda b: None), "base of Guarded is None, which is not a method"),
    "base has no name": (nested(lambda b: {"members": 2}), "which is not a method"),
    "base is a process": (nested(lambda b: {"process": "GP"}), "which is not a method"),
    "unknown base": (
        nested(lambda b: b | {"name": "Oracle"}),
        "there is no method called 'Oracle'",
    ),
    "not by gradients": (nested(lambda b: b | {"base": {"name": "FixedGP"}}), "FixedGP"),
    "a guard inside": (nested(lambda b: {"name": "Guarded"}), "Guarded"),
    "members are text": (nested(lambda b: b | {"members": "2"}), "members of Ensemble is '2'"),
    "no members": (nested(lambda b: b | {"members": 0}), "`members` of Ensemble is 0"),
    "other members": (nested(lambda b: b | {"members": 3}), "does not fit prior.json"),
    "magic": (nested(lambda b: b | {"magic": 1}), "magic"),
    "trust is text": (
        edited(lambda d: d | {"method": d["method"] | {"prior_trust": "0.9"}}),
        "prior_trust of Guarded is '0.9', which is not a number",
    ),
    "too deep": (nested(lambda b: wrapped(300)), "nested more than 4 deep"),
}


@pytest.mark.parametrize(("damage", "problem"), NESTED_DAMAGES.values(), ids=NESTED_DAMAGES.keys())
def test_load_names_damage_in_nested_methods_in_one_sentence(saved_nested, damage, problem):
    damage(saved_nested)
    with pytest.raises(PriorFileError) as caught:
        mp.load(saved_nested)
    text = str(caught.value)
    assert str(saved_nested) in text and problem in text, text
    assert "\n" not in text and text.endswith("."), text


def test_load_rejects_arrays_of_another_prior(saved, tmp_path):
    wide = mp.Space(**{f"x{j}": mp.Real(0.0, 1.0) for j in range(4)})
    other = learn_fixed(wide).save(tmp_path / "other")
    (saved / "prior.safetensors").write_bytes((other / "prior.safetensors").read_bytes())
    with pytest.raises(PriorFileError, match=r"does not fit prior.json: .*\[4\] where .*\[3\]"):
        mp.load(saved)


def test_load_checks_the_space_it_is_given(saved):
    assert mp.load(saved, space=SPACE).space == SPACE
    other = mp.Space(x=mp.Real(0.0, 2.0), c=mp.Categorical(["a", "ü"]))
    with pytest.raises(PriorFileError, match=r"is for the space .* not for .*Real\(0.0, 2.0\)"):
        mp.load(saved, space=other)


def test_load_rejects_a_missing_folder(tmp_path):
    with pytest.raises(PriorFileError, match="There is no prior in .*nowhere"):
        mp.load(tmp_path / "nowhere")
