"""`metaprior report`: writes the page on a saved prior."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from metaprior.cli._features import features_from
from metaprior.cli._terminal import say
from metaprior.findings import NOTHING_MEASURED, Findings, HeldOutScores, Replay
from metaprior.report import write_report
from metaprior.store import REPORT, load


def run_report(folder: Path, out: Path | None, features: Sequence[str], *, as_json: bool) -> None:
    """Write the report on the prior in `folder`; print the verdict and where the report is.

    - `features`: features of the task, each as `NAME=VALUE`.
    """
    prior = load(folder)
    if features:
        prior = prior.for_task(features_from(features))
    findings = prior.findings or NOTHING_MEASURED
    path = write_report(prior, folder / REPORT if out is None else out)
    if as_json:
        typer.echo(json.dumps(summary(findings, path), indent=2, allow_nan=False))
    else:
        say(findings.verdict)
        say(f"Report: {path}")


def summary(findings: Findings, path: Path) -> dict[str, Any]:
    """The numbers at the top of the page, as JSON; `null` where nothing was measured."""
    held_out, replay = findings.held_out or HeldOutScores(), findings.replay or Replay()
    learned, baseline = held_out.learned, held_out.baseline
    return {
        "report": str(path),
        "verdict": findings.verdict,
        "baseline": findings.baseline,
        "saved_evaluations": replay.saved_evaluations,
        "saved_interval": replay.saved_interval,
        "calibration_error": learned.calibration_error,
        "calibration_interval": learned.calibration_interval,
        "baseline_calibration_error": baseline.calibration_error,
        "log_likelihood": learned.log_likelihood,
        "baseline_log_likelihood": baseline.log_likelihood,
        "outliers": [task.label for task in findings.tasks if task.outlier],
        "notes": list(findings.remarks),
    }
