"""500 damaged and hostile inputs; `python -m tests.fuzz --cases 10000` tries more of them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz._engine import Tally, run_case
from tests.fuzz._targets import TARGETS


def test_fuzz_command_finds_nothing_in_500_cases():
    """In a process of its own: here, types are checked before the library sees a value."""
    command = [sys.executable, "-m", "tests.fuzz", "--cases", "500", "--seed", "1"]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\n500 cases, 0 failures\n")
    # Where everything is refused, nothing that is accepted is looked at.
    accepted = [int(row.split()[-4]) for row in done.stdout.splitlines()[1 : 1 + len(TARGETS)]]
    assert len(accepted) == len(TARGETS) and sum(accepted) > 25


def nothing_wrong(rng, folder):
    return None


def one_sentence(rng, folder):
    raise ValueError("This was wrong; do that.")


def believes(rng, folder):
    assert float("nan") > 0, "believed"


def numpy_error(rng, folder):
    np.zeros(2).reshape(3)


def overflow(rng, folder):
    float(10**400)


def warns(rng, folder):
    return np.float64(1.0) / np.float64(0.0)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (nothing_wrong, "accepted"),
        (one_sentence, "refused"),
        (believes, "believed damaged data"),
        (numpy_error, "without a sentence"),
        (overflow, "OverflowError"),
        (warns, "RuntimeWarning"),
    ],
)
def test_run_case_tells_a_refusal_from_a_failure(tmp_path, target, kind):
    tally = Tally()
    run_case(tally, target, tmp_path, 0, 0)
    assert tally.cases == 1
    if kind in ("accepted", "refused"):
        assert getattr(tally, kind) == 1
    else:
        assert len(tally.failures) == 1 and kind in tally.failures[0]
