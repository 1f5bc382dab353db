"""The command line: parses arguments, calls the library, prints tables."""

from metaprior.cli._app import main as main
