"""What `metaprior study` does: specify, run what has not finished, summarise, draw."""

import importlib.util
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
from rich import box
from rich.console import Console
from rich.table import Table as Grid

from metaprior.cli._study_progress import StudyProgress, title
from metaprior.lab.studies import (
    CONFIGURATIONS,
    CRITERIA,
    DataFrame,
    JobsReport,
    holds_study,
    plan,
    read_records,
    read_study,
    run_jobs,
    specification_of,
    start_study,
    summary,
    write_configurations,
)

# Seeds, or configurations, side by side on an accelerator: a few tens of gigabytes at most.
CHUNK = 64


def run_study(
    kind: str,
    out: Path,
    fields: dict[str, Any],
    *,
    preset: str,
    file: Path | None,
    configurations: Path | None,
    workers: int,
    dask: str | None,
    as_json: bool,
) -> int:
    """Run or resume the study in `out`; the exit code is 1 if jobs failed."""
    console = Console(stderr=True)
    with _inherited(workers):
        specification = specification_of(
            kind, preset=preset, file=file, configurations=configurations, cuts=_cuts(out), **fields
        )
        start_study(out, specification)
        if configurations is not None:
            _say_defaults(specification, configurations, console)
        jobs = plan(specification)
        with _spoken(console), StudyProgress(console) as progress:
            report = run_jobs(jobs, out, workers=workers, dask=dask, on_progress=progress)
    for job, reason in report.failures:
        _say(console, f"Failed: {title(job)}: {reason}")
    found: dict[str, Any] = {"study": kind, "folder": str(out), **_counts(report)}
    if report.done + report.skipped:
        with _spoken(console):
            records = read_records(out, jobs=jobs)
        found["summary"] = summary(specification, records)
        found["written"] = []
        if kind == "search":
            found["written"] += _write_choices(out, specification, records, console)
        with _spoken(console):
            found["written"] += _drawn(out, console)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print(found, Console())
    return report.exit_code


def _write_choices(
    out: Path, specification: dict[str, Any], records: DataFrame, console: Console
) -> list[str]:
    """The configurations chosen by the search's criterion, and beside them those of the others."""
    paths = []
    for criterion in CRITERIA:
        asked = criterion == specification["criterion"]
        folder = out / (CONFIGURATIONS if asked else f"{CONFIGURATIONS}-by-{criterion}")
        written, without = write_configurations(folder, specification, records, criterion)
        paths += [str(path) for path in written]
        for sentence in without if asked else ():
            _say(console, sentence)
    return paths


def draw(folder: Path) -> list[Path]:
    """Write the figures and tables of a study from its records."""
    read_study(folder)  # a folder without a study is refused before anything is imported
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(
            "Figures are drawn with matplotlib, which is not installed; install it with "
            "`pip install 'metaprior[plots]'`."
        )
    from metaprior.lab.plots import study_report

    return study_report(folder)


def _cuts(out: Path) -> dict[str, Any]:
    """How seeds are divided into jobs: as in an existing study, or else as suits this machine.

    A CPU works on seeds one after another anyway, and small jobs lose less when killed.
    """
    if holds_study(out):
        return read_study(out)
    return {"block": 1} if jax.default_backend() == "cpu" else {"chunk": CHUNK}


def _drawn(out: Path, console: Console) -> list[str]:
    """Draw the figures; a failure to do so does not fail the study."""
    try:
        return [str(path) for path in draw(out)]
    except (ValueError, ImportError) as error:
        _say(console, f"No figures: {error} Then draw them with `metaprior study plot {out}`.")
        return []


def _say_defaults(specification: dict[str, Any], folder: Path, console: Console) -> None:
    """Name the methods whose settings were not searched."""
    for entrant in specification["entrants"]:
        if entrant["settings"] and entrant["configuration"] == "default":
            where = f"{entrant['method']} on {entrant['environment']}"
            _say(console, f"Note: {folder} has no configuration of {where}; it has its defaults.")


@contextmanager
def _inherited(workers: int) -> Iterator[None]:
    """Processes started in this context know where compiled code is kept, and share an accelerator.

    JAX would take most of the accelerator's memory for the first of them, which may be this one, so
    it must not have been used before.
    """
    settings = {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false" if workers > 1 else None,
        "JAX_COMPILATION_CACHE_DIR": getattr(jax.config, "jax_compilation_cache_dir", None),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        "JAX_LOGGING_LEVEL": "CRITICAL",
    }
    added = {name: value for name, value in settings.items() if value and name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextmanager
def _spoken(console: Console) -> Iterator[None]:
    """Print each warning once, as a sentence, such as of a record that cannot be read."""
    said = set()

    def say(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            _say(console, f"Note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = say
        yield


def _counts(report: JobsReport) -> dict[str, Any]:
    failures = [
        {"job": job.name, "what": title(job), "reason": reason} for job, reason in report.failures
    ]
    return {"jobs_done": report.done, "jobs_skipped": report.skipped, "failures": failures}


def _print(found: dict[str, Any], console: Console) -> None:
    if "summary" not in found:
        return
    metrics = dict.fromkeys(
        name for row in found["summary"] for name in row if name not in ("environment", "method")
    )
    grid = Grid(box=box.SIMPLE_HEAD)
    for heading in ("environment", "method"):
        grid.add_column(heading)
    for metric in metrics:
        grid.add_column(metric.replace("_", " "), justify="right")
    for row in found["summary"]:
        cells = [_cell(row[metric]) if metric in row else "" for metric in metrics]
        grid.add_row(row["environment"], row["method"], *cells)
    console.print(grid)
    for path in found["written"]:
        _say(console, path)


def _cell(value: dict[str, Any]) -> str:
    half_width = value["half_width_95"]
    spread = "" if half_width is None else f" ± {half_width:.1g}"
    return f"{value['mean']:.3g}{spread}"


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
