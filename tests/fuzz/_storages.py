"""Optuna storages: journals and SQLite files, damaged as bytes and as records."""

import json
import sqlite3
from functools import cache
from pathlib import Path

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from metaprior.adapters.optuna import read_history
from tests.fuzz._damage import VALUES, as_text, choice, damaged_bytes, damaged_value

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


@cache
def _contents(kind: str, scratch: Path) -> bytes:
    """A storage of two studies with four trials each, as the bytes of its file."""
    path = scratch / f"whole.{kind}"
    storage = f"sqlite:///{path}" if kind == "db" else JournalStorage(JournalFileBackend(str(path)))
    for name in ("one", "two"):
        study = optuna.create_study(storage=storage, study_name=name)
        for i in range(4):
            study.add_trial(
                optuna.create_trial(
                    params={"x": 0.1 * i, "c": "a" if i % 2 else "b"},
                    distributions={
                        "x": FloatDistribution(0.0, 1.0),
                        "c": CategoricalDistribution(["a", "b"]),
                    },
                    value=float(i),
                )
            )
    return path.read_bytes()


def journal(rng: np.random.Generator, folder: Path) -> None:
    """A journal with damaged bytes or records."""
    data = _contents("log", folder.parent)
    if rng.random() < 0.4:
        data = damaged_bytes(rng, data)
    else:
        lines = data.decode().splitlines()
        row = int(rng.integers(len(lines)))
        lines[row] = as_text(damaged_value(rng, json.loads(lines[row])))
        data = ("\n".join(lines) + "\n").encode()
    (folder / "past.log").write_bytes(data)
    _read(f"journal:{folder / 'past.log'}")


def sqlite(rng: np.random.Generator, folder: Path) -> None:
    """A database with damaged bytes or cells."""
    path = folder / "past.db"
    path.write_bytes(_contents("db", folder.parent))
    if rng.random() < 0.5:
        path.write_bytes(damaged_bytes(rng, path.read_bytes()))
    else:
        with sqlite3.connect(path) as connection:
            tables = ("studies", "trials", "trial_values", "trial_params", "study_directions")
            table = choice(rng, tables)
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            value = choice(rng, [v for v in VALUES if isinstance(v, (str, float, type(None)))])
            try:
                connection.execute(f"UPDATE {table} SET {choice(rng, columns)} = ?", (value,))
            except sqlite3.Error:
                connection.execute(f"DELETE FROM {table} WHERE rowid % 2")
        connection.close()
    _read(f"sqlite:///{path}")


def _read(address: str) -> None:
    history = read_history(address)
    for task in range(len(history.tasks)):
        length = int(history.tasks.lengths[task])
        values = np.asarray(history.tasks.y[task][:length])
        assert np.isfinite(values).all(), "values that are no numbers"
