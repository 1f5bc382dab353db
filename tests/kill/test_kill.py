"""20 kills; `python -m tests.kill --kills 1000` tries more of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kill.__main__ import SHARES


@pytest.mark.slow
def test_kill_command_loses_nothing_in_20_kills():
    """In a process of its own: it is forked, and JAX does not survive that."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.kill", "--kills", "20", "--seed", "1"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 failures\n")


def test_kill_shares_are_a_thousand():
    assert sum(share for _, share in SHARES.values()) == 1000


FORGETFUL = """
import sys
from pathlib import Path
import numpy as np
from tests.kill._engine import Scene, run_scene

class Forgetful(Scene):
    longest = 0.01
    def work(self, say):
        while True:
            say("value 1")
    def check(self, said):
        assert not said, "told and lost"

class Broken(Scene):
    longest = 0.01
    def work(self, say):
        say("begun")
        raise ValueError("it is broken")
    def check(self, said):
        return

for kind in (Forgetful, Broken):
    tally = run_scene(kind, 3, Path(sys.argv[1]) / kind.__name__, np.random.default_rng(0))
    print(tally.kills, len(tally.failures), tally.failures[0])
"""


def test_run_scene_reports_what_is_lost_and_what_fails(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FORGETFUL, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("3 ") and "told and lost" in first
    assert second.startswith("3 ") and "ValueError it is broken" in second
