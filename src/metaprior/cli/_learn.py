"""`metaprior learn`: checks where to write, reads past runs, learns, saves, and prints."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from metaprior.belief import Prior
from metaprior.cli._budget import budget_of
from metaprior.cli._errors import INTERRUPTED
from metaprior.cli._learn_progress import LearnBar
from metaprior.cli._learn_report import print_learned, print_read
from metaprior.cli._past_runs import PastRuns, Wanted, past_runs
from metaprior.findings import NOTHING_MEASURED, Findings
from metaprior.learning import learn
from metaprior.store import ARRAYS, CARD, DESCRIPTION, REPORT

PRIOR_FILES = {ARRAYS, CARD, DESCRIPTION, REPORT}


def run_learn(
    sources: list[str],
    out: Path,
    *,
    wanted: Wanted,
    seed: int,
    budget: str,
    force: bool,
    as_json: bool,
) -> int:
    """Learn a prior from the runs in `sources` and save it in `out`; the exit code.

    Whether `out` can be written is checked before learning.
    """
    effort = budget_of(budget)
    check_folder(out, force=force)
    with Console(stderr=True).status("Reading past runs"):  # shown on a terminal only
        past = past_runs(sources, wanted)
    console = Console()
    if not as_json:
        print_read(past, console)
    with LearnBar(Console(stderr=True)) as progress:
        prior = learn(past.tasks, budget=effort, seed=seed, on_progress=progress)
    findings = prior.findings or NOTHING_MEASURED
    with _undisturbed():
        prior.save(out)
    if as_json:
        print(json.dumps(_as_json(prior, findings, past, out), indent=2))
    else:
        print_learned(findings, out, console)
    return INTERRUPTED if findings.interrupted else 0


def check_folder(out: Path, *, force: bool) -> None:
    """Make sure that a prior can be saved in `out`; replacing one needs `force`."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"Cannot save a prior to {out}: it is a file; name a folder with --out.")
    if out.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise ValueError(
            f"Cannot save a prior to {out}: saving replaces the folder, and you are in it; name "
            "another one with --out."
        )
    held = {path.name for path in out.iterdir()} if out.is_dir() else set()
    foreign = sorted(held - PRIOR_FILES)
    if foreign or (held and DESCRIPTION not in held):
        raise ValueError(
            f"Cannot save a prior to {out}: it holds {(foreign or sorted(held))[0]!r}, which is "
            "not part of a prior; name a new or an empty folder with --out."
        )
    if held and not force:
        raise ValueError(
            f"There is a prior in {out} already; name another folder with --out, or replace it "
            "with --force."
        )
    # Saving writes a new folder beside the old one, so the parent must be writeable.
    parent = next(each for each in out.absolute().parents if each.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(
            f"Cannot save a prior to {out}: {parent} cannot be written to; name another folder "
            "with --out."
        )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C, so that it cannot end the process between two files."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _as_json(prior: Prior, findings: Findings, past: PastRuns, out: Path) -> dict[str, Any]:
    return {
        "prior": str(out),
        "runs": {
            **past.details,
            "names": past.names,
            "points": [int(length) for length in past.tasks.lengths],
            "direction": past.tasks.direction,
            "notes": past.notes,
        },
        "space": {**prior.space.to_json(), "inferred": past.inferred},
        "features": prior.features.to_json(),
        "findings": findings.to_json(),
    }
