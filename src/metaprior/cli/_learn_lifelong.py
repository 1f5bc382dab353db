"""`metaprior learn --lifelong`: past runs begin a sequence, or join the one that there is."""

import json
from pathlib import Path
from shlex import quote

import typer
from rich.console import Console

from metaprior.cli._budget import budget_of
from metaprior.cli._errors import INTERRUPTED
from metaprior.cli._learn import learned_as_json
from metaprior.cli._learn_progress import LearnBar
from metaprior.cli._learn_report import print_learned, print_read
from metaprior.cli._past_runs import Wanted, past_runs
from metaprior.cli._terminal import say
from metaprior.findings import NOTHING_MEASURED
from metaprior.lifelong import FEWEST_RUNS, LEDGER, PriorSequence, Version, require_keepable


def run_learn_lifelong(
    sources: list[str], folder: Path, *, wanted: Wanted, seed: int, budget: str, as_json: bool
) -> None:
    """Add the runs in `sources` to the sequence in `folder`, and learn from all that it has.

    A sequence that exists gives its space and direction, where the options do not.
    """
    effort = budget_of(budget)
    if (folder / LEDGER).exists():
        known = PriorSequence(folder).ledger
        space = known.space if wanted.space_file is None else None
        direction = wanted.direction or known.direction
        fewest = 1 if known.finished else FEWEST_RUNS  # one run can join others
        wanted = wanted._replace(space=space, direction=direction, fewest=fewest)
    past = past_runs(sources, wanted)
    tasks = past.tasks
    require_keepable(tasks)  # before there is a sequence without runs
    sequence = PriorSequence.begin(
        folder, space=tasks.space, direction=tasks.direction, quantity=tasks.quantity
    )
    sequence.add(tasks)
    if not as_json:
        print_read(past, Console())
    try:
        with LearnBar(Console(stderr=True)) as progress:
            version = sequence.learn(budget=effort, seed=seed, on_progress=progress)
    except KeyboardInterrupt:
        say(
            f"Learning was interrupted, so there is no new version; the runs are in {folder}, and "
            "the same command learns from them.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    place = sequence.prior_folder(sequence.ledger.current or 1)
    if as_json:
        prior = sequence.prior
        answer = learned_as_json(prior, prior.findings or NOTHING_MEASURED, past, place)
        answer["version"] = None if version is None else version.to_json()
        print(json.dumps(answer, indent=2))
        return
    if version is not None and version.kept:
        print_learned(sequence.prior.findings or NOTHING_MEASURED, place, Console())
    say(_in_words(version, sequence))


def _in_words(version: Version | None, sequence: PriorSequence) -> str:
    if version is None:
        return "A version has been learned from all these runs already."
    fate = "in use" if version.kept else f"not kept: {version.reason}"
    return (
        f"Version {version.number} of {sequence.folder}, learned from {len(version.runs)} runs, is "
        f"{fate}. Next: metaprior suggest --lifelong {quote(str(sequence.folder))} --run NAME"
    )
