"""`metaprior status`: the status of a run, or the versions of a lifelong sequence."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from metaprior.cli._errors import needing_host
from metaprior.cli._hosts import OPTUNA
from metaprior.cli._suggest import as_dict, in_words, stopping_as_dict, stopping_in_words
from metaprior.cli._terminal import say
from metaprior.data import Quantity
from metaprior.lifelong import PriorSequence, RunStatus, Version, status
from metaprior.store import load


def run_status(
    storage: str | None,
    *,
    name: str | None,
    run: str | None,
    prior: Path | None,
    lifelong: Path | None,
    restore: int | None,
    as_json: bool,
) -> None:
    """Print the status of a run, of a sequence in a folder, or of one in an Optuna storage."""
    given = [each is not None for each in (storage, prior, lifelong)]
    if sum(given) != 1:
        raise ValueError(
            "Give one of: --prior with --run, --lifelong with or without --run, or optuna: and the "
            "address of a storage with --name."
        )
    if name is not None and storage is None:
        raise ValueError(
            "--name is about a sequence in an Optuna storage; give optuna: and the address of the "
            "storage, or leave it out."
        )
    if restore is not None and (prior is not None or run is not None):
        raise ValueError("--restore makes a version of a sequence current; leave out --run.")
    if storage is not None:
        _print_storage(storage, name, restore, as_json=as_json)
    elif lifelong is not None and run is None:
        sequence = PriorSequence(lifelong)
        if restore is not None:
            sequence.restore(restore)
        ledger = sequence.ledger
        _print_versions(ledger.versions, ledger.current, list(ledger.finished), as_json=as_json)
    elif run is None:
        raise ValueError("Give --run with the file of the run.")
    elif lifelong is not None:
        sequence = PriorSequence(lifelong)
        _print_run(sequence.status(run), sequence.ledger.quantity, as_json=as_json)
    else:
        assert prior is not None
        if not Path(run).exists():
            raise ValueError(f"There is no file {run}; begin the run with `metaprior suggest`.")
        known = load(prior)
        _print_run(status(known, run), known.quantity, as_json=as_json)


def _print_storage(storage: str, name: str | None, restore: int | None, *, as_json: bool) -> None:
    if not storage.startswith(OPTUNA):
        # Not shown: it may hold a password.
        raise ValueError(
            f"The storage does not begin with {OPTUNA}; write it as optuna:sqlite:///past.db."
        )
    if name is None:
        raise ValueError("Give --name with the name of the lifelong sequence in the storage.")
    with needing_host():
        from metaprior.adapters import optuna
    address = storage.removeprefix(OPTUNA)
    if restore is not None:
        optuna.restore(address, name, restore)
    found = optuna.versions_in(address, name)
    _print_versions(found.versions, found.current, found.studies, as_json=as_json)


def _print_run(found: RunStatus, quantity: Quantity, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_as_json(found), indent=2, allow_nan=False))
        return
    if found.best is None:
        say("No value yet.")
    else:
        best = quantity.with_unit(f"{found.best.value:g}")
        say(f"Best so far: {best} at {in_words(found.best.x)}")
    say(f"Points: {found.observed} observed, {found.failed} failed, {len(found.pending)} pending")
    for row in found.pending:
        say(f"  row {row.number} waits for a value: {in_words(row.point)}")
    if found.trust is not None:
        say(f"Trust in past runs: {found.trust:.2f} (the weight of what was learned from them)")
    if found.stopping is not None:
        say(stopping_in_words(found.stopping, quantity))


def _as_json(found: RunStatus) -> dict[str, Any]:
    best = found.best
    return {
        "best": None if best is None else {"point": best.x, "value": best.value},
        "observed": found.observed,
        "failed": found.failed,
        "pending": [as_dict(row) for row in found.pending],
        "trust": found.trust,
        "stopping": stopping_as_dict(found.stopping),
    }


def _print_versions(
    versions: Sequence[Version], current: int | None, runs: list[str], *, as_json: bool
) -> None:
    if as_json:
        listed = [version.to_json() for version in versions]
        data = {"current": current, "finished": runs, "versions": listed}
        typer.echo(json.dumps(data, indent=2, allow_nan=False))
        return
    say(f"Finished runs: {len(runs)}")
    if not versions:
        say("No version yet: learning begins with the second finished run.")
        return
    for version in versions:
        say(_in_words(version, current))


def _in_words(version: Version, current: int | None) -> str:
    state = "in use" if version.number == current else "kept" if version.kept else "not kept"
    score = "none" if version.score is None else f"{version.score:.3f}"
    made = version.made[:16].replace("T", " ")
    return (
        f"version {version.number} ({state}): {len(version.runs)} runs, held-out score {score}, "
        f"{made} UTC\n  {version.reason}"
    )
