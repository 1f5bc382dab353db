"""Saved priors: damaged by chance, which the checksums find, and by forged checksums."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np

import metaprior as mp
from metaprior.belief import SavedContents
from metaprior.lifelong import untrained_prior
from tests.fuzz._damage import as_text, choice, damaged_bytes, damaged_value, forged_json
from tests.saved import arrays_of, reseal

EARLIER = Path(__file__).parents[1] / "store"
SAVED = sorted(path.parent for path in EARLIER.glob("format_*/*/prior.json"))
SPACE = mp.Space(x=mp.Real(0.0, 1.0), c=mp.Categorical(["a", "b"]))
POINTS = [{"x": -0.5}, {"x": 0.4}]
RUN = ([{"x": 0.0}, {"x": 1.0}], [-0.2, -0.3])


def damaged_prior(rng: np.random.Generator, folder: Path) -> None:
    """A file of a prior with bytes damaged: refused, or it says the same as before."""
    prior = mp.load(choice(rng, SAVED))
    folder = prior.save(folder / "prior")
    path = arrays_of(folder) if rng.random() < 0.5 else folder / "prior.json"
    whole = path.read_bytes()
    path.write_bytes(damaged_bytes(rng, whole))
    loaded = mp.load(folder)
    if path.suffix == ".json":
        assert json.loads(path.read_bytes()) == json.loads(whole), "another description"
    else:
        assert path.read_bytes() == whole, "other arrays"
    assert loaded.space == prior.space


def forged_prior(rng: np.random.Generator, folder: Path) -> None:
    """A prior with right checksums, or of a format without them, that says impossible things.

    If it is taken, its predictions are finite, or it is an error to ask for them. Those of a method
    without a form in NumPy are compiled, which takes seconds of whatever is asked: not here.
    """
    source = choice(rng, SAVED)
    if rng.random() < 0.5:
        folder = Path(shutil.copytree(source, folder / "prior"))
        path = folder / "prior.json"
        if rng.random() < 0.7:
            path.write_text(as_text(damaged_value(rng, json.loads(path.read_text()))))
        else:
            path = folder / "prior.safetensors"
            path.write_bytes(damaged_bytes(rng, path.read_bytes()))
    else:
        folder = mp.load(source).save(folder / "prior")
        try:
            if rng.random() < 0.7:
                reseal(folder, description=lambda told: damaged_value(rng, told))
            else:
                reseal(folder, arrays=lambda tensors: _damaged_arrays(rng, tensors))
        except (RecursionError, TypeError):  # not even a forger can write this
            return
    prior = mp.load(folder)
    if not isinstance(prior.contents, SavedContents):
        return
    with np.errstate(all="ignore"):
        mean, std = prior.condition(*RUN).predict(POINTS)
    assert np.isfinite(mean).all() and np.isfinite(std).all(), "predictions that are no numbers"
    mp.Optimizer(prior, seed=0)
    prior.save(folder.parent / "again")


def several_priors(rng: np.random.Generator, folder: Path) -> None:
    """A folder of several priors whose list is damaged, or forged with a right checksum."""
    one, two = (untrained_prior(SPACE, direction) for direction in ("maximize", "minimize"))
    priors = mp.Priors({"a": one, "b": two}, {"c": two, "d": None})
    folder = priors.save(folder / "priors")
    path = folder / "priors.json"
    whole = path.read_bytes()
    is_chance = rng.random() < 0.4
    if is_chance:
        path.write_bytes(damaged_bytes(rng, whole))
    elif not forged_json(path, damaged_value(rng, json.loads(whole))):
        return
    loaded = mp.load_priors(folder)
    if is_chance:
        assert json.loads(path.read_bytes()) == json.loads(whole), "another list"
    assert all(prior.space == SPACE for prior in loaded.learned.values())
    assert len(loaded.objectives) <= 2 and len(loaded.constraints) <= 2


def run_in_python(rng: np.random.Generator, folder: Path) -> None:
    """The file of an optimiser: damaged by chance, or forged with a right checksum."""
    prior = untrained_prior(SPACE, "maximize")
    optimizer = mp.Optimizer(prior)
    for point, value in (({"x": 0.5, "c": "a"}, 1.5), ({"x": 0.25, "c": "b"}, None)):
        optimizer.tell(point, value)
    path = optimizer.save(folder / "run.json")
    whole = path.read_bytes()
    if rng.random() < 0.02:
        path.unlink()
        os.mkfifo(path)
    elif rng.random() < 0.3:
        path.write_bytes(damaged_bytes(rng, whole))
    else:
        told = json.loads(whole)
        if rng.random() < 0.15:  # which is no damage
            told["told"][0]["value"] = float(rng.normal())
        elif rng.random() < 0.7:  # another space is no run of this prior
            name = choice(rng, ("told", "pending", "seed", "num_asked", "features"))
            told[name] = damaged_value(rng, told[name])
        else:
            told = damaged_value(rng, told)
        if isinstance(told, dict):
            told["sha256"] = _digest({k: v for k, v in told.items() if k != "sha256"})
        path.write_text(as_text(told))
    loaded = mp.Optimizer.load(path, prior)
    SPACE.encode([loaded.ask()])
    assert all(np.isfinite(value) for _, value in loaded.observations)
    assert loaded.save(folder / "again.json").is_file()


def _digest(content: dict) -> str:
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    except (RecursionError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged_arrays(rng: np.random.Generator, tensors: dict) -> dict:
    name = choice(rng, sorted(tensors))
    array = tensors[name]
    kind = int(rng.integers(6))
    if kind == 0:
        del tensors[name]
    elif kind == 1:
        tensors[name] = array.reshape(1, *array.shape)
    elif kind == 2:
        tensors[name] = array.astype(choice(rng, (np.float32, np.int8, bool, np.uint64)))
    elif kind == 3:
        tensors[choice(rng, ("", "../x", "\x00", ".process.more"))] = array
    else:
        changed = np.array(array, copy=True)
        values = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e149, -1e149, 0.0, -1.0, 1e-320, 700.0)
        if changed.dtype.kind == "f" and changed.size:
            changed.flat[int(rng.integers(changed.size))] = choice(rng, values)
        tensors[name] = changed
    return tensors
