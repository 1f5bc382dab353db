"""Jobs over processes: order, failure, death and time."""

import operator
import os
from pathlib import Path

import pytest

from benchmarks.field._schedule import Job, run_jobs


@pytest.fixture
def touch(tmp_path):
    """A job that leaves a file of its name."""
    return lambda name, *after: Job(name, Path.touch, (tmp_path / name,), after)


def test_run_jobs_goes_on_after_a_failure_but_not_with_what_waits_for_it(tmp_path, touch):
    said: list[str] = []
    jobs = [
        touch("first"),
        Job("wrong", operator.truediv, (1, 0)),
        touch("waits", "wrong"),
        touch("waits too", "waits"),
        Job("dies", os._exit, (1,)),
        touch("last", "first", "not in the list"),
    ]
    outcome = run_jobs(jobs, workers=1, tell=said.append)
    assert {path.name for path in tmp_path.iterdir()} == {"first", "last"}
    assert sorted(outcome.done) == ["first", "last"]
    assert "ZeroDivisionError" in outcome.failed["wrong"]
    assert outcome.failed["waits"] == "wrong failed"
    assert outcome.failed["waits too"] == "waits failed"
    assert outcome.failed["dies"] == "its process died"
    assert "failed: wrong: ZeroDivisionError: division by zero" in said


def test_run_jobs_starts_nothing_when_the_time_is_up(tmp_path, touch):
    outcome = run_jobs([touch("a"), touch("b")], workers=2, seconds=0.0, tell=print)
    assert (outcome.done, outcome.failed, outcome.left) == ([], {}, 2)
    assert not list(tmp_path.iterdir())
