"""`metaprior env`: its commands and their options."""

from pathlib import Path
from typing import Annotated

import typer

env = typer.Typer(no_args_is_help=True, help="Families of tasks to study methods on.")


@env.command("list")
def env_list(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the families as JSON instead of a table.")
    ] = False,
) -> None:
    """List all families: dimensions, tasks and run length in the benchmark, source of values."""
    from metaprior.cli._env import list_families

    list_families(as_json=as_json)


@env.command("fetch")
def env_fetch(
    to: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("openml-bot"),
    url: Annotated[
        str | None, typer.Option(help="Address of the article in figshare's API, or of a copy.")
    ] = None,
) -> None:
    """Download and verify the original OpenML-bot tables (Kühn et al. 2018); skip complete ones."""
    from metaprior.cli._env import fetch_tables

    fetch_tables(to, url=url)
