"""The table of a host's studies that were read: each of them, or groups where there are many."""

from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from metaprior.adapters import StudyUse
from metaprior.words import listed, visible

# With more studies than this, one row stands for all that were used or skipped for one reason.
MOST_ROWS = 20


def studies_table(studies: Sequence[StudyUse]) -> Table:
    """Studies, the trials used of them and those left out, and why studies were skipped."""
    grouped = len(studies) > MOST_ROWS
    table = Table(title="Studies", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("studies" if grouped else "study", overflow="fold")
    table.add_column("trials", justify="right")
    table.add_column("trials left out")
    table.add_column("used")
    for name, trials, left_out, used in _grouped(studies) if grouped else map(_row, studies):
        # Names are the user's own, and may look like markup.
        table.add_row(Text(visible(name)), str(trials), left_out, Text(visible(used)))
    if grouped:
        table.caption = "Every single study is listed with --json."
        table.caption_justify = "left"
    return table


def _row(study: StudyUse) -> tuple[str, int, str, str]:
    return study.name, study.trials, _counts(study.left_out), _verdict(study)


def _grouped(studies: Sequence[StudyUse]) -> list[tuple[str, int, str, str]]:
    groups: dict[str, list[StudyUse]] = {}
    # Those that were used come first.
    for study in sorted(studies, key=lambda study: not study.used):
        groups.setdefault(_verdict(study), []).append(study)
    rows = []
    for verdict, members in groups.items():
        left_out = sum((Counter(study.left_out) for study in members), Counter())
        names = f"{len(members)}: {listed([study.name for study in members])}"
        rows.append((names, sum(study.trials for study in members), _counts(left_out), verdict))
    return rows


def _verdict(study: StudyUse) -> str:
    return "yes" if study.used else f"no: {study.reason}"


def _counts(left_out: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in left_out.items())
