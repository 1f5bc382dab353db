"""The findings: the questions that the studies were made for, answered from their records."""

from collections.abc import Sequence

from benchmarks.results._samples import cumulative, is_table, value_of
from benchmarks.results._statistics import (
    Better,
    Comparison,
    DataFrame,
    against_others,
    compare,
    estimate,
    rank,
    score,
)
from benchmarks.results._tables import PARTIAL, environments_of, label_of
from metaprior.lab.plots import in_order, looks_of, title_of

OURS, BASELINE = "FPacohMap", "FixedGP"
EARLY, LAST = 20, 100
MOMENTS = (5, EARLY, LAST)
FIRST_RUN, LATE_RUNS = 1, (8, 9, 10)
UNTUNED = "mixture1d"


def reading(offline: DataFrame, calibration: DataFrame, lifelong: DataFrame) -> list[str]:
    """One paragraph for each question."""
    tuned = calibration[calibration["environment"] != UNTUNED]
    return [
        _lowest(value_of(offline[offline["step"] == LAST], "simple_regret"), _at(LAST)),
        _lowest(value_of(offline[offline["step"] == EARLY], "simple_regret"), _at(EARLY)),
        _lowest(value_of(tuned, "calibration_error"), "**calibration error**"),
        _lowest(cumulative(lifelong), "**cumulative inference regret of the lifelong study**"),
        _falls(lifelong),
        _below(lifelong),
        _scores(moments(offline)),
        _by_seed(offline),
    ]


def moments(offline: DataFrame) -> dict[str, dict[str, dict[str, Comparison]]]:
    """F-PACOH against each method, early and late, by simple regret."""
    return {
        f"t = {step}": against_others(
            value_of(offline[offline["step"] == step], "simple_regret"), OURS, "lower"
        )
        for step in MOMENTS
    }


def places(samples: DataFrame, better: Better = "lower") -> dict[str, str]:
    """Whether ours is `first`, `tied` or `behind` on each environment of `samples`, by title."""
    found = {}
    for title, group in environments_of(samples).items():
        ranking = rank(group, better, PARTIAL)
        first, leads = ranking.best == OURS, OURS in ranking.leaders
        found[title] = "first" if first else "tied" if leads else "behind"
    return found


def late_regret(lifelong: DataFrame, runs: Sequence[int]) -> DataFrame:
    """Simple regret at the end of these runs, averaged over them."""
    ends = lifelong[lifelong["step"] == lifelong["step"].max()]
    return value_of(ends[ends["run"].isin(runs)], "simple_regret")


def _lowest(samples: DataFrame, what: str) -> str:
    found = places(samples)
    count = {word: _titles(found, word) for word in ("first", "tied", "behind")}
    parts = [f"F-PACOH-MAP has the lowest mean on {_named(count['first'])} of {len(found)}"]
    parts.append(f"it cannot be told from the lowest on {_named(count['tied'])}")
    parts.append(f"it is behind on {_named(count['behind'])}")
    best = {
        title: rank(group, "lower", PARTIAL).best
        for title, group in environments_of(samples).items()
    }
    lowest = ", ".join(f"{title} {label_of(name)}" for title, name in best.items())
    text = f"{what[:2]}{what[2:3].upper()}{what[3:]}. {'; '.join(parts)}. Lowest means: {lowest}."
    some = samples[samples["method"].isin(PARTIAL)]
    if some.empty:
        return text
    # Everybody on the seeds that all have.
    common = samples[samples["seed"].isin(some["seed"].unique())]
    firsts = sum(rank(group, "lower").best == OURS for group in environments_of(common).values())
    return (
        f"{text} On the five seeds that RWGP has, and with it, F-PACOH-MAP is lowest on {firsts}."
    )


def _falls(lifelong: DataFrame) -> str:
    """The first run against the late ones, and the baseline's as the control."""
    first, late = (late_regret(lifelong, runs) for runs in ((FIRST_RUN,), LATE_RUNS))
    ours, theirs = _fall(first, late, OURS), _fall(first, late, BASELINE)
    as_paper = _fall(_independent(first), _independent(late), OURS)
    numbers = "; ".join(
        f"{title_of(name)} {_mean(first, OURS, name)} to {_mean(late, OURS, name)} "
        f"({_change(ours[name])}; fixed GP {_mean(late, BASELINE, name)}, "
        f"{_change(theirs[name])})"
        for name in in_order(ours)
    )
    words = {"win": "falls", "tie": "changes within its interval", "loss": "rises"}
    return (
        "**Lifelong: does the regret at the end of a run fall** from the first run to runs 8 to "
        "10 (mean of the three)? By the difference over the five sequences, it "
        f"{_said(ours, words)}: {numbers}. With all 25 pairs of sequence and seed taken as "
        f"independent, as in the paper, it {_said(as_paper, words)}. The first run is the same for "
        "all methods, a fixed GP at its defaults on five tasks. Late runs have other tasks; the "
        "fixed GP learns nothing from run to run, so its change is due to tasks and to its "
        "searched settings."
    )


def _fall(first: DataFrame, late: DataFrame, method: str) -> dict[str, Comparison]:
    """A win is a regret of `method` that is lower in late runs."""
    then, now = (dict(iter(_of(some, method).groupby("environment"))) for some in (first, late))
    return {str(name): compare(now[name], then[name], "lower") for name in then}


def _below(lifelong: DataFrame) -> str:
    late = late_regret(lifelong, LATE_RUNS)
    found = against_others(late, OURS, "lower")[BASELINE]
    as_paper = against_others(_independent(late), OURS, "lower")[BASELINE]
    words = {"win": "below", "tie": "not told apart", "loss": "above"}
    return (
        f"**Lifelong: is it below the fixed GP's in runs 8 to 10?** It is {_said(found, words)}. "
        f"With all 25 pairs taken as independent: {_said(as_paper, words)}."
    )


def _scores(moments: dict[str, dict[str, dict[str, Comparison]]]) -> str:
    methods = looks_of(name for found in moments.values() for name in found)
    lines = [
        f"{label_of(name)} "
        f"{', '.join('/'.join(map(str, score(m[name]))) for m in moments.values())}"
        for name in methods
    ]
    when = ", ".join(moments)
    return (
        f"**F-PACOH-MAP against each method**, environments won/tied/lost at {when}: "
        f"{'; '.join(lines)}."
    )


def _by_seed(offline: DataFrame) -> str:
    """How many verdicts depend on taking the tasks of a seed as independent."""
    simulated = ~offline["environment"].map(is_table)
    units = offline["unit"].where(~simulated, offline["seed"].astype(str))
    usual, by_seed = moments(offline), moments(offline.assign(unit=units))
    changed = [
        f"{label_of(method)} on {title_of(name)} at {when} "
        f"({comparison.verdict} to {by_seed[when][method][name].verdict})"
        for when, methods in usual.items()
        for method, found in methods.items()
        for name, comparison in found.items()
        if comparison.verdict != by_seed[when][method][name].verdict
    ]
    every = sum(len(found) for methods in usual.values() for found in methods.values())
    return (
        "**How firm the verdicts are.** All tasks of a seed share one learned prior. Taking the "
        f"seed, not the function, as the unit on the simulated families changes {len(changed)} of "
        f"{every} verdicts: {', '.join(changed)}. Intervals are not corrected for the number of "
        "comparisons."
    )


def _independent(samples: DataFrame) -> DataFrame:
    units = samples["seed"].astype(str) + "/" + samples["task"].astype(str)
    return samples.assign(unit=units)


def _of(samples: DataFrame, method: str) -> DataFrame:
    return samples[samples["method"] == method]


def _mean(samples: DataFrame, method: str, environment: str) -> str:
    some = _of(samples, method)
    return f"{estimate(some[some['environment'] == environment]).mean:.2g}"


def _change(comparison: Comparison) -> str:
    words = {"win": "falls", "tie": "within the interval", "loss": "rises"}
    return words[comparison.verdict]


def _said(found: dict[str, Comparison], words: dict[str, str]) -> str:
    """Each verdict in words, and on which environments it came."""
    parts = []
    for verdict, word in words.items():
        names = [name for name in in_order(found) if found[name].verdict == verdict]
        parts.append(f"{word} on {_named([title_of(name) for name in names])}")
    return ", ".join(parts)


def _at(step: int) -> str:
    return f"**simple regret at t = {step}**"


def _titles(found: dict[str, str], word: str) -> list[str]:
    return [title for title, each in found.items() if each == word]


def _named(titles: Sequence[str]) -> str:
    return f"{len(titles)} ({', '.join(titles)})" if titles else "none"
