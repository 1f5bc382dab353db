"""The results page: its sections, in order."""

import json
from pathlib import Path
from typing import Any

from benchmarks.results import _tables as tables
from benchmarks.results._explanation import explanation
from benchmarks.results._reading import moments, reading
from benchmarks.results._samples import (
    calibration_records,
    cumulative,
    lifelong_records,
    offline_records,
    supervised_records,
    value_of,
)
from benchmarks.results._statistics import DataFrame
from metaprior.lab.plots import CALIBRATION_ERROR, LOG_LIKELIHOOD, title_of
from metaprior.lab.studies import CONFIGURATIONS, read_configurations, read_study

STEPS, INFERENCE_STEPS, RUNS = (1, 5, 20, 50, 100), (20, 100), (1, 2, 5, 10)

INTERVALS = """\
Numbers are means ± half of the 95 % interval (Student's). On the simulated families every seed
and task is another function, and the interval is over all of them. A table has 12 test datasets
(15 to learn from), which recur in every seed: there, seeds are averaged within a dataset, and the
interval is over datasets. In the lifelong study the tasks depend on the sequence alone: seeds are
averaged within a sequence, and the interval is over the five sequences. **Bold** is the best mean
and whatever cannot be told from it: the 95 % interval of the difference, paired by seed and task,
contains zero. RWGP has 5 seeds instead of 25; it is compared with others on these five, and is
never the best itself. A wide interval makes a tie, not an equal. Bands in figures take all
repetitions as independent; what is below the lower end of an axis is drawn there."""

PAPER = """\
In italics what the paper prints (its appendix, tables of test log-likelihood and calibration
error; it does not say what its ± is). GLMNET, RPart and XGBoost are tables made anew with the
same learners on the same datasets, so those columns are not comparable number by number. For the
families of functions, the paper's captions speak of uniform samples and its text of points
collected by GP-UCB; ours are the latter, half of the points of each run given and the other half
predicted. Means of log-likelihoods are decided by the worst tasks."""


def page(studies: Path, images: str) -> str:
    """The whole page in Markdown; `images` is where its figures are, seen from the page."""
    run = json.loads((studies / "run.json").read_text())
    offline, calibration = offline_records(studies), calibration_records(studies)
    lifelong = lifelong_records(studies)
    why = explanation(studies, offline, calibration, lifelong)
    parts = [
        "# Results\n\n" + _opening(run),
        "## Reading the results\n\n"
        + INTERVALS
        + "\n\n"
        + _bullets(reading(offline, calibration, lifelong)),
        "## Why F-PACOH does not win where it does not\n\n" + _bullets(why),
        "## What was run\n\n" + _what_was_run(run, studies),
        "## Offline: simple regret\n\n"
        + _figure(images, "offline-simple-regret")
        + _offline(offline),
        "## Offline: inference regret\n\n"
        + _figure(images, "offline-inference-regret")
        + _inference(offline),
        "## F-PACOH-MAP against each method\n\nBy simple regret.\n\n"
        + tables.verdicts(moments(offline)),
        "## Lifelong\n\n" + _lifelong(lifelong, images),
        "## Calibration\n\n" + _calibration(calibration, images),
        "## Supervised, beside the paper\n\n" + _supervised(studies),
        "## Configurations chosen\n\n" + _configurations(studies),
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def minutes(run: dict[str, Any]) -> float:
    """Wall time of all pieces."""
    return sum(piece["seconds"] for piece in run["pieces"]) / 60


def _opening(run: dict[str, Any]) -> str:
    return (
        "The paper's studies, run once with every method tuned by the same search: six "
        "environments, 25 seeds, 10 tasks and 100 steps offline; ten runs of 20 steps, 5 "
        f"sequences and 5 seeds, lifelong. It took {minutes(run):.1f} minutes of "
        f"{run['machine'].split(' (')[0]} (target: {run['target_minutes']}). The paper's "
        f"experiments took {run['paper_cpu_hours']:,} CPU-hours; that number counts all of its "
        f"authors' sweeps. Run in {run['date']} with the commands below. This page is generated "
        "from the records:\n\n```console\npython -m "
        "benchmarks.results studies --out docs/results.md\npython tools/wrap_docs.py "
        "docs/results.md\n```\n\n[How well the methods predict]"
        "(methods-results.md) has the predictions of every method with default settings; they are "
        "kinder to F-PACOH, and the reasons are below.\n"
    )


def _what_was_run(run: dict[str, Any], studies: Path) -> str:
    rows: list[list[Any]] = [
        [piece["name"], f"{piece['seconds']} s", piece["note"]] for piece in run["pieces"]
    ]
    rows.append(
        ["**total**", f"**{minutes(run):.1f} min**", f"target: {run['target_minutes']} min"]
    )
    commands = "\n".join([*run["environment"], "", *run["commands"]])
    times = tables.markdown(["piece", "wall time", ""], rows)
    return (
        f"On {run['machine']}; {run['software']}.\n\n```console\n{commands}\n```\n\n{times}\n"
        f"Not counted: {run['not_counted']}.\n\nWhat did not fit and was cut:\n\n"
        + _bullets([*run["cuts"], *_half_searched(studies)])
    )


def _half_searched(studies: Path) -> list[str]:
    """Searches that have fewer configurations than their study asked for."""
    found = []
    for study in ("search", "search-rwgp"):
        folder = studies / study
        asked = read_study(folder)["draws"]
        for each in read_configurations(folder / CONFIGURATIONS):
            if (tried := each.searched["configurations"]) < asked:
                found.append(
                    f"{each.method} on {title_of(each.environment)} was searched over "
                    f"{tried} of {asked} configurations; the others ran out of memory."
                )
    return found


def _offline(offline: DataFrame) -> str:
    parts = []
    for title, group in tables.environments_of(offline).items():
        columns = {
            f"t = {step}": value_of(group[group["step"] == step], "simple_regret") for step in STEPS
        }
        parts.append(f"### {title}\n\n{tables.by_method(columns, 'lower')}")
    return "\n".join(parts)


def _inference(offline: DataFrame) -> str:
    parts = []
    for step in INFERENCE_STEPS:
        samples = value_of(offline[offline["step"] == step], "inference_regret")
        parts.append(f"At t = {step}:\n\n{tables.by_environment(samples, 'lower')}")
    return "\n".join(parts)


def _lifelong(lifelong: DataFrame, images: str) -> str:
    ends = lifelong[lifelong["step"] == lifelong["step"].max()]
    parts = [_figure(images, "lifelong-end-of-run-regret") + "Simple regret at the end of a run:\n"]
    for title, group in tables.environments_of(ends).items():
        columns = {
            f"run {run}": value_of(group[group["run"] == run], "simple_regret") for run in RUNS
        }
        parts.append(f"### {title}, lifelong\n\n{tables.by_method(columns, 'lower')}")
    parts.append("### Cumulative inference regret\n\nThe sum over all steps of all ten runs.\n")
    parts.append(_figure(images, "lifelong-cumulative-inference-regret"))
    parts.append(tables.by_environment(cumulative(lifelong), "lower"))
    return "\n".join(parts)


def _calibration(calibration: DataFrame, images: str) -> str:
    sizes = " and ".join(str(size) for size in sorted(calibration["context"].unique()))
    words = (
        f"Mean over contexts of {sizes} points. Random Mixture 1d was not searched: defaults.\n\n"
    )
    parts = [_figure(images, "calibration") + words + "Calibration error, task by task:\n"]
    parts.append(tables.by_environment(value_of(calibration, "calibration_error"), "lower"))
    parts.append("Log-likelihood:\n")
    parts.append(tables.by_environment(value_of(calibration, "log_likelihood"), "higher"))
    return "\n".join(parts)


def _supervised(studies: Path) -> str:
    rows = supervised_records(studies)
    likelihood, error = value_of(rows, "log_likelihood"), value_of(rows, "calibration_error")
    return (
        f"{PAPER}\n\n### Test log-likelihood\n\n"
        f"{tables.beside_the_paper(likelihood, LOG_LIKELIHOOD, 'higher')}\n"
        f"### Calibration error\n\n{tables.beside_the_paper(error, CALIBRATION_ERROR, 'lower')}"
    )


def _configurations(studies: Path) -> str:
    return (
        "The settings that were searched, how many configurations were tried, and the scores on "
        "three validation tasks. The files are in `benchmarks/results/chosen`; `--configurations "
        "benchmarks/results/chosen` uses them.\n\n" + tables.configurations(studies / "chosen")
    )


def _figure(images: str, name: str) -> str:
    return f"![{name.replace('-', ' ')}]({images}/{name}.png)\n\n"


def _bullets(paragraphs: list[str]) -> str:
    return "".join(f"- {paragraph}\n" for paragraph in paragraphs)
