"""A report: figures, tables and numbers under names, and the files they become."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from metaprior.lab.plots._tables import Estimate, ResultTable, latex, markdown
from metaprior.lab.studies import StudyResults

DOTS_PER_INCH = 200


class StudyReport(NamedTuple):
    """What a study found: figures and lists of tables by file name, and numbers for programs.

    The summary may hold estimates and other named tuples, and numbers that are not finite.
    """

    figures: dict[str, Figure]
    tables: dict[str, list[ResultTable]]
    summary: dict[str, Any]


def require_columns(results: StudyResults, needed: set[str]) -> None:
    """An error that names the columns without which there is nothing to report."""
    there = set(results.records.columns)
    if lacking := sorted({"environment", "method", *needed} - there):
        raise ValueError(
            f"The records of this {results.kind} study lack the columns {', '.join(lacking)} (they "
            f"have {', '.join(sorted(there))}); run the study again with this version of metaprior."
        )


def write_report(report: StudyReport, folder: Path) -> list[Path]:
    """Write PNG and SVG, Markdown and LaTeX, and `summary.json`; the paths that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in report.figures.items():
        # Without dates, so that the same records give the same files.
        for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            paths.append(folder / f"{name}.{suffix}")
            figure.savefig(paths[-1], dpi=DOTS_PER_INCH, metadata=metadata)
            figure.set_layout_engine("none")  # found once, kept for the next file
    for name, tables in report.tables.items():
        for suffix, written in (("md", markdown), ("tex", latex)):
            paths.append(folder / f"{name}.{suffix}")
            text = "\n".join(written(table) for table in tables)
            paths[-1].write_text(text, encoding="utf-8")
    paths.append(folder / "summary.json")
    text = json.dumps(as_json(report.summary), indent=2, allow_nan=False, ensure_ascii=False)
    paths[-1].write_text(text + "\n", encoding="utf-8")
    return paths


def as_json(value: Any) -> Any:
    """`value` with what JSON does not have put in what it has.

    Named tuples become objects, an estimate's half-width says of which interval it is half, and
    numbers that are not finite become null.
    """
    if isinstance(value, Estimate):
        mean, half_width, count = value
        return as_json({"mean": mean, "half_width_95": half_width, "count": count})
    if hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
