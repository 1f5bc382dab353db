"""Saved priors: damaged by chance, which the checksums find, and by whoever forges these."""

import json
import shutil
from pathlib import Path

import numpy as np

import metaprior as mp
from metaprior.belief import SavedContents
from tests.fuzz._damage import as_text, choice, damaged_bytes, damaged_value
from tests.saved import arrays_of, reseal

EARLIER = Path(__file__).parents[1] / "store"
SAVED = sorted(path.parent for path in EARLIER.glob("format_*/*/prior.json"))
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
