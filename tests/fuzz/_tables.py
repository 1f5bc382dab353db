"""Tables as text: files of past runs, run files, and spaces in TOML."""

import json
import math
import os
import re
import tomllib
from pathlib import Path

import numpy as np

import metaprior as mp
from metaprior.data.csv import read_runs, read_space, space_as_toml
from metaprior.lifelong import read_run, suggest, tell
from tests.fuzz._damage import choice, damaged_text

RUNS = (
    "lr,act,value\n0.001,relu,0.5\n0.01,tanh,0.75\n0.1,relu,0.25\n",
    "lr;act;value\r\n0,002;relu;1,5\r\n0,05;gelu;-2\r\n",
    'lr,"act",value\n0.003,"relu",failed\n0.02,relu,\n0.07,tanh,3e-1\n',
    "act,value,lr,day\nrelu,1,0.001,1\ntanh,2,0.002,1\nrelu,3,0.003,1\ntanh,2.5,0.004,1\n",
)
RUN_FILES = (
    "x,c,value\n0.125,a,1.5\n0.25,b,\n0.5,a,failed\n",
    "x;c;value\r\n0,125;a;1,5\r\n0,25;b;\r\n",
    'x,c,value,note\n0.125,"a",1.5,"so, so"\n0.75,b,,\n',
)
SPACE_FILE = """[lr]
kind = "real"
low = 0.0001
high = 0.1
log = true

[units]
kind = "integer"
low = 1
high = 64

[act]
kind = "categorical"
choices = ["relu", "tanh"]

[leak]
kind = "real"
low = 0.0
high = 0.3
step = 0.05
when = { act = ["relu"] }
"""
SPACE = mp.Space(x=mp.Real(0.0, 1.0), c=mp.Categorical(["a", "b"]))
PRIOR = None


def past_runs(rng: np.random.Generator, folder: Path) -> None:
    """Files of past runs, one or two of them damaged."""
    texts = []
    chosen = choice(rng, (RUNS[:3], RUNS[3:]))
    for i in range(3):
        text = choice(rng, chosen)
        data = damaged_text(rng, text) if i == 0 or rng.random() < 0.1 else text.encode()
        (folder / f"{i}.csv").write_bytes(data)
        texts.append(data.decode("utf-8-sig", errors="replace"))
    read = read_runs(folder, bounds=str(choice(rng, ("data", "wider"))))
    found = numbers_in("\n".join(texts))
    for task in range(len(read.tasks)):
        length = int(read.tasks.lengths[task])
        for value in np.asarray(read.tasks.y[task][:length], float):
            assert math.isfinite(value) and float(value) in found, "a value that no file has"
    # What was inferred holds what it was inferred from.
    again = read_runs(folder, space=read.space, value=read.value)
    assert len(again.tasks) == len(read.tasks), "an inferred space refuses its own files"


def run_file(rng: np.random.Generator, folder: Path) -> None:
    """A run file: read, suggested into and told."""
    path = folder / "run.csv"
    if rng.random() < 0.02:
        os.mkfifo(path)
    else:
        path.write_bytes(damaged_text(rng, choice(rng, RUN_FILES)))
    kind = int(rng.integers(3))
    if kind == 0:
        rows = read_run(path, SPACE).rows
        values = {row.value for row in rows if row.is_observed}
        found = numbers_in(path.read_text(encoding="utf-8-sig"))
        assert values <= found, "a value that the file does not have"
        return
    before = path.read_bytes() if path.is_file() else b""
    try:
        if kind == 1:
            value = choice(rng, ("1.5", "1,5", "nan", "9" * 400, 2.5, None, "x"))
            tell(_prior(), path, value, sure=True)
        else:
            suggest(_prior(), path, int(choice(rng, (1, 2))), seed=0)
    except (ValueError, TypeError):
        assert not path.is_file() or path.read_bytes() == before, "an error changed the file"
        raise
    after, kept = path.read_bytes(), before.rstrip(b"\r\n").splitlines(keepends=True)
    changed = [line for line in kept if line.rstrip(b"\r\n") not in after]
    assert len(changed) <= (1 if kind == 1 else 0), "other rows were changed"


def space_file(rng: np.random.Generator, folder: Path) -> None:
    """A space in TOML."""
    path = folder / "space.toml"
    data = damaged_text(rng, SPACE_FILE)
    path.write_bytes(data)
    space = read_space(path)
    tables = tomllib.loads(data.decode("utf-8-sig"))
    assert list(tables) == list(space.names), "other dimensions than the file names"
    for table, dimension in zip(tables.values(), space.dimensions, strict=True):
        told = dimension.to_json()
        assert all(told[key] == table[key] for key in ("low", "high", "choices") if key in table)
    path.write_text(space_as_toml(space))
    assert read_space(path) == space, "what is written is read as another space"
    assert mp.Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    if space.num_columns < 1000:
        space.decode(np.full((1, space.num_columns), 0.5))


def numbers_in(text: str) -> set[float]:
    """Every number that a reader may find in the text, with points or commas for decimals."""
    found = set()
    for cell in re.split(r'[;\t|\r\n"\s]|,(?=[^0-9])|(?<=[^0-9]),', text):
        for part in (cell, cell.replace(",", "."), *cell.split(",")):
            try:
                found.add(float(part))
            except ValueError:
                continue
    # Where commas part numbers, any piece of the line may be one.
    found |= {float(match) for match in re.findall(r"[+-]?\d+\.?\d*(?:[eE][+-]?\d+)?", text)}
    return found | {float(m.replace(",", ".")) for m in re.findall(r"[+-]?\d*,\d+", text)}


def _prior() -> mp.Prior:
    global PRIOR
    if PRIOR is None:
        from metaprior.lifelong import untrained_prior

        PRIOR = untrained_prior(SPACE, "maximize")
    return PRIOR
