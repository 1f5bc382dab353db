"""The ledger of a lifelong sequence, and its runs."""

import json
from pathlib import Path

import numpy as np

import metaprior as mp
from metaprior.lifelong import PriorSequence
from tests.fuzz._damage import TOKENS, choice, damaged_bytes, damaged_value, forged_json
from tests.saved import reseal_json

SPACE = mp.Space(x=mp.Real(0.0, 1.0), c=mp.Categorical(["a", "b"]))
VERSION = {
    **{"number": 1, "runs": ["a"], "score": 0.5, "by_run": {"a": 0.5}, "spread": 1.0},
    **{"kept": True, "reason": "It is the first version.", "made": "2026-01-01T00:00:00+00:00"},
}


def lifelong(rng: np.random.Generator, folder: Path) -> None:
    """A damaged ledger, or a hostile name of a run."""
    folder = folder / "machine"
    sequence = PriorSequence.begin(folder, space=SPACE)
    path = folder / "lifelong.json"
    run = "monday"
    if rng.random() < 0.2:
        run = choice(rng, (*TOKENS, "..", "../x", "a/b", "C:x", ".x", "x" * 300, "con", "a\\b"))
    else:
        reseal_json(path, lambda told: told | {"finished": ["a"], "versions": [VERSION]})
        whole = path.read_bytes()
        if rng.random() < 0.3:
            path.write_bytes(damaged_bytes(rng, whole))
            PriorSequence(folder)
            assert json.loads(path.read_bytes()) == json.loads(whole), "another ledger"
        elif not forged_json(path, damaged_value(rng, json.loads(whole))):
            return
    sequence = PriorSequence(folder)
    assert len(sequence.suggest(run, 1).rows) == 1
    sequence.tell(run, 1.5)
    outside = [each for each in folder.parent.rglob("*.csv") if each.parent != folder / "runs"]
    assert not outside, "a run outside of its folder"
