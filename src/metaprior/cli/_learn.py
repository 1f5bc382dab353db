"""`metaprior learn`: checks where to write, reads past runs, learns, saves, and prints."""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from metaprior.belief import Prior, runs_held
from metaprior.cli._budget import budget_of
from metaprior.cli._errors import BAD_INPUT, INTERRUPTED
from metaprior.cli._learn_progress import LearnBar
from metaprior.cli._learn_report import print_learned, print_read
from metaprior.cli._past_runs import PastRuns, Wanted, past_runs
from metaprior.cli._place import check_place, save_somewhere
from metaprior.cli._terminal import say
from metaprior.findings import NOTHING_MEASURED, Findings
from metaprior.learning import learn
from metaprior.words import counted, visible


def run_learn(
    sources: list[str],
    out: Path,
    *,
    wanted: Wanted,
    seed: int,
    budget: str,
    force: bool,
    private: bool,
    examples: bool,
    as_json: bool,
) -> int:
    """Learn a prior from the runs in `sources` and save it in `out`; the exit code.

    Whether `out` can be written is checked before learning.

    - `private`: keep no point of a past run; `examples`: keep some with their values.
    """
    effort = budget_of(budget)
    before = check_place(out, force=force)
    with Console(stderr=True).status("Reading past runs"):  # shown on a terminal only
        past = past_runs(sources, wanted)
    console = Console()
    if not as_json:
        print_read(past, console)
    with LearnBar(Console(stderr=True)) as progress:
        prior = learn(past.tasks, budget=effort, seed=seed, private=private, on_progress=progress)
    if not examples and prior.findings is not None:
        prior = replace(prior, findings=prior.findings.without_examples())
    held = runs_held(prior.contents.arrays)
    findings = prior.findings or NOTHING_MEASURED
    with _undisturbed():
        place, problem = save_somewhere(prior, out, before=before)
    if as_json:
        print(json.dumps(learned_as_json(prior, findings, past, place), indent=2))
    else:
        print_learned(findings, place, console)
        if held and not examples:
            say(
                f"Note: the arrays hold the points of {counted(held, 'past run')}, which the prior "
                "is asked with; --private keeps none."
            )
    if problem is not None:
        Console(stderr=True, soft_wrap=True).print(
            visible(f"Error: {problem} The prior that was learned is in {place}."), markup=False
        )
        return BAD_INPUT
    return INTERRUPTED if findings.interrupted else 0


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


def learned_as_json(prior: Prior, findings: Findings, past: PastRuns, out: Path) -> dict[str, Any]:
    """What was read and learned, and where the prior is, for programs."""
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
