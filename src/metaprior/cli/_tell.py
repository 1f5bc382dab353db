"""`metaprior tell`: writes a value into the file of the run; `--finish` learns from the run."""

import json
from pathlib import Path
from typing import Any

import typer

from metaprior.cli._budget import budget_of
from metaprior.cli._errors import INTERRUPTED
from metaprior.cli._suggest import as_dict, in_words, require_one
from metaprior.lifelong import PriorSequence, Row, Version, tell
from metaprior.store import load


def run_tell(
    value: str | None,
    run: str,
    *,
    prior: Path | None,
    lifelong: Path | None,
    row: int | None,
    failed: bool,
    finish: bool,
    budget: str,
    seed: int,
    sure: bool,
    as_json: bool,
) -> None:
    """Write a value into the run, end the run, or both."""
    require_one(prior, lifelong)
    effort = budget_of(budget)
    telling = value is not None or failed
    if value is not None and failed:
        raise ValueError(f"Received the value {value} and --failed; give one of them.")
    if finish and lifelong is None:
        raise ValueError("--finish ends a run of a lifelong sequence; give --lifelong.")
    if not telling and not finish:
        raise ValueError("Give the value that was measured, or --failed.")
    if row is not None and not telling:
        raise ValueError(
            "--row says where a value goes; give the value that was measured, or --failed, or "
            "leave --row out."
        )
    sequence = None if lifelong is None else PriorSequence(lifelong)
    told = None
    if telling and sequence is not None:
        told = sequence.tell(run, value, row=row, sure=sure)
    elif telling:
        assert prior is not None
        told = tell(load(prior), run, value, row=row, sure=sure)
    if told is not None and not as_json:
        typer.echo(f"row {told.number}: {in_words(told.point)} -> {_outcome(told)}")
    answer: dict[str, Any] = {"told": None if told is None else _told(told)}
    if finish and sequence is not None:
        try:
            version = _finish(sequence, run, effort, seed)
        except KeyboardInterrupt:
            typer.echo(
                f"Learning was interrupted, so there is no new version; the run {run} is "
                "finished, and the next --finish learns from it.",
                err=True,
            )
            raise typer.Exit(INTERRUPTED) from None
        answer |= {"finished": run, "version": None if version is None else version.to_json()}
        if not as_json:
            typer.echo(_finished(run, version, sequence))
    if as_json:
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))


def _finish(sequence: PriorSequence, run: str, budget: str | float, seed: int) -> Version | None:
    """End the run and learn from it, with a progress bar."""
    # Imported here: a value is told without them, in a fraction of the time.
    from rich.console import Console

    from metaprior.cli._learn_progress import LearnBar

    with LearnBar(Console(stderr=True)) as progress:
        return sequence.finish(run, budget=budget, seed=seed, on_progress=progress)


def _finished(run: str, version: Version | None, sequence: PriorSequence) -> str:
    ledger = sequence.ledger
    if version is None and ledger.is_up_to_date:
        return f"The run {run} is finished. The prior has already learned from all finished runs."
    if version is None:
        return f"The run {run} is finished. Learning begins with the second finished run."
    if not version.kept:
        fate = f"not kept, version {ledger.current} stays"
    elif version.number != ledger.current:
        fate = f"not in use, since version {ledger.current} was restored during learning"
    else:
        fate = "in use from now on"
    return (
        f"The run {run} is finished. Version {version.number}, learned from {len(version.runs)} "
        f"runs: {fate}. {version.reason}"
    )


def _outcome(row: Row) -> str:
    return "failed" if row.is_failed else f"{row.value:g}"


def _told(row: Row) -> dict[str, Any]:
    return {**as_dict(row), "value": None if row.is_failed else row.value, "failed": row.is_failed}
