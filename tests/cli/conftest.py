"""What tests of commands share: no cache of compiled programs, and a stand-in for learning."""

from types import SimpleNamespace

import pytest

from tests.quick_learn import quick_learn


@pytest.fixture
def no_cache(monkeypatch):
    """Compiled code of other settings than those of the tests stays where it is."""
    monkeypatch.setattr("metaprior.cli._app.prepare_jax", lambda: None)


@pytest.fixture
def learned(monkeypatch):
    """A stand-in for learning, which keeps what it was called with; a test may set what it finds
    and the stages that it reports."""
    calls = SimpleNamespace(findings=None, stages=())

    def learn(tasks, **options):
        calls.tasks, calls.options = tasks, options
        for stage, fraction in calls.stages:
            options["on_progress"](
                SimpleNamespace(stage=stage, fraction=fraction, trying="32 settings", best=1.25)
            )
        return quick_learn(tasks, calls.findings)

    monkeypatch.setattr("metaprior.cli._learn.learn", learn)
    return calls
