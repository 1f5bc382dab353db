"""Locks between real processes: one holder at a time, and none after its process has died."""

import os
import subprocess
import sys
import time

import pytest

from metaprior.files import locked

HOLDER = """
import sys, time
from pathlib import Path
from metaprior.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock on a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run.csv")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_locked_refuses_after_waiting_for_another_process(holder, tmp_path):
    words = rf"locked by another process for 0\.2 seconds \(process {holder.pid} on .*; wait"
    started = time.monotonic()
    with (
        pytest.raises(ValueError, match=words),
        locked(tmp_path / "run.csv", longest_wait=0.2),
    ):
        pytest.fail("two processes hold one lock")
    assert time.monotonic() - started >= 0.2


def test_locked_ends_with_a_killed_process(holder, tmp_path):
    holder.kill()
    holder.wait()
    with locked(tmp_path / "run.csv", longest_wait=5.0):
        assert f"process {os.getpid()} on" in (tmp_path / ".run.csv.lock").read_text()
    assert list(tmp_path.iterdir()) == []


def test_locked_ends_with_an_error_inside(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path / "run.csv"):
        raise KeyError
    with locked(tmp_path / "run.csv", longest_wait=0.0):
        pass


def test_locked_holds_one_lock_for_a_file_and_a_link_to_it(tmp_path):
    (tmp_path / "run.csv").touch()
    (tmp_path / "link.csv").symlink_to("run.csv")
    with (
        locked(tmp_path / "run.csv"),
        pytest.raises(ValueError, match="locked"),
        locked(tmp_path / "link.csv", longest_wait=0.0),
    ):
        pytest.fail("a link has a lock of its own")


def test_locked_names_a_folder_that_does_not_exist(tmp_path):
    with (
        pytest.raises(ValueError, match=r"run\.csv cannot be written \(no such file"),
        locked(tmp_path / "missing" / "run.csv"),
    ):
        pytest.fail("locked a file that cannot exist")


COUNTER = """
import sys
from pathlib import Path
from metaprior.files import locked
path = Path(sys.argv[1])
for _ in range(100):
    with locked(path):
        path.write_text(str(int(path.read_text()) + 1))
"""


def test_locked_holds_while_lock_files_come_and_go(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    counters = [
        subprocess.Popen([sys.executable, "-c", COUNTER, str(path)], env=env) for _ in range(3)
    ]
    assert [counter.wait() for counter in counters] == [0, 0, 0]
    assert path.read_text() == "300" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_locked_does_not_write_through_a_link(tmp_path, make):
    (tmp_path / "thesis").write_text("years of work")
    make(tmp_path / "thesis", tmp_path / ".run.csv.lock")
    with (
        pytest.raises(ValueError, match=r"run\.csv cannot be written"),
        locked(tmp_path / "run.csv", longest_wait=0.0),
    ):
        pytest.fail("locked a link")
    assert (tmp_path / "thesis").read_text() == "years of work"


def test_locked_does_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / ".run.csv.lock")
    with (
        pytest.raises(ValueError, match=r"run\.csv cannot be written"),
        locked(tmp_path / "run.csv", longest_wait=0.0),
    ):
        pytest.fail("locked a pipe")
