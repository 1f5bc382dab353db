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
    """A stand-in for learning, which keeps what it was called with; `findings` may be set."""
    calls = SimpleNamespace(findings=None)

    def learn(tasks, **options):
        calls.tasks, calls.options = tasks, options
        for stage, fraction in (("Searching", 0.1), ("Searching", 0.5), ("Training", 0.9)):
            options["on_progress"](
                SimpleNamespace(stage=stage, fraction=fraction, trying="32 settings", best=1.25)
            )
        return quick_learn(tasks, calls.findings)

    monkeypatch.setattr("metaprior.cli._learn.learn", learn)
    return calls
