"""What the commands make of errors: one sentence each, from one place."""

import pytest
from typer.testing import CliRunner

from metaprior.cli._app import app


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("This was wrong; do that."), "Error: This was wrong; do that.\n"),
        (TypeError("`space` is 3; give a Space."), "Error: `space` is 3; give a Space.\n"),
        (TypeError("unhashable type: 'list'"), "(TypeError: unhashable type: 'list'); check"),
        (OverflowError("int too large"), "cannot be used (OverflowError: int too large); check"),
        (RecursionError("maximum\ndepth"), "(RecursionError: maximum depth); check the files"),
        (MemoryError(), "There is not enough memory for this input; give fewer or"),
        (KeyError("space"), "(KeyError: 'space'); check the files"),
        (OSError(28, "No space left on device", "a.csv"), "a.csv: No space left on device.\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_commands_answer_every_error_of_input_in_one_sentence(monkeypatch, error, words):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr("metaprior.cli._suggest.run_suggest", fail)
    done = CliRunner().invoke(app, ["suggest", "--run", "run.csv"])
    assert done.exit_code == 2 and done.stdout == ""
    assert words in done.stderr and len(done.stderr.splitlines()) == 1


def test_commands_show_an_error_of_the_library_as_it_is(monkeypatch):
    def fail(*args, **options):
        raise AssertionError("this cannot be")

    monkeypatch.setattr("metaprior.cli._suggest.run_suggest", fail)
    done = CliRunner().invoke(app, ["suggest", "--run", "run.csv"])
    assert done.exit_code == 1 and isinstance(done.exception, AssertionError)
