"""The results page: one screen of answers, then everything else."""

from pathlib import Path
from typing import Any

from benchmarks.results import _tables as tables
from benchmarks.results._answers import TUNED, answers, findings
from benchmarks.results._checks import stuck
from benchmarks.results._kept import Kept, read_kept
from benchmarks.results._pieces import BY_PAPER, CHOSEN, GPU
from benchmarks.results._run import read_log
from benchmarks.results._samples import at_step, cumulative, plain, pooled_error, value_of
from benchmarks.results._statistics import DataFrame, against_others
from metaprior.lab.plots import (
    CALIBRATION_ERROR,
    LOG_LIKELIHOOD,
    Cell,
    in_order,
    looks_of,
    title_of,
)

STEPS, INFERENCE_STEPS, RUNS = (1, 5, 20, 50, 100), (20, 100), (1, 2, 5, 10)
MOMENTS = (5, 20, 100)
TARGET_MINUTES, PAPER_CPU_HOURS = 30, 192_428
# Written by hand after a run: why an entrant does not lead where it does not, and what was cut.
NOTES = "notes.md"

INTERVALS = """\
Numbers are means ± half of the 95 % interval (Student's). On the simulated families every seed
and task is another function, and the interval is over all of them. A table has few test datasets,
which recur in every seed: there, seeds are averaged within a dataset, and the interval is over
datasets. In the lifelong study the interval is over sequences; on a table these are other orders of
the same datasets. **Bold** is the best mean and
whatever cannot be told from it: the 95 % interval of the difference, paired by seed and task,
contains zero. An entrant with fewer seeds is compared with others on these, and is never the best
itself. A wide interval makes a tie, not an equal. Intervals are not corrected for the number of
comparisons."""

SUPERVISED = """\
In italics what the paper prints (its appendix, tables of test log-likelihood and calibration
error; it does not say what its ± is). The tables of the captions are of uniform points, its text
speaks of points collected by GP-UCB: both are here. Log-likelihoods are per point, in the units
of the values: the paper's −3.0 for a fixed GP on Branin is far below what no model at all gets in
standardised units (−1.4) and far above it in these (−5). GLMNET, RPart and XGBoost are tables
made anew, so those columns are not comparable number by number. The calibration error of few
points is large even for a perfect model: with ten points of a task it is 0.12 on average, more
than most of what the paper prints; so the errors of all points of a seed together are shown as
well."""


def page(records: Path, images: str) -> str:
    """The whole page in Markdown; `images` is where its figures are, seen from the page."""
    kept, log = read_kept(records), read_log(records)
    notes = records / NOTES
    first = [
        "# Results\n\n" + _opening(log),
        "## Answers\n\n"
        + answers(kept)
        + "\n"
        + (_figure(images, "offline-simple-regret") if len(kept.offline) else "")
        + _bullets(findings(kept)),
        *([notes.read_text()] if notes.is_file() else []),
    ]
    parts = [*first, "## Reading the tables\n\n" + INTERVALS, _what_was_run(log)]
    if len(kept.offline):
        parts += _offline(kept, images)
    if len(kept.lifelong):
        parts.append(_lifelong(kept.lifelong, images))
    if len(kept.calibration):
        parts.append(_calibration(kept.calibration, images))
    if len(kept.supervised):
        parts.append(_supervised(kept.supervised))
    if (records / CHOSEN).is_dir():
        parts.append(_configurations(records))
    return "\n".join(part.rstrip() + "\n" for part in parts)


def minutes(log: list[dict[str, Any]], device: str) -> float:
    """Wall time of all calls on GPUs, or on CPUs."""
    return sum(entry["seconds"] for entry in log if entry["device"] == device) / 60


def _opening(log: list[dict[str, Any]]) -> str:
    when = log[-1]["date"] if log else "an unknown month"
    machines = dict.fromkeys(entry["machine"] for entry in log if entry["device"] == GPU)
    return (
        "The paper's studies, whole: every entrant that has something to choose is tuned by the "
        "same search, and `learn` has its default arguments. Seven environments, 25 seeds, 10 "
        "tasks and 100 steps offline; ten runs of 20 steps and 25 sequences, lifelong. The pieces "
        "on a GPU took "
        f"{minutes(log, GPU):.1f} minutes of {', '.join(machines) or 'no GPU'} (target: "
        f"{TARGET_MINUTES}), those of `learn` {minutes(log, 'cpu'):.1f} minutes of CPU cores. The "
        f"paper's experiments took {PAPER_CPU_HOURS:,} CPU-hours; that number counts all of its "
        f"authors' sweeps. Run in {when}; [how](paper/studies.md#the-full-study). This page is "
        "written from the records in the repository, without a GPU:\n\n```console\n"
        "python -m benchmarks.results page --out docs/results.md\n"
        "python tools/wrap_docs.py docs/results.md\n```\n"
    )


def _what_was_run(log: list[dict[str, Any]]) -> str:
    rows: list[list[Cell]] = [
        [entry["piece"], f"{entry['seconds']} s", entry["device"], _ended(entry)] for entry in log
    ]
    commands = "\n".join(dict.fromkeys(entry["command"] for entry in log))
    software = ", ".join(dict.fromkeys(entry["software"] for entry in log))
    return f"## What was run\n\n{software}.\n\n```console\n{commands}\n```\n\n" + tables.markdown(
        ["piece", "wall time", "on", ""], rows
    )


def _ended(entry: dict[str, Any]) -> str:
    return "finished" if entry["finished"] else "not finished in this call"


def _offline(kept: Kept, images: str) -> list[str]:
    offline, steps = kept.offline, set(kept.offline["step"])
    parts = ["## Offline: simple regret\n"]
    for title, group in tables.environments_of(offline).items():
        columns = {
            f"t = {step}": value_of(group[group["step"] == step], "simple_regret")
            for step in STEPS
            if step in set(group["step"])
        }
        parts.append(f"### {title}\n\n{tables.by_method(columns, 'lower')}")
    parts.append(
        f"## Offline: inference regret\n\n{_figure(images, 'offline-inference-regret')}"
        + "\n".join(
            f"At t = {step}:\n\n"
            + tables.by_environment(at_step(offline, step, "inference_regret"), "lower")
            for step in INFERENCE_STEPS
            if step in steps
        )
    )
    moments = {
        f"t = {step}": against_others(
            plain(at_step(offline, step, "simple_regret")), TUNED, "lower"
        )
        for step in MOMENTS
        if step in steps
    }
    if any(moments.values()):
        parts.append(
            f"## {tables.label_of(TUNED)} against each method\n\nBy simple regret.\n\n"
            + tables.verdicts(moments)
        )
    parts.append(_stuck(offline))
    return parts


def _stuck(offline: DataFrame) -> str:
    shares = stuck(offline)
    if shares.empty:
        return ""
    names = in_order(shares.index.get_level_values("environment"))
    rows: list[list[Cell]] = [
        [
            tables.label_of(method),
            *(
                f"{100 * shares[method, name]:.1f} %" if (method, name) in shares else "–"
                for name in names
            ),
        ]
        for method in looks_of(shares.index.get_level_values("method"))
    ]
    return (
        "## Runs that end badly and no longer move\n\nRuns whose regret does not change in the "
        "second half although it is above 1 % of what random search has at first.\n\n"
        + tables.markdown(["", *(title_of(name) for name in names)], rows)
    )


def _lifelong(lifelong: DataFrame, images: str) -> str:
    parts = [
        f"## Lifelong\n\n{_figure(images, 'lifelong-end-of-run-regret')}"
        "Simple regret at the end of a run:\n"
    ]
    for title, group in tables.environments_of(lifelong).items():
        columns = {
            f"run {run}": value_of(group[group["run"] == run], "simple_regret")
            for run in RUNS
            if run in set(group["run"])
        }
        parts.append(f"### {title}, lifelong\n\n{tables.by_method(columns, 'lower')}")
    parts.append("### Cumulative inference regret\n\nThe sum over all steps of all runs.\n")
    parts.append(tables.by_environment(cumulative(lifelong), "lower"))
    return "\n".join(parts)


def _calibration(calibration: DataFrame, images: str) -> str:
    sizes = " and ".join(str(size) for size in sorted(calibration["context"].unique()))
    parts = [
        f"## Calibration\n\n{_figure(images, 'calibration')}Mean over contexts of {sizes} points. "
        "Random Mixture 1d was not searched: defaults.\n\nCalibration error, task by task:\n",
        tables.by_environment(value_of(calibration, "calibration_error"), "lower"),
        "Log-likelihood:\n",
        tables.by_environment(value_of(calibration, "log_likelihood"), "higher"),
    ]
    return "\n".join(parts)


def _supervised(supervised: DataFrame) -> str:
    parts = [f"## Supervised, beside the paper\n\n{SUPERVISED}\n"]
    for reading, rows in supervised.groupby("reading"):
        likelihood = value_of(rows, "log_likelihood")
        error = value_of(rows, "calibration_error")
        standardised = value_of(rows, "log_likelihood_standardised")
        shown = {
            "log-likelihood": tables.beside_the_paper(likelihood, LOG_LIKELIHOOD, "higher"),
            "calibration error of a task": tables.beside_the_paper(
                error, CALIBRATION_ERROR, "lower"
            ),
            "calibration error of a seed": tables.beside_the_paper(
                pooled_error(rows), CALIBRATION_ERROR, "lower"
            ),
            "log-likelihood of standardised values": tables.by_environment(standardised, "higher"),
        }
        parts += [
            f"### {str(reading).capitalize()} points: {words}\n\n{table}"
            for words, table in shown.items()
        ]
    return "\n".join(parts)


def _configurations(records: Path) -> str:
    parts = [
        "## Configurations chosen\n\nThe work of each search, over all environments; every "
        "entrant is searched by the same rules.\n\n" + tables.effort(records / CHOSEN),
        "The settings that were searched, and the scores on validation tasks; `tied` is how many "
        "candidates could not be told from the best, of which the most robust is taken.\n\n"
        + tables.configurations(records / CHOSEN),
    ]
    if (records / BY_PAPER).is_dir():
        parts.append(
            "### By the paper's criterion\n\nFrom the same records: the last simple regret and the "
            "inference regret of the last steps alone.\n\n"
            + tables.configurations(records / BY_PAPER)
        )
    return "\n".join(parts)


def _figure(images: str, name: str) -> str:
    return f"![{name.replace('-', ' ')}]({images}/{name}.png)\n\n"


def _bullets(paragraphs: list[str]) -> str:
    return "".join(f"- {paragraph}\n" for paragraph in paragraphs)
