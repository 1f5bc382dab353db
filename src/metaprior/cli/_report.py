"""`metaprior report`: from a saved prior to a page."""

import json
from pathlib import Path
from typing import Any

import typer

from metaprior.report import Findings, read_findings, write_report
from metaprior.store import REPORT, load


def run_report(folder: Path, out: Path | None, *, as_json: bool) -> None:
    """Write the report of the prior in `folder`; print where it is and what it says first."""
    prior = load(folder)
    findings = read_findings(prior.findings)
    path = write_report(prior, folder / REPORT if out is None else out)
    if as_json:
        typer.echo(json.dumps(summary(findings, path), indent=2, allow_nan=False))
    else:
        typer.echo(findings.verdict)
        typer.echo(f"Report: {path}")


def summary(findings: Findings, path: Path) -> dict[str, Any]:
    """The numbers at the head of the page, for programs; `null` where nothing was measured."""
    held_out, replay = findings.held_out, findings.replay
    return {
        "report": str(path),
        "verdict": findings.verdict,
        "saved_evaluations": replay.saved_evaluations if replay else None,
        "saved_interval": list(replay.saved_interval) if replay and replay.saved_interval else None,
        "calibration_error": held_out.learned.calibration_error if held_out else None,
        "vanilla_calibration_error": held_out.vanilla.calibration_error if held_out else None,
        "log_likelihood": held_out.learned.log_likelihood if held_out else None,
        "vanilla_log_likelihood": held_out.vanilla.log_likelihood if held_out else None,
        "outliers": [task.name for task in findings.tasks if task.is_outlier],
        "notes": list(findings.notes),
    }
