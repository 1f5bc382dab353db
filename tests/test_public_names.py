"""What a user sees of the package: its names, short reprs, and types that a checker accepts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import metaprior as mp

ROOT = Path(__file__).parents[1]
# The release that the lock file pins, as in the Makefile; never a newer one from the network.
PYRIGHT = re.search(r"^pyright==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)

USER_SCRIPT = """
from typing import Any, assert_type

import numpy as np

import metaprior as mp

space = mp.Space(
    lr=mp.Real(1e-4, 1e-1, log=True), depth=mp.Integer(1, 12), act=mp.Categorical(["relu", "tanh"])
)
points = [{"lr": 0.01, "depth": 3, "act": "relu"}]
tasks = mp.Tasks.from_runs([(points, [0.5]), (points, [0.6])], space=space, direction="maximize")
prior = mp.learn(tasks, method=mp.methods.FPacohMap(kappa=0.05), seed=0)
assert_type(prior, mp.Prior)
assert_type(mp.load("prior"), mp.Prior)
posterior = prior.condition(points, [0.5])
assert_type(posterior, mp.Posterior)
mean, std = posterior.predict(points)
print(np.mean(mean), np.max(std))
optimizer = mp.Optimizer(prior, candidates=points, seed=0)
assert_type(optimizer.ask(), dict[str, Any])
assert_type(optimizer.ask(3), list[dict[str, Any]])
optimizer.tell(optimizer.ask(), None)
best = optimizer.best
assert_type(best, mp.Best | None)
assert_type(optimizer.trust, float | None)
"""


def test_package_dir_shows_public_names_only():
    names = dir(mp)
    assert {"learn", "load", "Optimizer", "Space", "methods", "__version__"} <= set(names)
    assert [name for name in names if name.startswith("_")] == ["__version__"]
    assert set(mp.__all__) == set(names) - {"__version__"}
    assert all(hasattr(mp, name) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["basic", "strict"])
def test_py_typed_holds_for_a_users_script(mode, tmp_path):
    pytest.importorskip("pyright")
    assert PYRIGHT is not None
    (tmp_path / "script.py").write_text(f"# pyright: {mode}\n{USER_SCRIPT}")
    environment = {
        **os.environ,
        "PYRIGHT_PYTHON_FORCE_VERSION": PYRIGHT[1],
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    }
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "script.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert checked.returncode == 0, checked.stdout
    assert "0 errors" in checked.stdout


def test_repr_of_prior_posterior_optimizer_and_tasks_is_short(hill_prior, hill_space, hill_runs):
    points, values = max(hill_runs, key=lambda run: len(run[1]))
    posterior = hill_prior.condition(points, values)
    optimizer = mp.Optimizer(hill_prior)
    optimizer.tell(hill_space.as_dicts(points)[0], 1.5)
    tasks = mp.Tasks.from_runs(hill_runs, space=hill_space)
    for thing in (hill_prior, posterior, optimizer, tasks, hill_space):
        lines = repr(thing).splitlines()
        assert 1 <= len(lines) <= 5
        assert max(map(len, lines)) <= 400
    assert all(name in repr(hill_prior) for name in hill_space.names)
    assert repr(posterior).startswith(f"Posterior after {len(values)} observations")
    assert "best: 1.5 at " in repr(optimizer)
    assert "1 observed, 0 failed, 0 pending" in optimizer._repr_html_()


def test_prior_repr_html_escapes_names():
    space = mp.Space(**{"<b>": mp.Real(0.0, 1.0)})
    method = mp.methods.FixedGP()
    prior = mp.Prior(
        space, "maximize", mp.methods.TrainedContents(method, method.blank_surrogate(1))
    )
    assert "<b>" in repr(prior)
    assert "<b>" not in prior._repr_html_()
    assert "&lt;b&gt;" in prior._repr_html_()
