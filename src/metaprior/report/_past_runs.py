"""The past runs: how well each was predicted from the others, which to check, which look alike."""

from collections.abc import Sequence

import numpy as np

from metaprior.findings import Findings, PastTask
from metaprior.report._definitions import linked
from metaprior.report._html import Html, element, joined, name, paragraph, table
from metaprior.report._relations import Likeness, matrix
from metaprior.words import MISSING, counted, cut, fixed, listed

MOST_TASKS = 50
LONGEST_LABEL = 60


def findings_on_runs(tasks: Sequence[PastTask]) -> list[Html]:
    """Which runs to check, and why."""
    odd = [task for task in tasks if task.outlier]
    if not odd:
        return [paragraph("No run stands out from the others.")]
    labels = listed([cut(task.label, LONGEST_LABEL) for task in odd])
    one = len(odd) == 1
    head = joined([name(labels), " does" if one else " do", " not fit the others: "])
    said = (
        f"predicted from the other runs, {'its' if one else 'their'} log-likelihood is "
        f"{', '.join(fixed(task.log_likelihood, 2) for task in odd[:3])}"
        f"{_typical(tasks)}. "
    )
    it, is_right = ("it", "the run is") if one else ("them", "the runs are")
    advice = (
        f" {it}: a mixed-up column, another unit, a changed setup or a machine that failed look "
        f"like this. Correct what is wrong and learn again; if {is_right} right, keep {it}: new "
        "tasks may be like that, too."
    )
    return [paragraph(head, said), paragraph(linked("outlier", "Check"), advice)]


def _typical(tasks: Sequence[PastTask]) -> str:
    known = [task.log_likelihood for task in tasks if task.log_likelihood is not None]
    return f" where the median run has {fixed(float(np.median(known)), 2)}" if known else ""


def past_runs(findings: Findings, likeness: Likeness | None) -> Html:
    """The table of runs, those to check first, and the matrix of which look alike."""
    outliers = frozenset(task.label for task in findings.tasks if task.outlier)
    parts = [_table(findings)] if findings.tasks else []
    if likeness is not None:
        parts.append(matrix(likeness, outliers))
    return element("div", *parts, class_="runs" if len(parts) > 1 else None)


def _table(findings: Findings) -> Html:
    tasks = findings.tasks
    shown = sorted(tasks, key=lambda task: not task.outlier)[:MOST_TASKS]
    most = max((abs(gain) for task in shown if (gain := _gain(task)) is not None), default=0.0)
    rows = [
        (
            joined([name(cut(task.label, LONGEST_LABEL)), *([_badge()] if task.outlier else [])]),
            MISSING if task.points is None else str(task.points),
            fixed(task.log_likelihood, 2),
            fixed(task.baseline_log_likelihood, 2),
            _bar(_gain(task), most),
        )
        for task in shown
    ]
    left = len(tasks) - len(shown)
    more = (
        f" {counted(left, 'more run')} {'is' if left == 1 else 'are'} not listed." if left else ""
    )
    baseline = findings.baseline[:1].upper() + findings.baseline[1:]
    header = ("Run", "Points", "Learned prior", baseline, "Gain")
    caption = (
        "Log-likelihood of each run, in nats per observation, under a prior that had not seen it, "
        f"and the gain over the {findings.baseline}.{more}"
    )
    return table(caption, header, rows, class_="figured")


def _gain(task: PastTask) -> float | None:
    ours, theirs = task.log_likelihood, task.baseline_log_likelihood
    return None if ours is None or theirs is None else ours - theirs


def _bar(gain: float | None, most: float) -> Html:
    """A bar from the middle: to the right where the learned prior is better."""
    if gain is None:
        return Html(MISSING)
    width = 50.0 * abs(gain) / most if most else 0.0
    side = "left" if gain >= 0 else "right"
    kind = "better" if gain >= 0 else "worse"
    bar = element("span", class_=kind, style=f"{side}: 50%; width: {width:.1f}%")
    return joined([element("span", bar, class_="gain"), f" {fixed(gain, 2)}"])


def _badge() -> Html:
    return joined([" ", element("strong", "check it", class_="badge")])
