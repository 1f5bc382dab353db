"""One folder of Ray Tune: an experiment with a folder per trial.

| file | what it holds |
|---|---|
| `<trial>/params.json` | the configuration |
| `<trial>/result.json` | one JSON object per report, nested; `progress.csv` has the same, flat |
| `<trial>/error.txt` | why a trial failed |
| `experiment_state-<date>.json` | the status of every trial |
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.adapters.histories import flat
from metaprior.files import parse_json, read_file

PARAMS, RESULTS, PROGRESS = "params.json", "result.json", "progress.csv"
# What Ray itself reports beside the user's metrics.
OWN = {
    *("checkpoint_dir_name", "config", "date", "done", "episodes_total", "experiment_id"),
    *("experiment_tag", "hostname", "iterations_since_restore", "node_ip", "pid"),
    *("should_checkpoint", "time_since_restore", "time_this_iter_s", "time_total_s", "timestamp"),
    *("timesteps_since_restore", "timesteps_total", "training_iteration", "trial_id"),
    *("trial_log_path", "warmup_time"),
}
# As Ray joins the names of nested values.
SEPARATOR = "/"
_STATES = "experiment_state-*.json"


class RayTrial(NamedTuple):
    """A trial of Ray.

    - `reports`: what it reported, in order; nested values by their path.
    - `status`: `TERMINATED`, `ERROR`, ...; empty if it is not known.
    """

    name: str
    params: dict[str, Any]
    reports: list[dict[str, Any]]
    status: str


def is_experiment(path: Path) -> bool:
    """Whether a folder is that of an experiment."""
    return path.is_dir() and any(map(_is_trial, path.iterdir()))


def trials_in(experiment: Path) -> list[RayTrial]:
    """The trials of an experiment in the order in which they first reported."""
    status = _status_of_trials(experiment)
    found = [_trial(path, status) for path in sorted(filter(_is_trial, experiment.iterdir()))]
    return sorted(found, key=lambda trial: _began(trial.reports))


def _is_trial(path: Path) -> bool:
    return any((path / name).is_file() for name in (PARAMS, RESULTS, PROGRESS))


def _trial(path: Path, status: dict[str, str]) -> RayTrial:
    reports = list(_reports(path))
    last = reports[-1] if reports else {}
    config = _json(path / PARAMS) if (path / PARAMS).is_file() else last.get("config", {})
    if not isinstance(config, dict):
        raise ValueError(
            f"{path / PARAMS} holds no configuration; restore it, or remove its folder."
        )
    told = status.get(str(last.get("trial_id", "")), "")
    if not told and (path / "error.txt").is_file():
        told = "ERROR"
    return RayTrial(
        path.name,
        flat(config, SEPARATOR),
        [flat({n: v for n, v in r.items() if n != "config"}, SEPARATOR) for r in reports],
        told,
    )


def _reports(path: Path) -> Iterator[dict[str, Any]]:
    """The reports of a trial; the last line may be cut off where a process was killed."""
    results, progress = path / RESULTS, path / PROGRESS
    if results.is_file() and results.stat().st_size:
        lines = results.read_text(encoding="utf-8", errors="replace").splitlines()
        for i, line in enumerate(lines):
            try:
                report = parse_json(line.encode()) if line.strip() else None
            except ValueError:
                report = None if i == len(lines) - 1 else line
            if isinstance(report, dict):
                yield report
            elif report is not None:
                raise ValueError(
                    f"{results}, line {i + 1} is not a report of Ray Tune; restore the file, or "
                    "remove its folder."
                )
    elif progress.is_file():
        with open(progress, encoding="utf-8", errors="replace", newline="") as file:
            for row in csv.DictReader(file):
                yield {name: cell for name, cell in row.items() if name and cell}


def _status_of_trials(experiment: Path) -> dict[str, str]:
    """The status of trials by their ids, as far as the latest state of the experiment tells it."""
    states = sorted(experiment.glob(_STATES))
    if not states:
        return {}
    try:
        state = parse_json(read_file(states[-1]))
        # One text per trial; since Ray 2.5 a pair of them.
        entries = state.get("trial_data") or state.get("checkpoints") or []
        texts = [each if isinstance(each, str) else each[0] for each in entries]
        trials = [parse_json(text.encode()) for text in texts]
        return {str(trial["trial_id"]): str(trial["status"]) for trial in trials}
    except (ValueError, TypeError, AttributeError, LookupError):
        return {}  # of a version with another format: the trials' own files say enough


def _began(reports: list[dict[str, Any]]) -> float:
    try:
        return float(reports[0]["timestamp"])
    except (LookupError, TypeError, ValueError):
        return float("inf")


def _json(path: Path) -> Any:
    try:
        return parse_json(read_file(path))
    except ValueError as error:
        raise ValueError(
            f"{path} is not JSON ({error}); restore it, or remove its folder."
        ) from None
