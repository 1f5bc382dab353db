"""Commands as a user types them, in the process of the test."""

from typer.testing import CliRunner

from metaprior.cli._app import app


def invoke(*arguments, **environment):
    """The outcome of `metaprior` with these arguments, on a terminal of 120 columns."""
    settings = {"COLUMNS": "120", **environment}
    return CliRunner().invoke(app, [str(each) for each in arguments], env=settings)
