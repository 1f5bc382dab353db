"""The code blocks of the README and of the quick start run, in order, as they stand."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaprior as mp

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("README.md", marks=pytest.mark.slow),
        pytest.param("docs/index.md", marks=pytest.mark.slow),
        pytest.param("docs/adding-a-method.md", marks=pytest.mark.slow),
    ],
)
def test_code_blocks_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / name).read_text())
    assert blocks, f"{name} has no python block"
    exec(compile("\n".join(blocks), name, "exec"), {"__name__": "__document__"})
    assert "Best(x=" in capsys.readouterr().out


@pytest.mark.slow
def test_a_users_own_hyper_prior_trains():
    """The ten lines of the framework page, and a short training with them."""
    [block] = BLOCK.findall((ROOT / "docs/framework.md").read_text())
    names: dict[str, Any] = {"__name__": "__document__"}
    exec(compile(block, "docs/framework.md", "exec"), names)
    runs = [([[0.1 * i], [0.5], [0.9]], [0.0, 1.0, 0.1 * i]) for i in range(3)]
    tasks = mp.Tasks.from_runs(runs, space=mp.Space(x=mp.Real(0, 1)))
    prior = mp.learn(tasks, method=replace(names["method"], num_steps=3))
    assert np.isfinite(prior.history["fit"]).all() and len(prior.history["fit"]) == 3


def test_pictures_exist():
    for name in ("README.md", "docs/index.md", "docs/framework.md"):
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", (ROOT / name).read_text()):
            assert (ROOT / name).parent.joinpath(picture).is_file(), picture
