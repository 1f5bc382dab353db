"""Saving and loading: exact, all or nothing, and one clear sentence for every damaged file."""

import json
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

import metaprior as mp
from metaprior.methods import Ensemble, FixedGP, FPacohMap, Guarded, known_methods
from metaprior.store import PriorFileError
from tests.saved import arrays_of, reseal

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
    assert names(saved) == ["README.md", arrays_of(saved).name, "prior.json"]
    card = (saved / "README.md").read_text(encoding="utf-8")
    assert "FixedGP" in card and "minimized" in card and "Categorical(['a', 'ü'])" in card
    description = json.loads((saved / "prior.json").read_text())
    assert description["format"] == "metaprior-prior" and description["format_version"] == 3
    assert description["findings"] is None


def test_save_replaces_an_earlier_prior(saved):
    again = learn_fixed(lengthscale=0.7).save(str(saved))
    assert again == saved and names(saved.parent) == ["prior"]
    assert mp.load(saved).method == FixedGP(lengthscale=0.7)
    assert names(saved) == ["README.md", arrays_of(saved).name, "prior.json"]


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
    with pytest.raises(PriorFileError, match="^Cannot save a prior to .*; name a new or an empty"):
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


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("exists", [False, True])
def test_save_on_a_full_disk_leaves_the_old_prior(tmp_path, monkeypatch, exists, step):
    folder = tmp_path / "prior"
    if exists:
        learn_fixed().save(folder)
    other = learn_fixed(lengthscale=0.7)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, disk_full)
        with pytest.raises(ValueError, match="cannot be written .no space left on dev"):
            other.save(folder)
    assert names(tmp_path) == (["prior"] if exists else [])
    if exists:
        assert len(names(folder)) == 3 and mp.load(folder).method == FixedGP()


SAVER = """
import os, signal, sys
import metaprior as mp
prior, step, left = mp.load(sys.argv[1]), sys.argv[3], int(sys.argv[4])
original = getattr(os, step)
def killed(*args, **kwargs):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **kwargs)
setattr(os, step, killed)
prior.save(sys.argv[2])
"""


@pytest.mark.parametrize(("step", "at"), [("replace", 1), ("replace", 2), ("fsync", 3)])
def test_save_that_is_killed_leaves_a_whole_prior_and_no_growing_litter(saved, tmp_path, step, at):
    """At every rename: before the arrays, before the description and before the card."""
    other = learn_fixed(lengthscale=0.7).save(tmp_path / "other")
    sizes = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", SAVER, str(other), str(saved), step, str(at)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == -signal.SIGKILL
        assert mp.load(saved).method in (FixedGP(), FixedGP(lengthscale=0.7))
        sizes.append(len(names(saved)))
    assert sizes[0] == sizes[1]
    mp.load(other).save(saved)
    assert mp.load(saved).method == FixedGP(lengthscale=0.7)
    assert names(saved) == ["README.md", arrays_of(saved).name, "prior.json"]
    assert names(tmp_path) == ["other", "prior"]


def test_load_reads_one_prior_while_others_are_saved(saved, tmp_path):
    """The description of one with the arrays of the other would be a prior never learned."""
    priors = [mp.load(saved), learn_fixed(lengthscale=0.7)]
    point = [{"x": 0.5, "c": "a"}]
    mean_of = {prior.method: prior.condition([], []).predict(point) for prior in priors}
    stop = threading.Event()

    def save_in_turn():
        while not stop.is_set():
            for prior in priors:
                prior.save(saved)

    saver = threading.Thread(target=save_in_turn)
    saver.start()
    try:
        seen = set()
        for _ in range(150):
            prior = mp.load(saved)
            found = prior.condition([], []).predict(point)
            np.testing.assert_array_equal(found, mean_of[prior.method])
            seen.add(prior.method)
    finally:
        stop.set()
        saver.join()
    assert len(seen) == 2


def test_save_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        folder = learn_fixed().save(tmp_path / "prior")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o750
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o640}


def test_save_writes_through_a_link_to_a_folder(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "prior").symlink_to("disk")
    learn_fixed().save(tmp_path / "prior")
    assert (tmp_path / "prior").is_symlink() and mp.load(tmp_path / "disk").method == FixedGP()
    (tmp_path / "broken").symlink_to("nowhere")
    with pytest.raises(PriorFileError, match="a link to a folder that does not exist; make"):
        learn_fixed().save(tmp_path / "broken")


def test_save_refuses_numbers_that_cannot_have_been_learned(tmp_path):
    prior = learn_fixed()
    for bad in (np.nan, np.inf, -1e200):
        arrays = {name: np.full_like(a, bad) for name, a in prior.contents.arrays.items()}
        contents = mp.belief.SavedContents(prior.contents.settings, arrays, 3)
        with pytest.raises(ValueError, match="The prior cannot be saved: .* holds .*; something"):
            replace(prior, contents=contents).save(tmp_path / "prior")
    assert names(tmp_path) == []


def edited(change):
    """Damage to the description, with checksums made right."""
    return lambda folder: reseal(folder, description=change)


def path_of(folder, name):
    return arrays_of(folder) if name == ARRAYS else folder / name


def truncated(name, keep):
    """A file of which only the beginning is left."""

    def damage(folder):
        path = path_of(folder, name)
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content))])

    return damage


def arrays(change):
    """Damage to the arrays, with checksums made right."""
    return lambda folder: reseal(folder, arrays=change)


def with_pipe(folder):
    (folder / "prior.json").unlink()
    os.mkfifo(folder / "prior.json")


def without_first(tensors):
    return dict(sorted(tensors.items())[1:])


ARRAYS = "arrays"
DAMAGES = {
    "truncated arrays": truncated(ARRAYS, 0.6),
    "truncated header": truncated(ARRAYS, 0.02),
    "empty arrays": truncated(ARRAYS, 0.0),
    "truncated description": truncated("prior.json", 0.5),
    "empty description": truncated("prior.json", 0.0),
    "binary description": lambda f: (f / "prior.json").write_bytes(b"\xff\xfe\x00\x80"),
    "foreign description": lambda f: (f / "prior.json").write_text('{"name": "a package"}'),
    "description is a list": lambda f: (f / "prior.json").write_text("[1, 2]"),
    "arrays are text": lambda f: arrays_of(f).write_text("not tensors at all"),
    "no arrays": lambda f: arrays_of(f).unlink(),
    "description is a pipe": with_pipe,
    "deep description": lambda f: (f / "prior.json").write_text("[" * 100_000),
    "deep space": lambda f: (f / "prior.json").write_text(
        '{"format": "metaprior-prior", "format_version": 2, "space": ' + '{"a":' * 50_000
    ),
    "name twice": lambda f: (f / "prior.json").write_text(
        (f / "prior.json").read_text().replace("{", '{"direction": "maximize",', 1)
    ),
    "edited by hand": lambda f: (f / "prior.json").write_text(
        (f / "prior.json").read_text().replace("minimize", "maximize")
    ),
    "no checksum": lambda f: (f / "prior.json").write_text(
        (f / "prior.json").read_text().replace("sha256", "sha")
    ),
    "arrays elsewhere": edited(
        lambda d: d | {"arrays": d["arrays"] | {"file": "../prior-0123456789abcdef.safetensors"}}
    ),
    "no name of arrays": edited(lambda d: d | {"arrays": [1]}),
    "format is true": edited(lambda d: d | {"format_version": True}),
    "not a number": arrays(lambda t: {k: np.full_like(v, np.nan) for k, v in t.items()}),
    "infinite": arrays(lambda t: {k: np.full_like(v, np.inf) for k, v in t.items()}),
    "impossible": arrays(lambda t: {k: np.full_like(v, 1e200) for k, v in t.items()}),
    "no description": lambda f: (f / "prior.json").unlink(),
    "newer format": edited(lambda d: d | {"format_version": 4}),
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
    "very many members": (nested(lambda b: b | {"members": 300_000}), "does not fit prior.json"),
    "huge network": (
        nested(lambda b: b | {"base": {"name": "NeuralProcess", "width": 10**9}}),
        "does not fit prior.json",
    ),
    "negative size": (
        nested(lambda b: b | {"base": {"name": "NeuralProcess", "width": -3}}),
        "does not fit prior.json",
    ),
    "very deep network": (
        nested(lambda b: b | {"base": {"name": "NeuralProcess", "depth": 300_000}}),
        "`depth` is 300000; give a whole number from 1 to 100",
    ),
    "hyper-prior is a number": (
        nested(lambda b: b | {"base": b["base"] | {"hyper_prior": 1e-320}}),
        "hyper_prior of FPacohMap is 1e-320, which is not a process",
    ),
    "magic": (nested(lambda b: b | {"magic": 1}), "magic"),
    "trust is text": (
        edited(lambda d: d | {"method": d["method"] | {"prior_trust": "0.9"}}),
        "prior_trust of Guarded is '0.9', which is not a number",
    ),
    "trust is certain": (
        edited(lambda d: d | {"method": d["method"] | {"prior_trust": 1.0}}),
        "The trust of Guarded must satisfy",
    ),
    "trust is infinite": (
        edited(lambda d: d | {"method": d["method"] | {"temperature": -1e308}}),
        "`temperature` of Guarded is -1e+308",
    ),
    "too deep": (nested(lambda b: wrapped(40)), "nested more than 4 deep"),
}


@pytest.mark.parametrize(("damage", "problem"), NESTED_DAMAGES.values(), ids=NESTED_DAMAGES.keys())
def test_load_names_damage_in_nested_methods_in_one_sentence(saved_nested, damage, problem):
    damage(saved_nested)
    tracemalloc.start()
    with pytest.raises(PriorFileError) as caught:
        mp.load(saved_nested)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # What the description claims is compared before any of it is made.
    assert most < 50e6
    text = str(caught.value)
    assert str(saved_nested) in text and problem in text, text
    assert "\n" not in text and text.endswith("."), text


@pytest.mark.parametrize("weights", [(-np.inf, 0.05), (0.5, 0.6), (0.5, 0.0)])
def test_load_rejects_weights_that_leave_nothing(tmp_path, weights):
    source = Path(__file__).parent / "format_2" / "weighed_fpacoh_map"
    folder = mp.load(source).save(tmp_path / "prior")
    named = dict(zip(("past_weight", "averaged_weight"), weights, strict=True))
    reseal(folder, description=lambda d: d | {"method": d["method"] | named})
    with pytest.raises(PriorFileError, match="of Weighed are"):
        mp.load(folder)


def test_load_rejects_arrays_of_another_prior(saved, tmp_path):
    wide = mp.Space(**{f"x{j}": mp.Real(0.0, 1.0) for j in range(4)})
    other = arrays_of(learn_fixed(wide).save(tmp_path / "other"))
    arrays_of(saved).write_bytes(other.read_bytes())
    with pytest.raises(PriorFileError, match="is damaged .its SHA-256 is not the one in prior.js"):
        mp.load(saved)
    reseal(saved)
    with pytest.raises(PriorFileError, match=r"does not fit prior.json: .*\[4\] where .*\[3\]"):
        mp.load(saved)


@pytest.mark.parametrize("file", ["description", ARRAYS])
def test_load_finds_every_flipped_bit(saved, file):
    """Or the flip says nothing: JSON may be laid out and letters be written in several ways."""
    path = path_of(saved, {"description": "prior.json"}.get(file, file))
    whole, prior = path.read_bytes(), mp.load(saved)
    rng, refused = np.random.default_rng(0), 0
    for at in rng.integers(0, 8 * len(whole), 300):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        try:
            loaded = mp.load(saved)
        except PriorFileError:
            refused += 1
            continue
        assert file == "description" and json.loads(bytes(flipped)) == json.loads(whole)
        assert loaded.method == prior.method
    assert refused == 300 if file == ARRAYS else refused > 250


def test_load_checks_the_space_it_is_given(saved):
    assert mp.load(saved, space=SPACE).space == SPACE
    other = mp.Space(x=mp.Real(0.0, 2.0), c=mp.Categorical(["a", "ü"]))
    with pytest.raises(PriorFileError, match=r"is for the space .* not for .*Real\(0.0, 2.0\)"):
        mp.load(saved, space=other)


def test_load_rejects_a_missing_folder(tmp_path):
    with pytest.raises(PriorFileError, match="There is no prior in .*nowhere"):
        mp.load(tmp_path / "nowhere")
