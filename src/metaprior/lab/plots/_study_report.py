"""From the folder of a study to a folder of figures and tables."""

from collections.abc import Callable
from pathlib import Path

from matplotlib import rc_context

from metaprior.lab.plots._calibration_report import calibration_report
from metaprior.lab.plots._lifelong_report import lifelong_report
from metaprior.lab.plots._looks import PRINT_STYLE
from metaprior.lab.plots._offline_report import offline_report
from metaprior.lab.plots._report import StudyReport, write_report
from metaprior.lab.plots._search_report import search_report
from metaprior.lab.plots._supervised_report import supervised_report
from metaprior.lab.studies import StudyResults, read_results

REPORTS: dict[str, Callable[[StudyResults], StudyReport]] = {
    "offline": offline_report,
    "lifelong": lifelong_report,
    "supervised": supervised_report,
    "calibration": calibration_report,
    "search": search_report,
}


def study_report(folder: str | Path) -> list[Path]:
    """Draw the figures and write the tables of the study in `folder` into `folder/report`.

    A study that is not finished is reported as far as it is.
    """
    return report_results(read_results(folder), Path(folder) / "report")


def report_results(results: StudyResults, out: Path) -> list[Path]:
    """Draw the figures and write the tables of a study into `out`.

    Figures are written as PNG and SVG, tables as Markdown and LaTeX, all numbers as
    `summary.json`; returns the paths of all files. The same records give the same tables, byte for
    byte.
    """
    if results.kind not in REPORTS:
        raise ValueError(
            f"The study in {results.folder} is of the kind {results.kind!r}, which has no report; "
            f"there are reports of {', '.join(REPORTS)}."
        )
    with rc_context(PRINT_STYLE):
        report = REPORTS[results.kind](results)
        header = {"kind": results.kind, "specification": results.specification}
        return write_report(report._replace(summary=header | report.summary), out)
