"""The cache of compiled programs: made, chosen, switched off, bounded, and never in the way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from metaprior.files import cache_folder
from metaprior.learning import _cache

# In a process of its own: where JAX keeps programs is a setting of the whole process.
LEARN = """
import json, sys
import metaprior as mp
import jax, numpy as np

if len(sys.argv) > 1:
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
before = jax.config.jax_compilation_cache_dir
rng = np.random.default_rng(0)
runs = [(rng.uniform(size=(4, 1)), rng.normal(size=4)) for _ in range(3)]
tasks = mp.Tasks.from_runs(runs, space=mp.Space(a=mp.Real(0, 1)))
mp.learn(tasks, method=mp.methods.LearnedGP(num_steps=1), seed=0)
print(json.dumps([before, jax.config.jax_compilation_cache_dir]))
"""


def run_in(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process with this home folder that has run `learn`."""
    hidden = ("JAX_", "METAPRIOR_", "XDG_", "TF_CPP_")
    settings = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEARN, *arguments],
        env=settings | {"HOME": str(home), "LOCALAPPDATA": str(home)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def learned_in(home: Path, *arguments: str, **environment: str) -> list[str | None]:
    """Where JAX kept programs before and after `learn`, in a process with this home folder."""
    done = run_in(home, *arguments, **environment)
    return json.loads(done.stdout.splitlines()[-1])


def programs(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*")) if folder.is_dir() else 0


def test_learn_keeps_programs_in_the_folder_that_the_variable_names(tmp_path):
    folder = tmp_path / "chosen" / "by me"
    before, after = learned_in(tmp_path / "home", METAPRIOR_CACHE=str(folder))
    assert before is None and after == str(folder)
    # Small programs count too: the training loop alone would be a single file.
    assert programs(folder) > 3 and programs(tmp_path / "home") == 0


@pytest.mark.slow
def test_learn_reads_programs_from_the_cache_without_a_word(tmp_path):
    for _ in range(2):
        assert run_in(tmp_path, METAPRIOR_CACHE=str(tmp_path / "cache")).stderr == ""


@pytest.mark.slow
def test_learn_keeps_no_programs_if_switched_off(tmp_path):
    assert learned_in(tmp_path, METAPRIOR_CACHE="off") == [None, None]
    assert programs(tmp_path) == 0


@pytest.mark.slow
def test_learn_leaves_a_cache_of_the_user_alone(tmp_path):
    mine = tmp_path / "mine"
    ours = tmp_path / "ours"
    assert learned_in(tmp_path, str(mine), METAPRIOR_CACHE=str(ours)) == [str(mine)] * 2
    assert not ours.exists()


@pytest.mark.slow
def test_learn_survives_a_cache_folder_that_cannot_be_made(tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert learned_in(tmp_path, METAPRIOR_CACHE=str(occupied / "below")) == [None, None]


@pytest.mark.parametrize("switched_off", ["", "off", "OFF", " off "])
def test_cache_folder_is_none_if_switched_off(monkeypatch, switched_off):
    monkeypatch.setenv("METAPRIOR_CACHE", switched_off)
    assert cache_folder() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_cache_folder_is_that_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("METAPRIOR_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "metaprior"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/metaprior")


def test_remove_oldest_leaves_the_newest_within_the_bound(monkeypatch, tmp_path):
    monkeypatch.setattr(_cache, "MOST_BYTES", 250)
    for age in range(5):
        path = tmp_path / f"program{age}"
        path.write_bytes(b"x" * 100)
        os.utime(path, (1e9 - age, 1e9 - age))
    _cache._remove_oldest(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program0", "program1"]
