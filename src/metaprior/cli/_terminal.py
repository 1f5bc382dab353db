"""What commands print: names from files and storages cannot steer the terminal."""

import typer

from metaprior.words import visible


def say(text: str, *, err: bool = False) -> None:
    """Print lines of text, on standard error if `err`."""
    typer.echo(visible(text), err=err)
