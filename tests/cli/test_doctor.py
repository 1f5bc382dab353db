"""`metaprior doctor`, and the completion of the shell."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from metaprior.cli._doctor import examined
from tests.commands import invoke


def test_doctor_shows_versions_folders_and_threads(tmp_path):
    cache = str(tmp_path / "programs")
    done = invoke("doctor", "--json", JAX_COMPILATION_CACHE_DIR=cache, OMP_NUM_THREADS="3")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["packages"]["numpy"] == np.__version__
    assert "optuna" in found["hosts"] and "devices" not in found
    assert found["compiled programs"] == {"folder": cache, "bytes": 0, "writable": True}
    assert found["environment"]["OMP_NUM_THREADS"] == "3" and found["problems"] == []
    assert not os.path.exists(cache)
    said = invoke("doctor").stdout
    assert f"numpy: {np.__version__}" in said and "Nothing is wrong." in said


def test_doctor_shows_the_devices_of_jax():
    assert any("cpu" in name.lower() for name in examined(gpu=True)["devices"])


def test_doctor_names_what_is_wrong(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr("metaprior.cli._doctor.NEEDED", ("jax", "no-such-package"))
    done = invoke("doctor", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "file" / "programs"))
    assert "Problem: no-such-package is not installed" in done.stdout
    assert "Problem: Compiled programs cannot be kept in" in done.stdout


def test_doctor_imports_no_host_and_no_jax():
    program = (
        "import sys; from metaprior.cli._app import app; app(['doctor'], standalone_mode=False); "
        "heavy = {'jax', 'torch', 'optuna', 'mlflow', 'pandas'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("typed", "completed"), [("le", "learn"), ("doc", "doctor")])
def test_shell_completes_commands(typed, completed):
    done = subprocess.run(
        [sys.executable, "-m", "metaprior.cli"],
        env={
            **os.environ,
            "_METAPRIOR_COMPLETE": "complete_bash",
            "COMP_WORDS": f"metaprior {typed}",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [completed], done.stderr
