"""`metaprior suggest` and `metaprior status`: their options. Neither imports JAX."""

from pathlib import Path
from typing import Annotated

import typer


def suggest(
    run: Annotated[
        str,
        typer.Option(help="CSV file of the run, created if missing; with --lifelong, its name."),
    ],
    prior: Annotated[Path | None, typer.Option(help="Folder of a saved prior.")] = None,
    lifelong: Annotated[
        Path | None, typer.Option(help="Folder of a sequence of runs whose prior learns.")
    ] = None,
    space: Annotated[
        Path | None, typer.Option(help="TOML file of the space, to begin a sequence with.")
    ] = None,
    direction: Annotated[
        str | None, typer.Option(help="maximize or minimize, to begin a sequence with.")
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(help="What the value is called in the files, to begin a sequence with."),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Unit of the value, to begin a sequence with.")
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Feature of the task, when its run begins; kept in the file.",
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("-n", min=1, help="Number of points, for parallel evaluations.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of all randomness.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the points as JSON instead of words.")
    ] = False,
) -> None:
    """Propose the next points of a run, and write them into its CSV file."""
    from metaprior.cli._suggest import run_suggest

    run_suggest(
        run,
        prior=prior,
        lifelong=lifelong,
        space=space,
        direction=direction,
        value=value,
        unit=unit,
        features=feature or [],
        n=n,
        seed=seed,
        as_json=as_json,
    )


def status(
    storage: Annotated[
        str | None,
        typer.Argument(
            metavar="[optuna:URL]", help="An Optuna storage with a sequence.", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the sequence in the Optuna storage.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="CSV file of the run; with --lifelong, its name.")
    ] = None,
    prior: Annotated[Path | None, typer.Option(help="Folder of a saved prior.")] = None,
    lifelong: Annotated[
        Path | None, typer.Option(help="Folder of a sequence; without --run, lists its versions.")
    ] = None,
    restore: Annotated[
        int | None, typer.Option(min=1, help="Use this version of the sequence from now on.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Show the status of a run, or the versions of the prior of a lifelong sequence."""
    from metaprior.cli._status import run_status

    run_status(
        storage,
        name=name,
        run=run,
        prior=prior,
        lifelong=lifelong,
        restore=restore,
        as_json=as_json,
    )
