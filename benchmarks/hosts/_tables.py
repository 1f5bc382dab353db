"""Tables of the page: means over priors, and paired differences with intervals."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.hosts._measures import STEPS
from metaprior.metrics import mean_and_interval

# Runs by method, prior (its seed) and task.
Runs = dict[str, dict[int, dict[str, dict[str, Any]]]]


class Difference(NamedTuple):
    """How much more regret one method has than another after `t` trials, on the same tasks of the
    same priors.

    - `half`: half the width of the 95 % interval, infinite for one prior.
    """

    mean: float
    half: float
    priors: int


def runs_of(records: Iterable[dict[str, Any]], family: str, past: int) -> Runs:
    """The runs on a family; of methods that know nothing of the past, whatever its size."""
    found: Runs = defaultdict(dict)
    for record in records:
        if record["family"] == family and record["past"] in (past, None):
            tasks = {run["task"]: run for run in record["runs"]}
            found[record["method"]][record["seed"]] = tasks
    return dict(found)


def difference(runs: Runs, method: str, baseline: str, t: int) -> Difference | None:
    """Regret of a method minus that of the baseline; `None` if they share no run of `t` trials."""
    ours, theirs = runs.get(method, {}), runs.get(baseline, {})
    means = []
    for seed in ours.keys() & theirs.keys():
        pairs = [
            (ours[seed][task]["regret"], theirs[seed][task]["regret"])
            for task in ours[seed].keys() & theirs[seed].keys()
        ]
        gaps = [a[t - 1] - b[t - 1] for a, b in pairs if min(len(a), len(b)) >= t]
        if gaps:
            means.append(float(np.mean(gaps)))
    if not means:
        return None
    mean, half = mean_and_interval(sorted(means))
    return Difference(float(mean), float(half), len(means))


def means(runs: Runs, methods: Iterable[str]) -> str:
    """A row per method: regret and time, means over priors of means over tasks."""
    header = ["method", "priors", "runs", *(f"t={t}" for t in STEPS), "CPU s per trial"]
    rows = []
    for name in methods:
        if name in runs:
            every = [list(tasks.values()) for tasks in runs[name].values()]
            seconds = [np.mean(np.concatenate([r["seconds"] for r in own])) for own in every]
            cells = [_mean_at(every, t) for t in STEPS]
            count = sum(map(len, every))
            rows.append([name, f"{len(every)}", f"{count}", *cells, f"{np.mean(seconds):.2g}"])
    return table(header, rows)


def differences(runs: Runs, methods: Iterable[str], baseline: str) -> str:
    """A row per method: by how much its regret is above the baseline's."""
    rows = []
    for name in methods:
        found = [difference(runs, name, baseline, t) for t in STEPS]
        if name != baseline and any(found):
            rows.append([name, *("–" if each is None else shown(each) for each in found)])
    return table([f"minus {baseline}", *(f"t={t}" for t in STEPS)], rows) if rows else ""


def shown(found: Difference) -> str:
    """`+0.123 ± 0.045`; the mean alone if there is one prior."""
    spread = f" ± {found.half:.3f}" if found.priors > 1 else " (one prior)"
    return f"{found.mean:+.3f}{spread}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    rule = "|---" * len(header) + "|"
    lines = [f"| {' | '.join(header)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _mean_at(every: list[list[dict[str, Any]]], t: int) -> str:
    reached = [[r["regret"][t - 1] for r in own if len(r["regret"]) >= t] for own in every]
    priors = [np.mean(own) for own in reached if own]
    return f"{np.mean(priors):.3f}" if priors else "–"
