"""`metaprior suggest`: the next points of a run, written into its file and on the screen."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from metaprior.cli._features import features_from
from metaprior.data.csv import read_space
from metaprior.lifelong import PriorSequence, Row, suggest
from metaprior.store import load


def run_suggest(
    run: str,
    *,
    prior: Path | None,
    lifelong: Path | None,
    space: Path | None,
    direction: str | None,
    features: Sequence[str],
    n: int,
    seed: int,
    as_json: bool,
) -> None:
    """Suggest the next `n` points, with a prior or with the version in use of a sequence."""
    require_one(prior, lifelong)
    if prior is not None:
        if space is not None or direction is not None:
            raise ValueError(
                "--space and --direction are for a new lifelong sequence, not for a prior; leave "
                "them out, or give --lifelong instead of --prior."
            )
        known = features_from(features)
        file, rows = Path(run), suggest(load(prior), run, n, seed=seed, features=known)
    else:
        assert lifelong is not None
        if features:
            raise ValueError(
                "--feature is for a prior that was learned with features of tasks, not for a "
                "lifelong sequence; leave it out."
            )
        sequence = _sequence(lifelong, space, direction)
        file, rows = sequence.run_file(run), sequence.suggest(run, n, seed=seed)
    if as_json:
        typer.echo(json.dumps({"run": str(file), "rows": [as_dict(row) for row in rows]}, indent=2))
        return
    for row in rows:
        typer.echo(f"row {row.number}: {in_words(row.point)}")
    typer.echo(f"Written to {file}; fill in the value there, or with `metaprior tell`.")


def require_one(prior: Path | None, lifelong: Path | None) -> None:
    """Make sure that one of the two was given, and not both."""
    if (prior is None) == (lifelong is None):
        raise ValueError(
            "Give either --prior with the folder of a prior, or --lifelong with the folder of a "
            "sequence."
        )


def as_dict(row: Row) -> dict[str, Any]:
    """A row for programs."""
    return {"row": row.number, "point": row.point}


def in_words(point: dict[str, Any]) -> str:
    """A point on one line."""
    return ", ".join(f"{name} = {value}" for name, value in point.items())


def _sequence(folder: Path, space: Path | None, direction: str | None) -> PriorSequence:
    if space is not None:
        return PriorSequence.begin(
            folder, space=read_space(space), direction=direction or "maximize"
        )
    sequence = PriorSequence(folder)
    if direction not in (None, sequence.ledger.direction):
        raise ValueError(
            f"The value of the sequence in {folder} is {sequence.ledger.direction}d; leave "
            "--direction out."
        )
    return sequence
