"""The first screen: the questions that the studies were made for, answered from their records."""

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.results._kept import Kept
from benchmarks.results._samples import at_step, cumulative, partial_in, plain, value_of
from benchmarks.results._statistics import (
    Better,
    Comparison,
    DataFrame,
    against_others,
    compare,
    estimate,
    rank,
)
from benchmarks.results._tables import environments_of, label_of, markdown
from metaprior.lab.plots import Cell, estimate_text, in_order, title_of

TUNED, UNTUNED, BASELINE = "FPacohMap", "Learn", "FixedGP"
EARLY = 20
FIRST_RUN, LATE_RUNS = 1, (8, 9, 10)


class Question(NamedTuple):
    """A measure in words, its samples, and on how many environments each should lead."""

    words: str
    samples: DataFrame
    targets: dict[str, int]


def questions(kept: Kept) -> list[Question]:
    """The five measures of the first screen; those of studies that were not run are left out."""
    all_but_one = {TUNED: 6, UNTUNED: 6}
    found = []
    if len(kept.offline):
        early = at_step(kept.offline, EARLY, "simple_regret")
        found = [
            Question(f"simple regret at t = {EARLY}", early, {TUNED: 6, UNTUNED: 7}),
            Question("simple regret at the end", at_step(kept.offline, None, "simple_regret"), {}),
            Question("inference regret", at_step(kept.offline, None, "inference_regret"), {}),
        ]
    if len(kept.calibration):
        error = value_of(kept.calibration, "calibration_error")
        found.append(Question("calibration error", error, all_but_one))
    if len(kept.lifelong):
        total = cumulative(kept.lifelong)
        found.append(Question("cumulative lifelong regret", total, {TUNED: 6, UNTUNED: 7}))
    return found


def answers(kept: Kept) -> str:
    """One row for each measure and of the two entrants, one column per environment."""
    asked = [q._replace(samples=plain(q.samples)) for q in questions(kept)]
    names = in_order(name for q in asked for name in q.samples["environment"].unique())
    rows: list[list[Cell]] = []
    for question in asked:
        standings = {name: standing(question.samples, name) for name in (TUNED, UNTUNED)}
        for name, found in standings.items():
            if not found:
                continue
            leads = sum(not text.startswith("behind") for text in found.values())
            target = question.targets.get(name)
            aim = "" if target is None else f" (target {target})"
            cells = [found.get(title_of(each), "–") for each in names]
            rows.append(
                [f"{question.words}, {label_of(name)}", f"{leads} of {len(found)}{aim}", *cells]
            )
    return markdown(["", "lowest or tied", *(title_of(name) for name in names)], rows)


def standing(samples: DataFrame, name: str) -> dict[str, str]:
    """How an entrant stands on each environment, by title: `lowest`, `tied` or `behind`, with the
    difference to the lowest and its 95 % interval."""
    found = {}
    for title, group in environments_of(samples).items():
        if name not in set(group["method"]):
            continue
        ranking = rank(group, "lower", partial_in(group))
        if ranking.best == name:
            found[title] = "lowest"
            continue
        methods = dict(iter(group.groupby("method")))
        comparison = compare(methods[name], methods[ranking.best], "lower")
        word = "tied" if name in ranking.leaders else "behind"
        worse = comparison.advantage._replace(mean=-comparison.advantage.mean)
        found[title] = f"{word} ({label_of(ranking.best)}: +{estimate_text(worse)})".replace(
            "+-", "-"
        )
    return found


def findings(kept: Kept) -> list[str]:
    """One paragraph for each further question that the records can answer."""
    found = []
    if len(kept.calibration):
        error = value_of(kept.calibration, "calibration_error")
        found.append(_pairs(error, "FPacohVI", TUNED, "calibration error"))
    if len(kept.offline):
        early = at_step(kept.offline, EARLY, "simple_regret")
        found.append(_pairs(early, "FPacohBNN", BASELINE, f"regret at t = {EARLY}"))
        for better, worse in (
            (f"{TUNED}+refined", f"{TUNED}+unrefined"),
            ("PacohMap+refined", "PacohMap+unrefined"),
            (f"{TUNED}+restless", TUNED),
            (TUNED, f"{TUNED}+by-paper"),
            ("NeuralProcess+latent", "NeuralProcess"),
        ):
            found.append(_pairs(early, better, worse, f"regret at t = {EARLY}"))
    if len(kept.lifelong):
        found.append(
            _pairs(cumulative(kept.lifelong), "Learn+versions", UNTUNED, "lifelong regret")
        )
        found += [_falls(kept.lifelong, name) for name in (TUNED, UNTUNED)]
    return [text for text in found if text]


def late_regret(lifelong: DataFrame, runs: Sequence[int]) -> DataFrame:
    """Simple regret at the end of these runs, averaged over them."""
    return value_of(lifelong[lifelong["run"].isin(runs)], "simple_regret")


def _pairs(samples: DataFrame, ours: str, theirs: str, words: str, better: Better = "lower") -> str:
    """One entrant against another, environment by environment; nothing if either is not there."""
    some = samples[samples["method"].isin((ours, theirs))]
    if set(some["method"]) != {ours, theirs}:
        return ""
    both = some.groupby("environment")["method"].transform("nunique") == 2
    found = against_others(some[both], ours, better).get(theirs, {})
    head = f"**{label_of(ours)} against {label_of(theirs)}**, {words}"
    return f"{head}: {said(found, {'win': 'lower', 'tie': 'not told apart', 'loss': 'higher'})}."


def _falls(lifelong: DataFrame, name: str) -> str:
    """The first run against the late ones, sequence by sequence."""
    mine = lifelong[lifelong["method"] == name]
    late_runs = [run for run in LATE_RUNS if run in set(mine["run"])]
    if not late_runs:
        return ""
    first, late = late_regret(mine, (FIRST_RUN,)), late_regret(mine, late_runs)
    groups = {str(key): some for key, some in late.groupby("environment")}
    found = {
        str(key): compare(groups[str(key)], some, "lower")
        for key, some in first.groupby("environment")
    }
    numbers = "; ".join(
        f"{title_of(key)} {_mean(first, key)} to {_mean(late, key)}" for key in in_order(found)
    )
    count = mine["unit"].nunique()
    words = {"win": "falls", "tie": "changes within its interval", "loss": "rises"}
    return (
        f"**{label_of(name)}, lifelong**: from the first run to runs {late_runs[0]} to "
        f"{late_runs[-1]}, over {count} sequences, the regret at the end of a run "
        f"{said(found, words)}: {numbers}."
    )


def _mean(samples: DataFrame, environment: str) -> str:
    return f"{estimate(samples[samples['environment'] == environment]).mean:.2g}"


def said(found: dict[str, Comparison], words: dict[str, str]) -> str:
    """Each verdict in words, and on which environments it came."""
    parts = []
    for verdict, word in words.items():
        titles = [title_of(name) for name in in_order(found) if found[name].verdict == verdict]
        where = f"{len(titles)} ({', '.join(titles)})" if titles else "none"
        parts.append(f"{word} on {where}")
    return ", ".join(parts)
